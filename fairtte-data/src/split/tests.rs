//! Laws of stratified splits, folds and sites, and the refusals of split files.
