//! Tests of the settings of `src/trainer`: their ranges, and when they end a training.

use super::config::best_epoch;
use super::progress::Totals;
use super::*;

#[test]
fn settings_out_of_range_name_their_key_and_those_at_its_ends_are_taken() {
    let default = TrainingConfig::default();
    let least = TrainingConfig { epochs: 1, batch_size: 2, accumulate: 1, patience: 1, ..default };
    for checkpoint_minutes in [0.0, 1e6] {
        assert!(TrainingConfig { checkpoint_minutes, ..least }.validate().is_ok());
    }
    let message = |config: TrainingConfig| config.validate().unwrap_err().to_string();
    let found = message(TrainingConfig { epochs: 0, ..default });
    assert_eq!(found, "epochs is 0, expected at least 1");
    let found = message(TrainingConfig { batch_size: 1, ..default });
    assert_eq!(found, "batch-size is 1, expected at least 2 (batch norm needs two)");
    let found = message(TrainingConfig { accumulate: 0, ..default });
    assert_eq!(found, "accumulate is 0, expected at least 1");
    let found = message(TrainingConfig { patience: 0, ..default });
    assert_eq!(found, "patience is 0, expected at least 1");
    assert!(TrainingConfig { prefetch: Some(64), ..least }.validate().is_ok());
    let found = message(TrainingConfig { prefetch: Some(65), ..default });
    assert_eq!(found, "prefetch is 65, expected a whole number from 0 to 64 (0 = off)");
    for precision in [Precision::F32, Precision::Bf16] {
        assert!(TrainingConfig { precision, accumulate: 4, ..least }.validate().is_ok());
    }
    assert!(TrainingConfig { precision: Precision::F16, ..least }.validate().is_ok());
    let found = message(TrainingConfig { precision: Precision::F16, accumulate: 2, ..default });
    assert!(found.starts_with("precision is f16, expected f32 or bf16 with accumulate above 1"), "{found}");
    for checkpoint_minutes in [-1.0, 2e6, f64::NAN] {
        let found = message(TrainingConfig { checkpoint_minutes, ..default });
        let expected = "expected a number from 0 to 1e6 (0 = off)";
        assert_eq!(found, format!("checkpoint-minutes is {checkpoint_minutes}, {expected}"));
    }
}

/// Epochs of which `best` says whether each was the best so far.
fn epochs(best: &[bool]) -> Vec<EpochReport> {
    let report =
        |(epoch, best): (usize, &bool)| Totals::default().report(epoch, Validation::default(), Vec::new(), *best);
    best.iter().enumerate().map(report).collect()
}

#[test]
fn a_training_ends_with_its_epochs_or_when_patience_runs_out_after_the_best() {
    let over = |epochs_in_all: usize, best: &[bool]| {
        TrainingConfig { epochs: epochs_in_all, patience: 3, ..TrainingConfig::default() }.is_over(&epochs(best))
    };
    assert!(!over(10, &[]));
    assert!(!over(10, &[true, false, false]));
    assert!(over(10, &[true, false, false, false]));
    // The patience counts from the last best epoch.
    assert!(!over(10, &[true, false, true, false, false]));
    assert!(over(10, &[true, false, true, false, false, false]));
    // No epoch was the best: no metric was computed.
    assert!(!over(10, &[false, false]));
    assert!(over(10, &[false, false, false]));
    assert!(!over(2, &[true]));
    assert!(over(2, &[true, true]));
    let without_end = TrainingConfig { epochs: usize::MAX, patience: usize::MAX, ..TrainingConfig::default() };
    assert!(!without_end.is_over(&epochs(&[true, false])), "the last epoch of patience is beyond any number");
    assert_eq!([best_epoch(&[]), best_epoch(&epochs(&[true, false, true, false]))], [0, 3]);
}
