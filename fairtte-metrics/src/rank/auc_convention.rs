//! Who is a case and who a control at time t, what a case weighs, and when two predictions are tied: the points in which
//! implementations of the cumulative/dynamic AUC differ.
//!
//! ```text
//! convention            case weight   controls                          tied predictions
//! ScikitSurvival        1 / G(T)      T > t                             closer than 1e-8
//! SurvivalEval          1 / G(T-)     T > t, or censored exactly at t   equal
//! SurvivalEvalNaive     1             T > t, or censored exactly at t   equal
//! RiskRegression        1 / G(T-)     T > t                             equal
//! ```
//!
//! Cases are the events with T <= t everywhere. G is the events-first censoring curve. G(T) and G(T-) differ only where
//! an event and a censoring share a time, that is for discrete times. In theory the left limit is right: an event at T
//! is observed if the sample was not censored before T.
//! Sources: Uno et al. (2007), <https://doi.org/10.1198/016214507000000149>; Blanche et al. (2013),
//! <https://doi.org/10.1002/sim.5958>. Golden values: `scikit-survival` 0.28.0 and `torchsurv` 0.2.0
//! (`ScikitSurvival`, the latter in float32), `SurvivalEVAL` 0.9.0 `auc` with methods "Uno" and "Naive", R
//! `riskRegression` `Score(cens.model = "km")`.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::estimators::censoring::CensoringCurve;
use crate::rank::auc_td::TIE_TOLERANCE;

/// The implementation whose cumulative/dynamic AUC is computed; the table is at the top of this module's file and in
/// the guide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AucConvention {
    /// Cases weigh 1 / G(T), controls have T > t, predictions closer than [`TIE_TOLERANCE`] are tied
    /// (`scikit-survival`; `torchsurv` up to float32).
    #[default]
    ScikitSurvival,
    /// Cases weigh 1 / G(T-), samples censored exactly at t are controls, only equal predictions are tied. For a time
    /// beyond the training sample `SurvivalEVAL` reads G by
    /// [`BeyondLastTime::LinearToZero`](crate::estimators::BeyondLastTime::LinearToZero); that policy belongs to the curve.
    #[serde(rename = "survivaleval")]
    SurvivalEval,
    /// As [`SurvivalEval`](Self::SurvivalEval) with every case weighing 1: samples censored before t are left out
    /// without compensation, so the value is biased under censoring.
    #[serde(rename = "survivaleval-naive")]
    SurvivalEvalNaive,
    /// Cases weigh 1 / G(T-), controls have T > t, only equal predictions are tied.
    #[serde(rename = "riskregression")]
    RiskRegression,
}

impl AucConvention {
    /// Weight of a case with its event at `time`.
    ///
    /// # Errors
    /// [`MetricError::BeyondCensoringCurve`] or [`MetricError::ZeroCensoringSurvival`] if G is unknown or 0 there; never
    /// for [`SurvivalEvalNaive`](Self::SurvivalEvalNaive).
    pub fn case_weight(self, censoring: &CensoringCurve, time: f64) -> Result<f64, MetricError> {
        match self {
            Self::ScikitSurvival => censoring.weight_at(time),
            Self::SurvivalEval | Self::RiskRegression => censoring.weight_before(time),
            Self::SurvivalEvalNaive => Ok(1.0),
        }
    }

    /// Whether a sample observed until `time` is a control at `t`.
    ///
    /// In a list sorted by time with events before censorings at equal times, the controls are always the tail.
    pub fn is_control(self, time: f64, event: bool, t: f64) -> bool {
        match self {
            Self::ScikitSurvival | Self::RiskRegression => time > t,
            Self::SurvivalEval | Self::SurvivalEvalNaive => time > t || (time >= t && !event),
        }
    }

    /// Predictions that differ by at most this are tied.
    pub fn tie_tolerance(self) -> f64 {
        match self {
            Self::ScikitSurvival => TIE_TOLERANCE,
            Self::SurvivalEval | Self::SurvivalEvalNaive | Self::RiskRegression => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::rank::{auc_td, auc_td_with};
    use crate::{CensoringTies, Outcomes, Reading, SurvivalCurves};

    const ALL: [AucConvention; 4] = [
        AucConvention::ScikitSurvival,
        AucConvention::SurvivalEval,
        AucConvention::SurvivalEvalNaive,
        AucConvention::RiskRegression,
    ];

    #[test]
    fn weights_and_controls_differ_where_an_event_and_a_censoring_share_a_time() {
        // Events first: of the five left at 1 one is censored (G = 4/5), of the three left at 2 one (G = 4/5 * 2/3). At
        // t = 2 the cases are rows 0 (event at 1) and 2 (event at 2); row 3 is censored at 2; rows 4, 5 survive.
        let outcomes = Outcomes::new(vec![1.0, 1.0, 2.0, 2.0, 3.0, 3.0], vec![true, false, true, false, true, true]);
        let outcomes = outcomes.unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let before_two = 1.0 - 1.0 / 5.0;
        let at_two = before_two * (1.0 - 1.0 / 3.0);
        let weight = |convention: AucConvention, time| convention.case_weight(&censoring, time).unwrap();
        assert_eq!(ALL.map(|c| weight(c, 1.0)), [1.0 / before_two, 1.0, 1.0, 1.0]);
        assert_eq!(ALL.map(|c| weight(c, 2.0)), [1.0 / at_two, 1.0 / before_two, 1.0, 1.0 / before_two]);
        assert_eq!(ALL.map(|c| c.is_control(2.0, false, 2.0)), [false, true, true, false]);
        assert!(ALL.iter().all(|c| c.is_control(3.0, true, 2.0) && !c.is_control(2.0, true, 2.0)));

        // S at 2: cases 0.4 (row 0) and 0.6 (row 2), censored at 2: 0.5, later: 0.7 and 0.5.
        let curves = SurvivalCurves::new(vec![1.0], array![[0.4], [0.9], [0.6], [0.5], [0.7], [0.5]]).unwrap();
        let auc = |convention| {
            let found = auc_td_with(&outcomes, &curves, &censoring, Reading::Step, &[2.0], convention).unwrap();
            found.values[0].clone().unwrap()
        };
        let (early, late) = (1.0 / before_two, 1.0 / at_two);
        let expected = [
            (2.0 * early + late) / (2.0 * (early + late)),
            (3.0 + 1.0 / before_two) / (3.0 * (1.0 + 1.0 / before_two)),
            4.0 / 6.0,
            (2.0 + 1.0 / before_two) / (2.0 * (1.0 + 1.0 / before_two)),
        ];
        for (convention, expected) in ALL.into_iter().zip(expected) {
            assert!((auc(convention) - expected).abs() < 1e-15, "{convention:?}");
        }
    }

    #[test]
    fn predictions_at_the_edge_of_the_tolerance_are_compared_as_probabilities_of_the_event() {
        // scikit-survival 0.28.0: 1.0 for 0.2 and 0.2 + 1e-8, 0.5 for 0.02 and 0.02 + 1e-8. Compared as survival
        // probabilities it would be the other way round, because 1 - S is rounded.
        let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, true]).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        for (low, expected) in [(0.2, 1.0), (0.02, 0.5)] {
            let curves = SurvivalCurves::new(vec![1.0], array![[low], [low + 1e-8]]).unwrap();
            let found = auc_td(&outcomes, &curves, &censoring, Reading::Step, &[1.0]).unwrap();
            assert_eq!(found.values, [Ok(expected)]);
        }
    }

    #[test]
    fn a_sample_that_is_neither_case_nor_control_links_near_ties() {
        // Of 0.5, 0.5 + 0.9e-8 and 0.5 + 1.8e-8 the middle one is censored before 1.5; scikit-survival 0.28.0 gives 0.5.
        let outcomes = Outcomes::new(vec![1.0, 1.2, 2.0], vec![true, false, true]).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5 + 0.9e-8], [0.5 + 1.8e-8]]).unwrap();
        let found = auc_td(&outcomes, &curves, &censoring, Reading::Step, &[1.5]).unwrap();
        assert_eq!(found.values, [Ok(0.5)]);
    }

    #[test]
    fn a_difference_below_the_tolerance_is_a_tie_for_one_convention_only() {
        let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, true]).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5 + 1e-9]]).unwrap();
        let auc = |convention| {
            let found = auc_td_with(&outcomes, &curves, &censoring, Reading::Step, &[1.0], convention).unwrap();
            found.values[0].clone().unwrap()
        };
        assert_eq!(ALL.map(auc), [0.5, 1.0, 1.0, 1.0]);
    }
}
