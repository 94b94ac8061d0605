//! Stochastic weight averaging, densely (SWAD; Cha et al. 2021, Algorithm 1, arXiv 2102.08604).
//!
//! Acts on the update: trains as `erm`, then predicts with the mean of the weights of all iterations between the start and
//! the end of the valley of the validation loss (`valley.rs` has the rule, and where it differs from Algorithm 1). Needs no
//! attribute, unless the criterion is the worst group's loss.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `n-converge` | 2 | >= 1 | Ns: evaluations in the window that finds the start; source 3 |
//! | `n-tolerance` | 3 | >= 1 | Ne: evaluations above the threshold that end the valley; source 6 |
//! | `tolerance-ratio` | 0.05 | >= 0 | r: threshold = mean + r abs(mean) of the window; source 0.3 |
//! | `interval` | 0 | | steps between evaluations within an epoch (the last ends with the epoch); 0 = once per epoch |
//! | `criterion` | `nll` | `nll`, `worst-group-nll` | the validation loss that is watched |
//!
//! After training the averaged weights replace those of the best epoch, and the running statistics of batch norm, which no
//! average of weights has, are recomputed: the training part is passed once, without augmentation, in training mode without
//! dropout or stochastic depth; each statistic becomes its mean over the batches, weighted by their samples. Rows pass in a
//! fixed shuffled order, as in training: neighbouring rows of a cohort often belong to one subject or site, so batches
//! in its order would miss the variance between them, and deeper layers would see inputs normalised by subject. Batch
//! norms frozen by `[pretrained]` keep their statistics. Then the baseline of the Cox heads is fitted.
//! Means, not sums, are kept, in the floating-point type of the network: Ns networks before the start, two after it,
//! and one for the iterations since the last evaluation.
//!
//! Two caveats: the loop may end before a valley is found, by its epochs or by `patience`; then the mean of the
//! last segment is used, and the log shows it (term `swad: valley found` is 0). And the monitor chooses no epoch here: it is
//! used for patience only. [`SwadConfig::training_notes`] reports epochs or patience that allow fewer evaluations than
//! Ns + Ne; the defaults need 5, which is the default patience, those of the source 9.
//! Survival: the loss is the likelihood of the validation curves on the time grid. MEDFAIR watches 1 - worst-group AUC, so it
//! needs the attribute; `worst-group-nll` is the counterpart. Golden values: our worked cases `golden/swad.json`.

mod saved;
mod settings;
mod valley;
mod weights;

use std::path::Path;

use burn::tensor::Tensor;
use fairtte_metrics::seeds::stream;
use fairtte_models::{Noise, Pixels};
use rand::seq::SliceRandom as _;

use self::saved::{NetworkValley, load_valley, save_valley};
use self::valley::Valley;
use self::weights::{Statistics, Weights};
use super::one_network::of_one_network;
use super::pass::plain_step;
use super::{
    Idle, NETWORK, NamedPart, Saved, StepContext, StepReport, Strategy, StrategySettings as _, Warns, Watch,
    load_parts, save_parts,
};
use crate::monitor::Validation;
use crate::predict::{EvaluationPart, Parts};
use crate::{Batch, EncoderNetwork as _, FairnessError, Learner, SurvivalNetwork};

pub use settings::{SwadConfig, SwadCriterion};

/// Averages the weights of a valley of the validation loss.
#[derive(Debug)]
pub struct Swad {
    config: SwadConfig,
    learner: Learner,
    valley: NetworkValley,
}

impl Swad {
    /// Combines the settings and the network that is trained.
    ///
    /// # Errors
    /// As [`SwadConfig::validate`].
    pub fn new(config: &SwadConfig, learner: Learner) -> Result<Self, FairnessError> {
        config.validate()?;
        let valley = Valley::new(config.n_converge, config.n_tolerance, config.tolerance_ratio);
        Ok(Self { config: *config, learner, valley })
    }
}

impl Strategy for Swad {
    fn name(&self) -> &'static str {
        "swad"
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let report = plain_step(&mut self.learner, NETWORK, batch, context)?;
        if context.accumulation.last {
            self.valley.add(Weights::of(self.learner.network()));
        }
        Ok(report)
    }

    of_one_network!();

    fn validation_interval(&self) -> Option<usize> {
        (self.config.interval > 0).then_some(self.config.interval)
    }

    fn after_validation(&mut self, validation: &Validation) -> Result<(), FairnessError> {
        let worst = || validation.groups.iter().map(|group| group.nll).reduce(f64::max);
        self.valley.evaluate(match self.config.criterion {
            SwadCriterion::Nll => validation.nll,
            SwadCriterion::WorstGroupNll => worst().unwrap_or(validation.nll),
        });
        Ok(())
    }

    fn log_terms(&self) -> Vec<(String, f64)> {
        let is_found = f64::from(u8::from(self.valley.counters.start.is_some()));
        let (first, last) = self.valley.segments().unwrap_or((0, 0));
        let n = self.valley.average().map_or(0, |mean| mean.n) as f64;
        [("valley found", is_found), ("first segment", first as f64), ("last segment", last as f64), ("iterations", n)]
            .map(|(name, value)| (format!("swad: {name}"), value))
            .to_vec()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch {
            name: "no-valley",
            terms: vec!["swad: valley found".to_owned()],
            idle: Idle::Below(1.0),
            warns: Warns::AtLast,
            means: "training ended before a valley of the validation loss began, so the weights are the mean of the last segment",
            change: "raise `epochs`, and `patience` above `n-converge` + `n-tolerance`",
        }]
    }

    fn wants_to_stop(&self) -> bool {
        self.valley.counters.stopped_at.is_some()
    }

    fn finish(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        let Some(average) = self.valley.average() else { return Ok(()) };
        let averaged = average.weights.written_into(self.learner.network());
        let mut statistics = Statistics::new(averaged);
        if !statistics.is_empty() {
            let rows = shuffled(parts.train.rows);
            EvaluationPart { rows: &rows, ..parts.train }.for_each_batch(|batch| {
                let pixels = with_autodiff(batch.pixels.clone());
                // Classifiers have no batch norm.
                let pass = |network: &SurvivalNetwork| network.encoder().forward(pixels, &mut Noise::Off).map(drop);
                Ok(statistics.add(batch.n(), pass)?)
            })?;
        }
        self.learner.replace(statistics.finish());
        self.learner.fit_baseline(&parts.train)
    }

    fn describe_weights(&self, epoch: usize) -> String {
        let Some((first, last)) = self.valley.segments() else { return format!("epoch {epoch}") };
        let unit = if self.config.interval == 0 { "epoch" } else { "evaluation" };
        if first == last {
            format!("averaged over {unit} {first}")
        } else {
            format!("averaged over {unit}s {first} to {last}")
        }
    }

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner)]
    }

    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        save_parts(self.parts(), folder, what)?;
        match what {
            Saved::Weights => Ok(()),
            Saved::Everything => save_valley(&self.valley, folder),
        }
    }

    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        load_parts(self.parts(), folder, what)?;
        match what {
            Saved::Weights => Ok(()),
            Saved::Everything => load_valley(&mut self.valley, folder, self.learner.network()),
        }
    }
}

/// The rows in the order of the pass for batch norm: one for all runs, so that it follows from weights and data alone.
fn shuffled(rows: &[usize]) -> Vec<usize> {
    let mut rows = rows.to_vec();
    rows.shuffle(&mut stream(0, "swad/batch-norm", &[]));
    rows
}

/// The same pixels on the device with autodiff, where batch norm reads the statistics of its batch.
fn with_autodiff(pixels: Pixels) -> Pixels {
    match pixels {
        Pixels::Table(columns) => Pixels::Table(Tensor::from_inner(columns)),
        Pixels::Image(pixels) => Pixels::Image(Tensor::from_inner(pixels)),
        Pixels::Volume(pixels) => Pixels::Volume(Tensor::from_inner(pixels)),
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/swad.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
