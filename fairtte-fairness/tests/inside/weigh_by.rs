use fairtte_metrics::{GroupId, Outcomes};
use fairtte_survival::{Cox, CutPoints, DeepHit, DeepHitConfig, NnetSurvival, SurvivalHead};

use super::*;
use crate::Outputs;
use crate::strategies::worked_cases::{gradient, tensor, values};
use crate::strategies::{
    Accumulation, Clock, DroChiSquareConfig, Febs, FebsConfig, GroupDro, GroupDroConfig, Objective, Terms,
    TrainingCells,
};

/// Twelve events at twelve times: those of group 0 come first.
const N: usize = 12;

fn groups() -> Vec<Option<GroupId>> {
    (0..N).map(|i| Some(GroupId(u32::from(i >= N / 2)))).collect()
}

fn methods(weigh_by: WeighBy) -> [Box<dyn Objective>; 2] {
    let levels = ["early", "late"].map(str::to_owned).to_vec();
    let (event, interval) = (vec![true; N], vec![1; N]);
    let attribute = "when".to_owned();
    let cells = TrainingCells { attribute, levels, groups: groups(), event, interval, n_cut_points: 4 };
    let dro = GroupDroConfig { eta: 1.0, weigh_by, ..GroupDroConfig::default() };
    let febs = FebsConfig { gamma: 1.0, weigh_by, ..FebsConfig::default() };
    [Box::new(GroupDro::new(&dro, &cells).unwrap()), Box::new(Febs::new(&febs, &cells).unwrap())]
}

/// Weight of every sample in the value of a method: its derivative by the losses.
fn weights(method: &mut dyn Objective, head: &dyn SurvivalHead, outputs: &[f64]) -> Vec<f64> {
    let train = Outcomes::new(vec![0.5, 12.0], vec![true, false]).unwrap();
    let (cuts, clock) = (CutPoints::equidistant(&train, 5).unwrap(), Clock::default());
    let time: Vec<f64> = (0..N).map(|i| 0.5 + i as f64).collect();
    let targets = cuts.targets("test", &time, &[true; N]).unwrap();
    let accumulation = Accumulation::default();
    let context = StepContext {
        outputs: Outputs { head, cut_points: &cuts },
        seed: 5,
        epoch: 0,
        step: 0,
        rate: 1.0,
        accumulation,
        loss_scale: 1.0,
        clock: &clock,
    };
    let outputs: Tensor<2> = tensor(outputs.to_vec(), [N, outputs.len() / N]);
    // The losses are treated as given: the weights carry no gradient.
    let losses: Tensor<1> = tensor(values(&context.subject_losses(outputs.clone(), &targets)), [N]).require_grad();
    let terms = Terms {
        losses: losses.clone(),
        counted: &[true; N],
        outputs: outputs.clone(),
        representation: outputs.clone(),
        before_dropout: outputs,
        targets: &targets,
        groups: &groups(),
        context: &context,
    };
    gradient(&method.value(&terms).unwrap().objective, &losses)
}

/// Weight of the late group divided by that of the early one.
fn late_to_early(weights: &[f64]) -> f64 {
    weights[N / 2..].iter().sum::<f64>() / weights[..N / 2].iter().sum::<f64>()
}

#[test]
fn without_knowledge_early_events_gain_weight_by_loss_and_none_by_likelihood() {
    let deephit = DeepHit::new(&DeepHitConfig::default()).unwrap();
    for (head, width) in [(&Cox::default() as &dyn SurvivalHead, 1), (&deephit, 5)] {
        for by in [WeighBy::Loss, WeighBy::Likelihood] {
            for mut method in methods(by) {
                let found = late_to_early(&weights(method.as_mut(), head, &vec![0.7; N * width]));
                let what = format!("{} {} {by:?}: {found}", method.name(), head.name());
                match by {
                    WeighBy::Loss => assert!(found < 0.97, "{what}"),
                    WeighBy::Likelihood => assert!((found - 1.0).abs() < 1e-12, "{what}"),
                }
            }
        }
    }
}

// The early events have the highest predicted risk, as expected; of the late ones the first has the lowest. Mean losses
// 1.63 and 1.37, mean misfits 1.88 and 2.76 (computed separately from the formula).
#[test]
fn a_late_group_that_is_fitted_badly_gains_weight_by_likelihood_alone() {
    let output = |i: usize| if i < N / 2 { 1.0 - 0.2 * i as f64 } else { 0.2 * (i - N / 2) as f64 - 1.0 };
    let outputs: Vec<f64> = (0..N).map(output).collect();
    for by in [WeighBy::Loss, WeighBy::Likelihood] {
        for mut method in methods(by) {
            let found = late_to_early(&weights(method.as_mut(), &Cox::default(), &outputs));
            assert_eq!(found > 1.0, by == WeighBy::Likelihood, "{} {by:?}: {found}", method.name());
        }
    }
}

#[test]
fn heads_whose_samples_stand_alone_are_weighed_alike_by_both() {
    let outputs: Vec<f64> = (0..N * 5).map(|k| ((k * 7) % 11) as f64 / 5.0 - 1.0).collect();
    let of = |by| methods(by).map(|mut method| weights(method.as_mut(), &NnetSurvival, &outputs));
    assert_eq!(of(WeighBy::Loss), of(WeighBy::Likelihood));
}

#[test]
fn run_files_say_what_weights_are_computed_from() {
    let config: GroupDroConfig = serde_json::from_str(r#"{ "weigh-by": "likelihood" }"#).unwrap();
    assert_eq!(config.weigh_by, WeighBy::Likelihood);
    let defaults = (GroupDroConfig::default().weigh_by, FebsConfig::default().weigh_by);
    assert_eq!(defaults, (WeighBy::Loss, WeighBy::Loss));
    assert_eq!(DroChiSquareConfig::default().weigh_by, WeighBy::Loss);
}
