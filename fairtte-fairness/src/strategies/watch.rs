//! Parts of a method that may be without effect although there is no error: the value of the log that shows it, and
//! what to change.
//!
//! A [`Watch`] is declared beside the terms of a strategy. At the end of an epoch the mean of its terms over the batches becomes
//! a [`Watched`] in the log; at the end of the training parts that stayed idle become a [`Warning`]. Both are functions
//! of the reports of the epochs, so a resumed run gives the same warnings as an uninterrupted one.

use std::collections::BTreeMap;

use fairtte_metrics::SURVIVAL_TOLERANCE;
use fairtte_records::FIRST_EPOCH;
pub use fairtte_records::{EQUAL_PREDICTIONS, Warning, Watched};

/// A part of a method, and how the log shows that it has no effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Name in logs and records.
    pub name: &'static str,
    /// Terms of a [`StepReport`](super::StepReport), or of the state at the end of an epoch, that are watched.
    pub terms: Vec<String>,
    /// When the part counts as idle.
    pub idle: Idle,
    /// When this leads to a warning at the end.
    pub warns: Warns,
    /// What it means that the part is idle, without a full stop.
    pub means: &'static str,
    /// What to change, without a full stop; settings of the strategy, of the training and of the optimiser by their names in
    /// backquotes.
    pub change: &'static str,
}

/// When a part counts as idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Idle {
    /// All terms are below this.
    Below(f64),
    /// All terms are closer to `center` than `by`.
    Near {
        /// Their value if the part has no effect.
        center: f64,
        /// Their required distance from it, above 0.
        by: f64,
    },
}

/// When an idle part leads to a warning at the end of the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warns {
    /// It was idle in every epoch: such a part may become idle once it has had its effect.
    Throughout,
    /// It was idle in the epoch whose weights are used, or in the last one.
    InTheEnd,
    /// It was idle in the last epoch, regardless of the epoch used.
    AtLast,
}

/// The watch on the predictions of any strategy; its value is the spread of the validation curves.
pub(crate) fn predictions_differ() -> Watch {
    Watch {
        name: EQUAL_PREDICTIONS,
        terms: Vec::new(),
        idle: Idle::Below(SURVIVAL_TOLERANCE),
        warns: Warns::InTheEnd,
        means: "all predictions of the validation part are equal, so the model does not distinguish subjects",
        change: "lower `learning-rate`, or the weight of the strategy's own term in the loss",
    }
}

impl Watch {
    /// The result for the means of all terms over the batches of an epoch.
    pub(crate) fn look(&self, means: &BTreeMap<String, f64>) -> Watched {
        let values = self.terms.iter().filter_map(|term| means.get(term).copied());
        self.at(match self.idle {
            Idle::Below(_) => values.reduce(f64::max),
            Idle::Near { center, .. } => values.map(|value| (value - center).abs()).reduce(f64::max),
        })
    }

    /// The entry of the log for a value that is compared with the limit.
    pub(crate) fn at(&self, value: Option<f64>) -> Watched {
        let (Idle::Below(limit) | Idle::Near { by: limit, .. }) = self.idle;
        Watched { name: self.name.to_owned(), value, limit, idle: value.is_none_or(|value| value < limit) }
    }
}

impl Warns {
    /// Whether to warn, given whether the part was idle in every epoch and which epoch is used, counted from 1.
    fn applies(self, idle: &[bool], used: usize) -> bool {
        let at = |epoch: usize| epoch.checked_sub(1).and_then(|index| idle.get(index)).copied().unwrap_or(false);
        match self {
            Self::Throughout => !idle.is_empty() && idle.iter().all(|idle| *idle),
            Self::InTheEnd => at(used) || at(idle.len()),
            Self::AtLast => at(idle.len()),
        }
    }
}

/// The warnings at the end of a training of `strategy`, given the results `epochs` and the epoch `used` (counted from 1)
/// whose weights are used.
pub(crate) fn warnings(strategy: &str, watches: &[Watch], epochs: &[&[Watched]], used: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for watch in watches {
        // An epoch written by an earlier version has no entry: its state is unknown.
        let entry = |epoch: &&[Watched]| epoch.iter().find(|watched| watched.name == watch.name).cloned();
        let seen: Vec<Option<Watched>> = epochs.iter().map(entry).collect();
        let idle: Vec<bool> = seen.iter().map(|seen| seen.as_ref().is_some_and(|seen| seen.idle)).collect();
        if !watch.warns.applies(&idle, used) {
            continue;
        }
        let Watch { means, change, .. } = watch;
        let text = format!("{strategy}: {means} ({}); {change}.", in_numbers(&idle, &seen, used));
        warnings.push(Warning { name: watch.name.to_owned(), text });
    }
    warnings
}

/// The warning if the first of several epochs is used: what came after it only made the `monitor` worse. `losses` are those
/// of the training part.
pub(crate) fn first_epoch(strategy: &str, monitor: &str, losses: &[f64], used: usize) -> Option<Warning> {
    let (first, last) = (losses.first()?, losses.last()?);
    let n = losses.len();
    (used == 1 && n > 1).then(|| {
        let text = format!(
            "{strategy}: the first of {n} epochs is the best by {monitor}, while the training loss went from {} to {}: the model \
             may have learnt next to nothing, or overfits from the beginning; try a lower `learning-rate`, pre-trained \
             weights, larger images, or another `monitor` (with few events, a constant curve can have the best \
             likelihood).",
            short(*first),
            short(*last)
        );
        Warning { name: FIRST_EPOCH.to_owned(), text }
    })
}

/// Names the idle epochs, and the value of the last of them.
fn in_numbers(idle: &[bool], seen: &[Option<Watched>], used: usize) -> String {
    let n_idle = idle.iter().filter(|idle| **idle).count();
    let which = match (n_idle, idle.len()) {
        (1, 1) => "in the only epoch".to_owned(),
        (n_idle, n) if n_idle == n => format!("in each of {n} epochs"),
        (n_idle, n) => format!("in {n_idle} of {n} epochs, while the weights are those of epoch {used}"),
    };
    let last = idle.iter().rposition(|idle| *idle).and_then(|index| Some((index + 1, seen[index].as_ref()?)));
    let Some((epoch, Watched { value, limit, .. })) = last else { return which };
    match value {
        Some(value) => {
            format!("{which}; {} in epoch {epoch}, where {} or more is expected", short(*value), short(*limit))
        }
        None => format!("{which}; no batch of epoch {epoch} had the groups needed"),
    }
}

/// Three digits after the point, or two digits of a small number; no zeros at the end.
fn short(value: f64) -> String {
    if value.abs() < 1e-3 && value != 0.0 {
        let rounded: f64 = format!("{value:.1e}").parse().unwrap_or(value);
        return format!("{rounded:e}");
    }
    ((value * 1e3).round() / 1e3).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(idle: Idle, warns: Warns) -> Watch {
        let terms = ["a", "b"].map(str::to_owned).to_vec();
        Watch { name: "part", terms, idle, warns, means: "nothing was done", change: "raise `x`" }
    }

    fn look(idle: Idle, means: &[(&str, f64)]) -> (Option<f64>, bool) {
        let means = means.iter().map(|(name, mean)| ((*name).to_owned(), *mean)).collect();
        let Watched { value, idle, .. } = watch(idle, Warns::Throughout).look(&means);
        (value, idle)
    }

    #[test]
    fn the_first_of_several_epochs_is_warned_of() {
        let said = first_epoch("erm", "nll", &[2.0, 1.5, 1.25], 1).expect("the first epoch is used");
        assert_eq!(said.name, "first-epoch");
        let begin = "erm: the first of 3 epochs is the best by nll, while the training loss went from 2 to 1.25:";
        assert!(said.text.starts_with(begin), "{}", said.text);
        assert_eq!(first_epoch("erm", "nll", &[2.0, 1.5], 2), None);
        assert_eq!(first_epoch("erm", "nll", &[2.0], 1), None, "there was no other epoch");
    }

    #[test]
    fn one_term_at_the_limit_is_enough_to_be_at_work() {
        assert_eq!(look(Idle::Below(1.0), &[("a", -3.0), ("b", 0.75)]), (Some(0.75), true));
        assert_eq!(look(Idle::Below(1.0), &[("a", -3.0), ("b", 1.0)]), (Some(1.0), false));
        let near = Idle::Near { center: 0.5, by: 0.125 };
        assert_eq!(look(near, &[("a", 0.5), ("b", 0.4375)]), (Some(0.0625), true));
        assert_eq!(look(near, &[("a", 0.375), ("b", 0.5)]), (Some(0.125), false), "lower counts as moved too");
        assert_eq!(look(near, &[("c", 9.0)]), (None, true), "in no batch");
    }

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        let found = [0.0, 1.0, 0.05 / 3.0, 0.2741, -0.012, 1e-6, 2.345e-5, 12.0].map(short);
        assert_eq!(found, ["0", "1", "0.017", "0.274", "-0.012", "1e-6", "2.3e-5", "12"]);
    }

    #[test]
    fn a_part_that_rests_after_its_work_gives_no_warning_and_one_that_died_does() {
        let all = [Warns::Throughout, Warns::InTheEnd, Warns::AtLast];
        let said = |idle: &[bool], used| all.map(|warns| warns.applies(idle, used));
        assert_eq!(said(&[true, true], 1), [true; 3]);
        assert_eq!(said(&[false, true], 1), [false, true, true], "died after the epoch that is used");
        assert_eq!(said(&[true, false], 1), [false, true, false], "is dead in the epoch that is used");
        assert_eq!(said(&[true, false], 2), [false; 3]);
        assert_eq!(said(&[], 0), [false; 3]);
    }

    #[test]
    fn a_warning_names_strategy_epochs_numbers_and_what_to_change() {
        let watch = watch(Idle::Below(1.0), Warns::InTheEnd);
        let epoch = |value| vec![watch.at(value), Watch { name: "other", ..watch.clone() }.at(Some(0.0))];
        let text = |values: &[Option<f64>], used| {
            let epochs: Vec<Vec<Watched>> = values.iter().map(|value| epoch(*value)).collect();
            let epochs: Vec<&[Watched]> = epochs.iter().map(Vec::as_slice).collect();
            warnings("toy", std::slice::from_ref(&watch), &epochs, used)
                .into_iter()
                .map(|w| (w.name, w.text))
                .collect::<Vec<_>>()
        };
        let expected = "toy: nothing was done (in 2 of 3 epochs, while the weights are those of epoch 1; 0.25 in epoch 3, \
                        where 1 or more is expected); raise `x`.";
        assert_eq!(text(&[Some(2.0), Some(0.5), Some(0.25)], 1), [("part".to_owned(), expected.to_owned())]);
        let expected = "toy: nothing was done (in each of 2 epochs; no batch of epoch 2 had the groups needed); \
                        raise `x`.";
        assert_eq!(text(&[Some(0.0), None], 1), [("part".to_owned(), expected.to_owned())]);
        assert_eq!(text(&[Some(0.5), Some(1.5)], 2), []);
    }
}
