//! Files of predicted curves, with outcomes and groups: those of a run and of any other model.

mod class_table;
pub(crate) mod curve_columns;
mod file;
mod joined_attributes;
mod levels;
pub(crate) mod looks_like;
mod mask_table;
pub(crate) mod other_scale;
mod outcomes;
mod probabilities;
pub(crate) mod repairs;
mod sample_table;
mod scored_table;
mod values;

pub(crate) use file::{SAMPLE, read_samples};
pub(crate) use outcomes::invalid;
pub(crate) use sample_table::named_or_either;

pub use class_table::{ClassOptions, ClassTable, read_class_table};
pub use file::{
    PredictionTable, match_features, match_predictions, read_incidence, read_predictions,
    read_predictions_with_attributes, write_feature_blocks, write_incidence, write_prediction_blocks,
    write_predictions,
};
pub use joined_attributes::{PredictedAttributes, join_attributes};
pub use levels::{DoubtfulLevels, doubtful_levels};
pub use looks_like::LooksLike;
pub use mask_table::{MaskColumns, MaskTable, read_mask_table};
pub use other_scale::OtherScale;
pub use outcomes::{ColumnNames, read_columns, read_outcomes};
pub use probabilities::{ProbabilityTable, read_probabilities, write_probabilities};
pub use repairs::{CurveRepairs, Rising};
pub use sample_table::{
    ChangingAttribute, OutsideTable, SampleTable, changing_attributes, read_sample_table, with_levels,
};
pub use scored_table::{ReadOptions, ScoredTable, read_scored_table};
