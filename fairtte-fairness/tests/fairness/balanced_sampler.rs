//! `balanced-sampler` of the methods that compare groups within a batch: every group is drawn equally often.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use crate::common::{Plant, Study, Table};
use fairtte_data::Sampling;
use fairtte_fairness::StrategyConfig;
use fairtte_metrics::GroupId;
use serde_json::json;

const METHODS: [&str; 6] = ["laftr", "cfair", "lnl", "odr", "end", "fair-representation"];

/// 60 of 600 samples are in group 1, and every tenth of group 0 has no group.
fn study() -> Study {
    let mut table = Table::planted(600, 2, Plant { share: 0.1, ..Plant::default() });
    let first = table.groups.iter_mut().filter(|group| **group == Some(GroupId(0)));
    first.step_by(10).for_each(|group| *group = None);
    Study::new(table, 2)
}

fn sampling(study: &Study, name: &str, settings: &serde_json::Value) -> Sampling {
    let config: StrategyConfig = serde_json::from_value(json!({ name: settings })).unwrap();
    config.build(&study.spec, &study.cells).unwrap().sampling()
}

/// Shares of group 0, group 1 and samples without a group in 40 epochs.
fn drawn_shares(study: &Study, sampling: &Sampling) -> [f64; 3] {
    let rows: Vec<usize> = (0..600).collect();
    let drawn: Vec<usize> = (0..40).flat_map(|epoch| sampling.order(&rows, 7, epoch).unwrap()).collect();
    let share = |group: Option<GroupId>| {
        drawn.iter().filter(|row| study.cells.groups[**row] == group).count() as f64 / drawn.len() as f64
    };
    [share(Some(GroupId(0))), share(Some(GroupId(1))), share(None)]
}

// 24,000 draws: a share of 0.45 has a standard deviation of 0.0032.
#[test]
fn a_balanced_sampler_draws_every_group_equally_often_and_leaves_the_share_without_one() {
    let study = study();
    for name in METHODS.into_iter().chain(["group-dro"]) {
        let found = drawn_shares(&study, &sampling(&study, name, &json!({ "balanced-sampler": true })));
        for (share, expected) in found.into_iter().zip([0.455, 0.455, 0.09]) {
            assert!((share - expected).abs() < 0.015, "{name}: {found:?}");
        }
    }
}

#[test]
fn without_it_every_sample_comes_once() {
    let study = study();
    for name in METHODS {
        assert_eq!(sampling(&study, name, &json!({})), Sampling::Shuffled, "{name}");
    }
    assert_eq!(sampling(&study, "group-dro", &json!({ "balanced-sampler": false })), Sampling::Shuffled);
}
