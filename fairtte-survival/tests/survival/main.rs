//! Tests of heads, losses and curves, as one program: each further one compiles the tensors again.

mod binary;
mod causes;
mod classifier;
mod common;
mod golden_values;
mod halves;
mod heads;
mod heads_by_hand;
mod misfits;
mod registry;
mod segmentation;
