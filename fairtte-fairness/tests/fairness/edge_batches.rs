//! One step of every strategy with every head on the batches that occur with small groups: a group missing, a group of one
//! sample, no group at all, one group only, no event, two samples. The task is always trained, and no number is NaN.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::tensor::Device;
use fairtte_data::HostBatch;
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{Accumulation, Clock, StepContext, TrainingCells};
use fairtte_fairness::{LearnerSpec, NetworkSpec, OptimiserConfig, Outputs, Strategy, StrategyConfig};
use fairtte_metrics::{GroupId, Outcomes, SampleId};
use fairtte_models::{BackboneKind, EncoderConfig};
use fairtte_survival::{
    ClassifierConfig, CoxConfig, CoxTimeConfig, CutPoints, DeepHitConfig, HeadConfig, NnetSurvivalConfig,
    PcHazardConfig, PmfConfig, SurvivalHead,
};

const N_GROUPS: u32 = 4;
const N_COLUMNS: usize = 3;

/// 160 training samples: every cell of group and stratum is filled.
fn outcomes() -> (Vec<f64>, Vec<bool>) {
    let of = |i: usize| (1.0 + ((i * 7) % 40) as f64 / 4.0, !i.is_multiple_of(3));
    (0..160).map(of).unzip()
}

struct Bench {
    head: Box<dyn SurvivalHead>,
    cut_points: CutPoints,
    train: Outcomes,
}

impl Bench {
    fn new(head: &HeadConfig) -> Self {
        let (time, event) = outcomes();
        let train = Outcomes::new(time, event).unwrap();
        Self { head: head.build().unwrap(), cut_points: CutPoints::equidistant(&train, 6).unwrap(), train }
    }

    fn strategy(&self, name: &str) -> Box<dyn Strategy> {
        let config: StrategyConfig = serde_json::from_value(serde_json::json!({ name: {} })).unwrap();
        let encoder = EncoderConfig { representation: 8, dropout: 0.2, ..EncoderConfig::new(BackboneKind::Mlp) };
        let classifier =
            ClassifierConfig::for_head(self.head.as_ref(), &self.cut_points, &self.train, encoder.hidden).unwrap();
        let spec = LearnerSpec {
            network: NetworkSpec { encoder, channels: N_COLUMNS, classifier },
            optimiser: OptimiserConfig::default(),
            seed: 2,
            device: Device::flex(),
            pretrained: None,
        };
        let (time, event) = outcomes();
        let targets = self.cut_points.targets("training", &time, &event).unwrap();
        let cells = TrainingCells {
            attribute: "sex x site".to_owned(),
            levels: ["F a", "F b", "M a", "M b"].map(str::to_owned).to_vec(),
            groups: (0..160).map(|i| Some(GroupId(i % N_GROUPS))).collect(),
            event,
            interval: targets.intervals.index,
            n_cut_points: self.cut_points.n(),
        };
        config.build(&spec, &cells).unwrap()
    }
}

fn batch(groups: &[Option<u32>], has_event: impl Fn(usize) -> bool) -> Batch {
    let n = groups.len();
    let host = HostBatch {
        rows: (0..n).collect(),
        sample_ids: (0..n).map(|i| SampleId::new(format!("s{i}"))).collect(),
        pixels: (0..n * N_COLUMNS).map(|k| ((k * 13) % 17) as f32 / 8.0 - 1.0).collect(),
        stored: None,
        shape: vec![n, N_COLUMNS],
        time: (0..n).map(|i| 1.5 + ((i * 5) % 9) as f64).collect(),
        event: (0..n).map(has_event).collect(),
        competing: vec![0; n],
        groups: groups.iter().map(|group| group.map(GroupId)).collect(),
        masks: None,
    };
    Batch::from_host(host, &Device::flex().autodiff()).unwrap()
}

fn heads() -> [HeadConfig; 6] {
    [
        HeadConfig::Pmf(PmfConfig::default()),
        HeadConfig::DeepHit(DeepHitConfig::default()),
        HeadConfig::NnetSurvival(NnetSurvivalConfig::default()),
        HeadConfig::Cox(CoxConfig::default()),
        HeadConfig::CoxTime(CoxTimeConfig { controls: 2, shrink: 0.01, ..CoxTimeConfig::default() }),
        HeadConfig::PcHazard(PcHazardConfig::default()),
    ]
}

#[test]
fn every_strategy_makes_a_step_on_every_kind_of_batch() {
    let some = |codes: &[u32]| codes.iter().map(|code| Some(*code)).collect::<Vec<_>>();
    let mut no_group_twice = some(&[0, 1, 2, 3, 0, 1, 2, 3]);
    (no_group_twice[1], no_group_twice[6]) = (None, None);
    let two_of_three = |i: usize| !i.is_multiple_of(3);
    let batches = [
        ("all groups", batch(&some(&[0, 1, 2, 3, 0, 1, 2, 3]), two_of_three)),
        ("a group is missing", batch(&some(&[0, 1, 3, 3, 0, 1, 0, 3]), two_of_three)),
        ("a group has one sample", batch(&some(&[0, 1, 3, 3, 0, 1, 0, 2]), two_of_three)),
        ("some without group", batch(&no_group_twice, two_of_three)),
        ("no sample has a group", batch(&[None; 6], two_of_three)),
        ("one group only", batch(&some(&[2; 6]), two_of_three)),
        ("every group once", batch(&some(&[3, 0, 2, 1]), two_of_three)),
        ("no event", batch(&some(&[0, 1, 2, 3, 0, 1, 2, 3]), |_| false)),
        ("one event", batch(&some(&[0, 1, 2, 3, 0, 1, 2, 3]), |i| i == 4)),
        ("two samples", batch(&some(&[0, 1]), |_| true)),
    ];
    let mut n_steps = 0;
    for head in heads() {
        let bench = Bench::new(&head);
        for (name, _) in StrategyConfig::catalogue() {
            let mut strategy = bench.strategy(name);
            for (step, (what, batch)) in batches.iter().enumerate() {
                if name == "controlled-attribute" {
                    continue; // its batches hold one group each
                }
                let clock = Clock::default();
                let context = StepContext {
                    outputs: Outputs { head: bench.head.as_ref(), cut_points: &bench.cut_points },
                    seed: 2,
                    epoch: 0,
                    step,
                    rate: 1.0,
                    accumulation: Accumulation::default(),
                    loss_scale: 1.0,
                    clock: &clock,
                };
                let head = bench.head.name();
                let report = strategy.step(batch, &context).unwrap_or_else(|e| panic!("{name} {head} {what}: {e}"));
                let numbers = [report.task_loss, report.objective, report.gradient_norm];
                let terms = report.terms.iter().map(|(_, value)| *value);
                assert!(numbers.into_iter().chain(terms).all(f64::is_finite), "{name} {head} {what}: {report:?}");
                let nothing_to_learn = *what == "no event" && head.starts_with("cox");
                let learns = report.gradient_norm > 1e-6;
                assert!(learns || nothing_to_learn, "{name} {head} {what}: {report:?}");
                n_steps += 1;
            }
        }
    }
    assert_eq!(n_steps, 6 * (StrategyConfig::catalogue().len() - 1) * batches.len());
}
