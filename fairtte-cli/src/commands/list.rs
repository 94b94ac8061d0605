//! `fairtte list`: the names that a run file can use, taken from the registries.

use std::collections::BTreeMap;

use fairtte_classical::Estimator;
#[cfg(feature = "train")]
use fairtte_fairness::StrategyConfig;
use fairtte_metrics::evaluation::{CLASS_METRICS, Metric, known_metrics};
#[cfg(feature = "train")]
use fairtte_models::BackboneKind;
#[cfg(feature = "train")]
use fairtte_models::kernels::InstructionSet;
use fairtte_records::Monitor;
#[cfg(feature = "train")]
use fairtte_survival::HeadConfig;

use super::{print, print_json};
use crate::CliError;
use crate::args::{List, Listed};
#[cfg(feature = "train")]
use crate::device;

#[cfg(feature = "train")]
const ALL: [Listed; 9] = [
    Listed::Data,
    Listed::Backbones,
    Listed::Heads,
    Listed::Strategies,
    Listed::Estimators,
    Listed::Metrics,
    Listed::ClassMetrics,
    Listed::Monitors,
    Listed::Devices,
];

/// What a build without training knows of.
#[cfg(not(feature = "train"))]
const ALL: [Listed; 5] = [Listed::Data, Listed::Estimators, Listed::Metrics, Listed::ClassMetrics, Listed::Monitors];

pub(super) fn run(arguments: &List) -> Result<(), CliError> {
    let chosen = arguments.what.map_or_else(|| ALL.to_vec(), |what| vec![what]);
    #[cfg(feature = "train")]
    if arguments.what == Some(Listed::Devices) {
        fairtte_models::check_environment()?;
    }
    let sections: Vec<_> = chosen.into_iter().map(section).collect();
    if arguments.json {
        let names: BTreeMap<_, BTreeMap<_, _>> =
            sections.into_iter().map(|(title, _, entries)| (title, entries.into_iter().collect())).collect();
        return print_json(&names);
    }
    for (title, key, entries) in sections {
        print(format!("{title} ({key})"));
        let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, about) in entries {
            print(format!("  {name:width$}  {about}"));
        }
    }
    Ok(())
}

type Section = (&'static str, &'static str, Vec<(&'static str, String)>);

/// Title, the place in a run file, and the entries with one line each.
fn section(what: Listed) -> Section {
    #[cfg(feature = "train")]
    let pairs = |entries: &[(&'static str, &'static str)]| {
        entries.iter().map(|(name, about)| (*name, (*about).to_owned())).collect::<Vec<_>>()
    };
    match what {
        Listed::Data => {
            let entries =
                fairtte_data::adapters::catalogue().into_iter().map(|entry| (entry.name, entry.about.to_owned()));
            ("data", "[data.NAME]", entries.collect())
        }
        #[cfg(feature = "train")]
        Listed::Backbones => {
            let entries = BackboneKind::ALL.into_iter().map(|kind| (kind.name(), kind.summary().to_owned()));
            ("backbones", "model.backbone = \"NAME\"", entries.collect())
        }
        #[cfg(feature = "train")]
        Listed::Heads => ("heads", "[head.NAME]", pairs(&HeadConfig::catalogue())),
        #[cfg(feature = "train")]
        Listed::Strategies => ("strategies", "[strategy.NAME]", pairs(&StrategyConfig::catalogue())),
        Listed::Estimators => {
            let entries = Estimator::CATALOGUE.iter().map(|(name, about)| (*name, (*about).to_owned()));
            ("estimators", "[estimator.NAME]", entries.collect())
        }
        Listed::Metrics => {
            let entry = |metric: &'static dyn Metric| {
                let horizon = if metric.has_horizon() { ", or at another time with @TIME" } else { "" };
                let threshold = if metric.has_threshold() { "; at --threshold, or at :RISK" } else { "" };
                (metric.name(), format!("{}{horizon}{threshold}", metric.summary()))
            };
            ("metrics", "evaluation.metrics = [\"NAME\", ..]", known_metrics().into_iter().map(entry).collect())
        }
        Listed::ClassMetrics => {
            let entries = CLASS_METRICS.iter().map(|metric| (metric.name, metric.convention.to_owned()));
            ("class metrics", "evaluate --task binary --metrics NAME,..", entries.collect())
        }
        Listed::Monitors => {
            let entries = Monitor::ALL.into_iter().map(|monitor| (monitor.name(), monitor.summary().to_owned()));
            ("monitors", "training.monitor = \"NAME\"", entries.collect())
        }
        #[cfg(feature = "train")]
        Listed::Devices => {
            let entry = |(name, about, present): (&'static str, &str, bool)| match (name, present) {
                (_, false) => (name, format!("{about}; not in this build")),
                ("flex", true) => (name, format!("{about}; kernels for {}", InstructionSet::in_use().name())),
                (_, true) => (name, about.to_owned()),
            };
            ("devices", "--device NAME", device::CATALOGUE.into_iter().map(entry).collect())
        }
    }
}
