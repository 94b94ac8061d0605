//! Laws of the Brier conventions and of the scoring rules, on random samples with ties and times of 0.

use fairtte_metrics::scores::{
    BrierConvention, EventDensity, IntegratedScoreRule, IntegrationRule, SnlForm, integrated_brier_score_by,
    integrated_nbll, negative_log_likelihood, rcll, snl, unique_times,
};
use fairtte_metrics::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};
use ndarray::Array2;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const CONVENTIONS: [BrierConvention; 6] = [
    BrierConvention::ScikitSurvival,
    BrierConvention::SurvivalEval,
    BrierConvention::SurvivalEvalUnweighted,
    BrierConvention::Pycox,
    BrierConvention::RiskRegression,
    BrierConvention::Mlr3proba,
];
const RULES: [IntegratedScoreRule; 5] = [
    IntegratedScoreRule::ISBS,
    IntegratedScoreRule::ISLL,
    IntegratedScoreRule::ISS,
    IntegratedScoreRule::RSBS,
    IntegratedScoreRule::RISL,
];
const DENSITIES: [EventDensity; 3] = [EventDensity::LinearDensity, EventDensity::ExactMass, EventDensity::IntervalMass];

#[derive(Clone, Debug)]
struct Sample {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    train: Outcomes,
}

fn outcomes(n: std::ops::Range<usize>) -> impl Strategy<Value = Outcomes> {
    let rows = prop::collection::vec((0_u8..8, any::<bool>()), n);
    rows.prop_map(|rows| {
        let (time, event) = rows.into_iter().map(|(time, event)| (f64::from(time), event)).unzip();
        Outcomes::new(time, event).expect("times are finite and at least 0")
    })
}

/// Times 0 to 7, a grid of three points in the same range, survival in tenths.
fn sample() -> impl Strategy<Value = Sample> {
    let curve = prop::collection::vec(0_u8..=10, 3);
    (outcomes(2..12), prop::collection::vec(curve, 12), outcomes(1..12), 0_u8..3).prop_map(
        |(outcomes, curves, train, first)| {
            let survival = Array2::from_shape_fn((outcomes.n(), 3), |(row, k)| {
                let mut sorted = curves[row].clone();
                sorted.sort_unstable_by(|a, b| b.cmp(a));
                f64::from(sorted[k]) / 10.0
            });
            let grid = [0, 2, 3].map(|k| f64::from(first + k)).to_vec();
            let curves = SurvivalCurves::new(grid, survival).expect("the curves never rise");
            Sample { outcomes, curves, train }
        },
    )
}

/// Every score of this file's functions, in a fixed order.
fn all_scores(sample: &Sample) -> Vec<Result<f64, MetricError>> {
    let Sample { outcomes, curves, train } = sample;
    let times = unique_times(outcomes);
    let curve_of = |convention: BrierConvention| -> CensoringCurve {
        convention.censoring_curve(train).expect("there are training samples")
    };
    let flipped = curve_of(BrierConvention::Mlr3proba);
    let mut scores = Vec::new();
    for convention in CONVENTIONS {
        for rule in [IntegrationRule::Trapezoid, IntegrationRule::Simpson, IntegrationRule::PlainMean] {
            let censoring = curve_of(convention);
            let reading = Reading::Step;
            scores.push(integrated_brier_score_by(convention, rule, outcomes, curves, &censoring, reading, &times));
        }
    }
    let simpson = IntegrationRule::SimpsonAveraged;
    scores.push(integrated_nbll(outcomes, curves, &flipped, Reading::Step, simpson, &times));
    for rule in RULES {
        let score = rule.score(outcomes, curves, &flipped, Reading::Step, &times);
        scores.push(score.map(|score| score.value));
    }
    for density in DENSITIES {
        scores.push(rcll(outcomes, curves, density).map(|score| score.value));
        scores.push(negative_log_likelihood(outcomes, curves, density).map(|score| score.value));
        for form in [SnlForm::Documented, SnlForm::Mlr3proba] {
            scores.push(snl(outcomes, curves, &flipped, density, form).map(|score| score.value));
        }
    }
    scores
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_score_is_a_finite_number_or_an_error(sample in sample()) {
        for (k, score) in all_scores(&sample).into_iter().enumerate() {
            if let Ok(score) = score {
                prop_assert!(score.is_finite(), "score {k} is {score}");
            }
        }
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter(sample in sample(), seed in 0_usize..1000) {
        let n = sample.outcomes.n();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|row| (row * 7919 + seed) % 104_729 % 13);
        let shuffled = Sample {
            outcomes: sample.outcomes.select(&order),
            curves: sample.curves.select(&order),
            train: sample.train.clone(),
        };
        for (a, b) in all_scores(&sample).into_iter().zip(all_scores(&shuffled)) {
            match (a, b) {
                (Ok(a), Ok(b)) => prop_assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{a} and {b}"),
                (a, b) => prop_assert_eq!(a.is_err(), b.is_err()),
            }
        }
    }

    #[test]
    fn a_second_copy_of_everybody_changes_nothing(sample in sample()) {
        let twice: Vec<usize> = (0..sample.outcomes.n()).flat_map(|row| [row, row]).collect();
        let doubled = Sample {
            outcomes: sample.outcomes.select(&twice),
            curves: sample.curves.select(&twice),
            train: sample.train.clone(),
        };
        for (a, b) in all_scores(&sample).into_iter().zip(all_scores(&doubled)) {
            if let (Ok(a), Ok(b)) = (a, b) {
                prop_assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{a} and {b}");
            }
        }
    }
}
