//! How often a 95 % interval of the change of a gap contains the true value: for the gap max - min itself, and for the
//! signed difference of two groups that were chosen on another sample. Prints a Markdown table.
//!
//! Model m scores a subject of risk x as x + sigma noise, with sigma by model and group: the larger it is, the lower
//! the group's C^td. 600 test subjects, exponential times with hazard exp(x), uniform censoring (about half are
//! events). The two groups are those between which the first model differs most in a validation sample of 300 other
//! subjects, as in `fairtte compare`. True values: one sample of 400,000 subjects.

#![expect(clippy::print_stdout, reason = "the table is the result")]
#![expect(clippy::unwrap_used, reason = "simulated input is valid")]

use fairtte_metrics::evaluation::{SampledMetric, SampledValue, sample_metrics};
use fairtte_metrics::fairness::Comparison;
use fairtte_metrics::rank::{TieTest, TiedPairs, harrell_concordance};
use fairtte_metrics::resampling::{IntervalMethod, Replicated, paired_difference};
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, Direction, EvaluationSettings, GroupId, Groups, Outcomes, Reading, Risk, SubjectId,
    SurvivalCurves,
};
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;

const N_TEST: usize = 600;
const N_VALIDATION: usize = 300;
const REPLICATES: usize = 400;

struct Case {
    what: &'static str,
    /// Sigma by group, of the first and of the second model.
    sigma: [&'static [f64]; 2],
}

const CASES: [Case; 6] = [
    Case { what: "2 groups, no gap in either", sigma: [&[1.0, 1.0], &[1.0, 1.0]] },
    Case { what: "2 groups, the second closes the gap", sigma: [&[0.4, 1.6], &[1.0, 1.0]] },
    Case { what: "2 groups, the same gap in both", sigma: [&[0.4, 1.6], &[0.4, 1.6]] },
    Case { what: "4 groups, no gap in either", sigma: [&[1.0; 4], &[1.0; 4]] },
    Case { what: "4 groups, the second closes the gap", sigma: [&[0.4, 0.4, 0.4, 1.6], &[0.8; 4]] },
    Case { what: "4 groups, the same gap in both", sigma: [&[0.4, 0.4, 0.4, 1.6], &[0.4, 0.4, 0.4, 1.6]] },
];

/// Subjects, assigned to the groups in rotation, and the scores of two models.
struct Sample {
    outcomes: Outcomes,
    groups: Vec<u32>,
    scores: [Vec<f64>; 2],
}

fn draw(case: &Case, n: usize, seed: u64, name: &str) -> Sample {
    let mut rng = stream(seed, name, &[n as u64]);
    let n_groups = u32::try_from(case.sigma[0].len()).unwrap();
    let (mut time, mut event, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let mut scores = [Vec::new(), Vec::new()];
    for i in 0..u32::try_from(n).unwrap() {
        let group = i % n_groups;
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let x = normal();
        for (scores, sigma) in scores.iter_mut().zip(&case.sigma) {
            scores.push(x + sigma[group as usize] * normal());
        }
        let event_time = -rng.random::<f64>().max(1e-12).ln() * (-x).exp();
        let censored_at = 2.0 * rng.random::<f64>();
        time.push(event_time.min(censored_at).max(1e-9));
        event.push(event_time <= censored_at);
        groups.push(group);
    }
    Sample { outcomes: Outcomes::new(time, event).unwrap(), groups, scores }
}

/// The C of every group; C^td of curves that do not cross is Harrell's C of the score.
fn truth(case: &Case, model: usize) -> Vec<f64> {
    let sample = draw(case, 400_000, 1, "truth");
    let c_of = |sigma: f64| {
        let group = case.sigma[model].iter().position(|s| s.to_bits() == sigma.to_bits()).unwrap();
        let rows: Vec<usize> = (0..sample.groups.len()).filter(|i| sample.groups[*i] as usize == group).collect();
        let risk = Risk::new(rows.iter().map(|i| sample.scores[model][*i]).collect()).unwrap();
        let outcomes = sample.outcomes.select(&rows);
        harrell_concordance(&outcomes, &risk, TieTest::Exact, TiedPairs::Predictions).unwrap().value
    };
    // Groups with the same sigma have the same true C, so they share one estimate.
    case.sigma[model].iter().map(|sigma| c_of(*sigma)).collect()
}

fn c_td(case: &Case, sample: &Sample, model: usize, replicates: usize) -> SampledMetric {
    let subjects: Vec<SubjectId> = (0..sample.groups.len()).map(|i| SubjectId::new(format!("{i:06}"))).collect();
    let levels = (0..case.sigma[0].len()).map(|g| g.to_string()).collect();
    let membership = sample.groups.iter().map(|g| Some(GroupId(*g))).collect();
    let groups = [Groups::new("group", levels, membership).unwrap()];
    let survival = |(row, _): (usize, usize)| 1.0 / (1.0 + sample.scores[model][row].exp());
    let curves = SurvivalCurves::new(vec![1e-9], Array2::from_shape_fn((subjects.len(), 1), survival)).unwrap();
    let censoring = CensoringCurve::fit(&sample.outcomes, CensoringTies::EventsFirst).unwrap();
    let settings = EvaluationSettings {
        replicates,
        reading: Reading::Step,
        n_times: 2,
        over_time: 0,
        ..EvaluationSettings::default()
    };
    let found = sample_metrics(&subjects, &sample.outcomes, &curves, &censoring, &groups, &settings).unwrap();
    found.metric("c_td_antolini_strict").unwrap().clone()
}

fn groups(metric: &SampledMetric) -> Vec<&SampledValue> {
    metric.attributes[0].groups.iter().map(|group| &group.value).collect()
}

fn gap_of(values: &[f64]) -> f64 {
    Comparison::Gap.of(values, 0.0, Direction::HigherIsBetter).unwrap()
}

fn gap(metric: &SampledMetric) -> SampledValue {
    let groups = groups(metric);
    let values: Vec<f64> = groups.iter().map(|group| group.value.clone().unwrap()).collect();
    let in_draw =
        |b: usize| Some(gap_of(&groups.iter().map(|group| group.replicates[b]).collect::<Option<Vec<f64>>>()?));
    SampledValue { value: Ok(gap_of(&values)), replicates: (0..groups[0].replicates.len()).map(in_draw).collect() }
}

/// Positions of the largest and of the smallest value.
fn extremes(values: &[f64]) -> (usize, usize) {
    let by = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
    ((0..values.len()).max_by(by).unwrap(), (0..values.len()).min_by(by).unwrap())
}

/// Whether an interval contains the true value, whether it excludes 0, and its width.
type Held = (bool, bool, f64);

fn interval(second: &SampledValue, first: &SampledValue, truth: f64) -> Held {
    let (a, b) = (second.value.clone().unwrap(), first.value.clone().unwrap());
    let (a, b) = (Replicated::new(a, &second.replicates), Replicated::new(b, &first.replicates));
    let found = paired_difference(&a, &b, 0.95, IntervalMethod::Percentile).unwrap().interval;
    let holds = |x: f64| found.lower <= x && x <= found.upper;
    (holds(truth), !holds(0.0), found.upper - found.lower)
}

fn main() {
    let n_samples: u64 = std::env::args().nth(1).map_or(1000, |n| n.parse().unwrap());
    println!(
        "| case | true change of the gap | gap: coverage | excludes 0 | width | difference: coverage | excludes 0 | width |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for case in &CASES {
        let true_c = [truth(case, 0), truth(case, 1)];
        let one = |seed: u64| {
            let validation = draw(case, N_VALIDATION, seed, "validation");
            let of_validation = c_td(case, &validation, 0, 0);
            let values: Vec<f64> = groups(&of_validation).iter().map(|g| g.value.clone().unwrap()).collect();
            let (high, low) = extremes(&values);
            let test = draw(case, N_TEST, seed, "test");
            let [first, second] = [0, 1].map(|model| c_td(case, &test, model, REPLICATES));
            let difference = |metric: &SampledMetric| groups(metric)[high].minus(groups(metric)[low]);
            let true_difference = |model: usize| true_c[model][high] - true_c[model][low];
            let of_gap = interval(&gap(&second), &gap(&first), gap_of(&true_c[1]) - gap_of(&true_c[0]));
            let change = true_difference(1) - true_difference(0);
            (of_gap, interval(&difference(&second), &difference(&first), change))
        };
        let found: Vec<(Held, Held)> = (0..n_samples).into_par_iter().map(one).collect();
        let (of_gap, of_difference): (Vec<Held>, Vec<Held>) = found.into_iter().unzip();
        let summary = |found: &[Held]| {
            let share = |n: usize| 100.0 * n as f64 / found.len() as f64;
            let covered = share(found.iter().filter(|held| held.0).count());
            let excluded = share(found.iter().filter(|held| held.1).count());
            let width = found.iter().map(|held| held.2).sum::<f64>() / found.len() as f64;
            format!("{covered:.1} % | {excluded:.1} % | {width:.3}")
        };
        let change = gap_of(&true_c[1]) - gap_of(&true_c[0]);
        println!("| {} | {change:+.3} | {} | {} |", case.what, summary(&of_gap), summary(&of_difference));
    }
}
