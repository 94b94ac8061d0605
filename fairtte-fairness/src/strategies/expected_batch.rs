//! The expected content of the batches of a training, before its first step.

use fairtte_survival::{SurvivalHead, Targets};

/// A batch as it is expected on average.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedBatch<'a> {
    /// Samples of a batch.
    pub size: usize,
    /// Loss and prediction rule.
    pub head: &'a dyn SurvivalHead,
    /// Share of the training samples that have a loss term: the event rate with the Cox heads, 1 with the others; also 1
    /// as long as the outcomes are not known.
    pub share_with_loss: f64,
}

impl<'a> ExpectedBatch<'a> {
    /// Before the data are read: every sample may have a loss term.
    pub fn of_any_data(size: usize, head: &'a dyn SurvivalHead) -> Self {
        Self { size, head, share_with_loss: 1.0 }
    }

    /// With the outcomes of the training part.
    pub fn of_training(size: usize, head: &'a dyn SurvivalHead, train: &Targets) -> Self {
        let counted = head.counted(train);
        let n_counted = counted.iter().filter(|counted| **counted).count();
        Self { size, head, share_with_loss: n_counted as f64 / counted.len().max(1) as f64 }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_survival::{Cox, CutPoints, NnetSurvival};

    use super::*;
    use fairtte_metrics::Outcomes;

    #[test]
    fn with_the_cox_heads_the_share_is_the_event_rate() {
        let (time, event) = (vec![1.0, 2.0, 3.0, 4.0, 5.0], [true, false, false, true, false]);
        let train = Outcomes::new(time.clone(), event.to_vec()).unwrap();
        let targets = CutPoints::equidistant(&train, 4).unwrap().targets("training", &time, &event).unwrap();
        let share = |head: &dyn SurvivalHead| ExpectedBatch::of_training(10, head, &targets).share_with_loss;
        assert_eq!((share(&Cox::default()), share(&NnetSurvival)), (0.4, 1.0));
    }
}
