// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`Trainer`]: Trainer
//! [`StrategyConfig`]: StrategyConfig
//! [`Strategy`]: Strategy
//! [`Objective`]: strategies::Objective
//! [`LearnerSpec`]: LearnerSpec
//! [`NetworkSpec`]: NetworkSpec
//! [`TrainingCells`]: strategies::TrainingCells
//! [`TrainingData`]: TrainingData
//! [`TrainingConfig`]: TrainingConfig
//! [`TrainedRun`]: TrainedRun
//! [`EpochReport`]: EpochReport
//! [`Observer`]: Observer
//! [`predict`]: fn@predict
//! [`CurveRule`]: CurveRule
//! [`Batch`]: Batch
//! [`FairnessError`]: FairnessError
//! [`strategies`]: strategies
//! [`explain`]: explain
#![doc = include_str!("../README.md")]

mod batch;
mod check;
mod checkpoint;
mod error;
pub mod explain;
mod export;
mod features;
mod gradients;
mod learner;
mod monitor;
mod network;
mod predict;
mod predictor;
mod pretrained;
pub mod strategies;
mod trainable;
mod trainer;

pub use batch::Batch;
use check::{check, check_at_least, check_not_negative, check_positive, written};
pub use checkpoint::{can_resume, copy_checkpoint, has_checkpoint, is_unfinished};
pub use error::FairnessError;
pub use export::{Combination, Export, ExportedNetwork};
pub use features::{Layer, features, features_of};
pub use learner::{EncoderNetwork, Learner, LearnerSpec, PredictingNetwork};
pub use monitor::{AttributeValidation, GroupValidation, Metrics, Monitor, Predicted, Validation, metrics_of};
pub use network::{Forward, NetworkSpec, SurvivalNetwork};
pub use predict::{
    CurveRule, EvaluationPart, Outputs, Parts, fit_baseline, of_cause, predict, predict_in_batches, survival,
    targets_of,
};
pub use predictor::{FittedModel, ModelSettings, Predictor, write_weights};
pub use pretrained::{Freeze, Pretrained, PretrainedConfig};
pub use strategies::{EQUAL_PREDICTIONS, Strategy, StrategyConfig, Warning, Watched};
pub use trainable::{Descent, OptimiserConfig, Trainable};
pub use trainer::{
    Choice, ConstantSchedule, CosineSchedule, Criterion, EpochReport, EpochRule, Observer, ScheduleConfig, Scoring,
    Silent, StepSchedule, StepsFile, TOLERATED_LOSS, TensorBoard, TrainedRun, Trainer, TrainingConfig, TrainingData,
    choices, score_validation, score_validation_masks, use_epoch,
};
