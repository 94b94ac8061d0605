//! The result as text of at most 80 columns.

use std::fmt::Write as _;

use fairtte_models::Precision;

use super::network::{Measured, Rate};
use super::{BlockSizes, Layers, Report};

/// The tables.
pub(super) fn report(report: &Report) -> String {
    let mut text = report.device.clone();
    if let Some(network) = report.networks.first().filter(|network| network.precision != Precision::F32) {
        let _ = write!(text, ", training in {}", network.precision);
    }
    if let Some(set) = &report.instruction_set {
        let _ = write!(text, ", kernels for {set}");
    }
    let _ = write!(text, ", {} threads", report.threads);
    if let Some(processor) = &report.processor {
        let _ = write!(text, ", {processor}");
    }
    if let Some(BlockSizes { l2, rows, columns, .. }) = &report.blocks {
        let _ = write!(text, "\nblocks for {} KiB of L2: {rows} rows, {columns} columns", l2 / 1024);
    }
    text.push_str("\n\n");
    let _ = writeln!(
        text,
        "{:<19} {:<17} {:>10} {:>11} {:>8} {:>9}",
        "network", "batch", "training/s", "inference/s", "memory", "first"
    );
    let with_most = report.networks.iter().filter(|network| network.threads == report.threads);
    with_most.for_each(|network| row(&mut text, network));
    if report.networks.iter().any(|network| network.training.efficiency.is_some()) {
        text.push('\n');
        threads(&mut text, &report.networks);
    }
    if report.networks.iter().any(|network| network.estimate.is_some()) {
        text.push('\n');
    }
    // On the most threads, as the first table: a line has no room for their number.
    for network in report.networks.iter().filter(|network| network.threads == report.threads) {
        if let Some(estimate) = &network.estimate {
            let _ = writeln!(
                text,
                "{}: {} of {} samples {} {}, predicting them {}",
                network.backbone,
                if estimate.epochs == 1 { "an epoch".to_owned() } else { format!("{} epochs", estimate.epochs) },
                estimate.samples,
                if estimate.epochs == 1 { "takes" } else { "take" },
                hours(estimate.training_hours),
                hours(estimate.inference_hours),
            );
        }
    }
    if let Some(found) = &report.layers {
        text.push('\n');
        layers(&mut text, found);
    }
    let on_device = report.networks.iter().any(|network| network.device_memory.is_some());
    let place = if on_device { "reserved on the device" } else { "on the host" };
    let _ = write!(text, "\nSteps of the backbone alone, without reading images; memory {place}.");
    text
}

fn row(text: &mut String, network: &Measured) {
    let shape: Vec<_> = network.shape[1..].iter().map(usize::to_string).collect();
    let batch = format!("{} x {}", network.shape[0], shape.join("x"));
    let gibibytes = |bytes: u64| format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30));
    let memory = network.device_memory.or(network.peak_memory).map_or("-".to_owned(), gibibytes);
    let _ = writeln!(
        text,
        "{:<19} {:<17} {:>10} {:>11} {:>8} {:>7.2} s",
        network.backbone,
        batch,
        rate(network.training.samples_per_second),
        rate(network.inference.samples_per_second),
        memory,
        network.training.first_seconds,
    );
}

/// Rates by the number of threads.
fn threads(text: &mut String, networks: &[Measured]) {
    let _ = writeln!(
        text,
        "{:<19} {:>7} {:>10} {:>10} {:>11} {:>10}",
        "network", "threads", "training/s", "efficiency", "inference/s", "efficiency"
    );
    let percent = |rate: &Rate| rate.efficiency.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share));
    for Measured { backbone, threads, training, inference, .. } in networks {
        let (per_second, of) =
            ([training, inference].map(|of| rate(of.samples_per_second)), [training, inference].map(percent));
        let _ = writeln!(
            text,
            "{backbone:<19} {threads:>7} {:>10} {:>10} {:>11} {:>10}",
            per_second[0], of[0], per_second[1], of[1]
        );
    }
}

fn layers(text: &mut String, layers: &Layers) {
    let _ = writeln!(text, "peak of multiply-adds: {:.0} GFLOP/s", layers.peak / 1e9);
    let _ = writeln!(text, "{:<47} {:>9} {:>7}  computed as", "layer, with its gradients", "time", "of peak");
    for layer in &layers.measured {
        let share = layer.share_of_peak.map_or("memory".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        let time = format!("{:.2} ms", 1e3 * layer.seconds);
        let _ = writeln!(text, "{:<47} {time:>9} {share:>7}  {}", layer.name, layer.algorithm);
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.2}") } else { format!("{per_second:.0}") }
}

fn hours(hours: f64) -> String {
    if hours < 1.0 / 60.0 {
        format!("{:.1} s", 3600.0 * hours)
    } else if hours < 2.0 {
        format!("{:.1} min", 60.0 * hours)
    } else {
        format!("{hours:.1} h")
    }
}
