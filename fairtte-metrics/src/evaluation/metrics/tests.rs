//! Every built-in metric: weights are repeated rows, and the value is that of the library function of the metric.

use ndarray::Array2;

use super::*;
use crate::CensoringTies;
use crate::calibration::{
    DCalibrationConvention, OwnTimeReading, d_calibration, integrated_calibration, observed_expected, one_calibration,
};
use crate::rank::{TiedPredictions, concordance_td};
use crate::scores::{BrierConvention, IntegratedScoreRule, brier_score, integrated_brier_score};

const N: usize = 48;
const HORIZON: f64 = 3.0;

struct Sample {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    train: Outcomes,
    subjects: Vec<SubjectId>,
}

impl Sample {
    fn new() -> Self {
        let time = |k: usize| 0.25 * (1 + k * 17 % N) as f64;
        let outcomes = Outcomes::new((0..N).map(time).collect(), (0..N).map(|k| k % 4 != 0).collect()).unwrap();
        let survival = |(row, column): (usize, usize)| {
            let risk = 0.15 + 0.5 * ((row as f64 * 0.7).sin() * 0.5 + 0.5) + 0.02 * time(row);
            (1.0_f64 - risk.min(0.9)).powf(0.3 * (column + 1) as f64)
        };
        let curves = SurvivalCurves::new(vec![1.0, 2.0, 4.0, 8.0], Array2::from_shape_fn((N, 4), survival)).unwrap();
        let late = Outcomes::new((0..60).map(|k| 0.3 * f64::from(k)).collect(), (0..60).map(|k| k % 3 != 0).collect());
        Self {
            outcomes,
            curves,
            train: late.unwrap(),
            subjects: (0..N).map(|k| SubjectId::new(format!("p{k}"))).collect(),
        }
    }

    fn censoring(&self) -> CensoringCurve {
        CensoringCurve::fit(&self.train, CensoringTies::EventsFirst).unwrap()
    }

    /// A metric of some rows, each of weight 1, or of all rows with weights.
    fn value(&self, name: &str, rows: &[usize], weights: Option<&[u32]>) -> f64 {
        let ones = vec![1; rows.len()];
        self.prepared(name, rows).value(weights.unwrap_or(&ones)).unwrap()
    }

    fn prepared(&self, name: &str, rows: &[usize]) -> Box<dyn PreparedMetric> {
        let (outcomes, curves) = (self.outcomes.select(rows), self.curves.select(rows));
        let subjects: Vec<&SubjectId> = rows.iter().map(|row| &self.subjects[*row]).collect();
        let sample = ScoredSample {
            outcomes: &outcomes,
            curves: &curves,
            censoring: &self.censoring(),
            reading: Reading::Linear,
            risk: RiskOfCurve::NegativeRestrictedMean,
            competing: None,
            subjects: &subjects,
            times: &Ok(vec![1.0, 2.0, 3.0, 5.0]),
            horizon: &Ok(HORIZON),
            threshold: Some(0.5),
        };
        RequestedMetric::parse(name).unwrap().metric.prepare(&sample).unwrap()
    }
}

#[test]
fn a_weight_is_the_number_of_times_that_a_row_occurs() {
    let sample = Sample::new();
    let weights: Vec<u32> = (0..N).map(|k| u32::try_from(k * 5 % 4).unwrap()).collect();
    let repeated: Vec<usize> = (0..N).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
    let all: Vec<usize> = (0..N).collect();
    for metric in built_in_metrics() {
        let name = metric.name();
        let (weighted, plain) = (sample.value(name, &all, Some(&weights)), sample.value(name, &repeated, None));
        // The knots of the ICI stay those of the sample, so that its replicates differ a little from a new sample.
        let tolerance = if name == "ici" { 0.02 } else { 1e-9 };
        assert!((weighted - plain).abs() <= tolerance * (1.0 + plain.abs()), "{name}: {weighted} {plain}");
        assert!((weighted - sample.value(name, &all, None)).abs() > 1e-6, "{name}: weights must matter");
    }
}

#[test]
fn values_are_those_of_the_library_functions() {
    let sample = Sample::new();
    let all: Vec<usize> = (0..N).collect();
    let (outcomes, curves, censoring, reading) =
        (&sample.outcomes, &sample.curves, sample.censoring(), Reading::Linear);
    let times = [1.0, 2.0, 3.0, 5.0];
    let near = |name: &str, expected: f64| {
        let found = sample.value(name, &all, None);
        assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{name}: {found}, expected {expected}");
    };
    near("c-td", concordance_td(outcomes, curves, reading, TiedPredictions::Strict).unwrap().value);
    near("ibs", integrated_brier_score(outcomes, curves, &censoring, reading, &times).unwrap());
    near("brier", brier_score(outcomes, curves, &censoring, reading, &[HORIZON]).unwrap().values[0]);
    let flipped = BrierConvention::Mlr3proba.censoring_curve(&sample.train).unwrap();
    assert_eq!(censoring.with_ties(CensoringTies::Flipped).survival(), flipped.survival());
    let rsbs = IntegratedScoreRule::RSBS.score(outcomes, curves, &flipped, reading, &times).unwrap();
    near("rsbs", rsbs.value);
    let own = OwnTimeReading::OneBefore(reading);
    let bins = d_calibration(outcomes, curves, own, 10, DCalibrationConvention::Survivaleval).unwrap();
    // The statistic is n times the number of bins times the squared distance.
    near("d-calibration", bins.statistic / (10 * N) as f64);
    near("observed-expected", observed_expected(outcomes, curves, HORIZON, reading).unwrap().ratio);
    near("integrated-calibration", integrated_calibration(outcomes, curves, reading, &times).unwrap().absolute);
    let settings = calibration::ONE_CALIBRATION;
    near("one-calibration", one_calibration(outcomes, curves, HORIZON, reading, settings).unwrap().statistic.unwrap());
}

#[test]
fn names_and_times_are_checked() {
    let message = |text: &str| RequestedMetric::parse(text).unwrap_err().to_string();
    assert!(message("brior").starts_with("metric \"brior\" does not exist, expected one of: c-td, c-td-half"));
    assert!(message("ibs@5").contains("no @: this metric is not about one time"));
    for wrong in ["brier@", "brier@x", "brier@0", "brier@-1", "brier@inf", "brier@nan"] {
        assert!(message(wrong).contains("a finite number > 0 after the @"), "{wrong}");
    }
    assert_eq!(RequestedMetric::parse("brier@365.25").unwrap().at, Some(365.25));
    let names: Vec<&str> = built_in_metrics().map(Metric::name).collect();
    assert!((1..names.len()).all(|k| !names[..k].contains(&names[k])), "every name once");
}

#[test]
fn the_risk_of_a_curve_can_be_chosen() {
    let sample = Sample::new();
    let (censoring, subjects) = (sample.censoring(), sample.subjects.iter().collect::<Vec<_>>());
    let risks = |risk| {
        let sample = ScoredSample {
            outcomes: &sample.outcomes,
            curves: &sample.curves,
            censoring: &censoring,
            reading: Reading::Step,
            risk,
            competing: None,
            subjects: &subjects,
            times: &Ok(vec![1.0, 2.0, 4.0]),
            horizon: &Ok(2.0),
            threshold: None,
        };
        sample.risks().unwrap().values()[0]
    };
    let s = |column: usize| sample.curves.survival()[[0, column]];
    let mean = (0.5 * (s(0) + s(1)) + (s(1) + s(2))) / 3.0;
    assert!((risks(RiskOfCurve::NegativeRestrictedMean) + mean).abs() < 1e-12);
    let mortality = -(s(0).ln() + s(1).ln() + s(2).ln());
    assert!((risks(RiskOfCurve::ExpectedMortality) - mortality).abs() < 1e-12);
    assert!((risks(RiskOfCurve::AtHorizon) - (1.0 - s(1))).abs() < 1e-12);
}

#[test]
fn several_draws_at_once_have_the_values_of_each() {
    let (sample, rows) = (Sample::new(), (0..N).collect::<Vec<_>>());
    // The second draw is empty, and the third has no sample after the horizon.
    let weight = |row: usize, draw: usize| match draw {
        1 => 0,
        2 => u16::from(sample.outcomes.time()[row] <= HORIZON),
        _ => u16::try_from((row * row + row * 7 + draw * 5) % 13 % 4).unwrap(),
    };
    let block: Vec<LaneWeights> = (0..N).map(|row| std::array::from_fn(|draw| weight(row, draw))).collect();
    let draws = WeightBlock::new(&block, 21);
    for metric in built_in_metrics() {
        let prepared = sample.prepared(metric.name(), &rows);
        let found = prepared.values(&draws);
        assert_eq!(found.len(), 21, "{metric:?}");
        for (draw, found) in found.into_iter().enumerate() {
            let weights = draws.weights(draw);
            let exact = if draw == 1 { None } else { prepared.value(&weights).ok() };
            assert_eq!(found.is_some(), exact.is_some(), "{metric:?} draw {draw}: {found:?} {exact:?}");
            let (found, exact) = (found.unwrap_or(0.0), exact.unwrap_or(0.0));
            assert!((found - exact).abs() <= 1e-7 * (1.0 + exact.abs()), "{metric:?} draw {draw}: {found} {exact}");
        }
    }
}
