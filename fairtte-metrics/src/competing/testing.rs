//! Random samples with causes, for tests that compare with definitions.

use ndarray::Array2;
use proptest::prelude::*;

use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::{CensoringCurve, CensoringTies, Reading};

/// Outcomes at few times, with many ties, and predictions with many ties.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) outcomes: CompetingOutcomes,
    pub(crate) curves: IncidenceCurves,
}

impl Sample {
    /// G of the sample itself.
    pub(crate) fn censoring(&self) -> CensoringCurve {
        CensoringCurve::fit(self.outcomes.all_causes(), CensoringTies::EventsFirst).unwrap()
    }

    /// Whether the weight of a subject followed beyond `t` exists.
    pub(crate) fn is_known_at(&self, t: f64) -> bool {
        self.censoring().at(t).is_ok_and(|g| g > 0.0)
    }

    pub(crate) fn risk(&self, t: f64) -> Vec<f64> {
        self.curves.all_at(t, Reading::Step)
    }
}

/// At most `most` samples with up to `n_causes` causes; predictions at 1, 3 and 5.
pub(crate) fn samples(n_causes: u32, most: usize) -> impl Strategy<Value = Sample> {
    let row = (1_u8..9, 0..=n_causes, (0_u8..5, 0_u8..5, 0_u8..5));
    prop::collection::vec(row, 1..=most).prop_map(move |rows| {
        let time = rows.iter().map(|row| f64::from(row.0)).collect();
        let outcomes = CompetingOutcomes::with_causes(time, rows.iter().map(|row| row.1).collect(), n_causes);
        let step = |row: &(u8, u32, (u8, u8, u8)), k: usize| {
            let (a, b, c) = row.2;
            [a, b, c][..=k].iter().map(|step| f64::from(*step) / 16.0).sum::<f64>()
        };
        let values = Array2::from_shape_fn((rows.len(), 3), |(row, k)| step(&rows[row], k));
        Sample { outcomes: outcomes.unwrap(), curves: IncidenceCurves::new(vec![1.0, 3.0, 5.0], values).unwrap() }
    })
}
