//! The groups that a method compares, and how their samples are drawn.

use fairtte_data::Sampling;

use super::TrainingCells;
use crate::FairnessError;

/// The levels of the attribute, of which at least two have training samples.
#[derive(Clone, Debug)]
pub(crate) struct ComparedGroups {
    /// Levels of the attribute.
    pub(crate) n_levels: usize,
    /// Those with a training sample.
    pub(crate) n_trained: usize,
    /// How the samples are drawn, by the setting `balanced-sampler`.
    pub(crate) sampling: Sampling,
    /// Share of every level among the samples that are drawn and have one, `[n_levels]`.
    pub(crate) shares: Vec<f64>,
}

impl ComparedGroups {
    /// The groups of the training part, each drawn equally often if `balanced`.
    ///
    /// # Errors
    /// [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`] without two groups in training.
    pub(crate) fn new(cells: &TrainingCells, balanced: bool, strategy: &'static str) -> Result<Self, FairnessError> {
        Ok(Self {
            n_levels: cells.levels.len(),
            n_trained: n_trained_groups(cells, strategy)?,
            sampling: cells.sampling(balanced),
            shares: cells.shares(balanced),
        })
    }
}

/// Number of groups with a training sample.
///
/// # Errors
/// [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`] if there are fewer than two.
pub(crate) fn n_trained_groups(cells: &TrainingCells, strategy: &'static str) -> Result<usize, FairnessError> {
    cells.require_groups(strategy)?;
    let counts = cells.counts();
    let trained: Vec<usize> = (0..counts.len()).filter(|group| counts[*group] > 0).collect();
    if let [only] = trained[..] {
        let (attribute, group) = (cells.attribute.clone(), cells.levels[only].clone());
        return Err(FairnessError::OneGroup { strategy, attribute, group });
    }
    Ok(trained.len())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_metrics::GroupId;

    use super::*;

    #[test]
    fn two_groups_with_training_samples_are_needed() {
        let n_trained = |groups: [Option<u32>; 3]| {
            let cells = TrainingCells {
                attribute: "sex".to_owned(),
                levels: ["F", "M", "other"].map(str::to_owned).to_vec(),
                groups: groups.map(|group| group.map(GroupId)).to_vec(),
                event: vec![true; 3],
                interval: vec![0; 3],
                n_cut_points: 2,
            };
            ComparedGroups::new(&cells, false, "laftr").map(|groups| groups.n_trained)
        };
        assert!(matches!(n_trained([None; 3]), Err(FairnessError::NoGroups { .. })));
        let only = n_trained([Some(1), None, Some(1)]);
        assert!(matches!(only, Err(FairnessError::OneGroup { ref group, .. }) if group == "M"), "{only:?}");
        assert_eq!(n_trained([Some(0), Some(2), Some(0)]).unwrap(), 2);
    }
}
