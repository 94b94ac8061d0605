//! The columns of a table of one's own that have the outcome: times and events, a class or masks.

use std::collections::BTreeMap;
use std::path::Path;

use super::NO_OUTCOMES;
use crate::DataError;
use crate::cohort::Reason;
use crate::cohort::{ContentHasher, Provenance};
use crate::cohort::{LabelRule, NamedCells, NoOutcome, ObservedLabel, ObservedMask, ObservedTime, OutcomeConfig};
use crate::table::cells::refuse_unused;

/// Most values of a class that a note names.
const MOST_NAMED: usize = 10;

/// What a table says about the outcome of its rows.
#[derive(Clone, Debug)]
pub(super) enum Observed {
    /// Time and event.
    Times(ObservedTime),
    /// The class.
    Class(ObservedLabel),
    /// The mask.
    Mask(ObservedMask),
}

/// The columns of outcomes of a table.
pub(super) struct OutcomeColumns<'a> {
    pub(super) time: &'a str,
    pub(super) event: &'a str,
    pub(super) label: Option<&'a str>,
    pub(super) label_value: Option<&'a str>,
    pub(super) mask: Option<&'a str>,
}

impl OutcomeColumns<'_> {
    /// The rule of these columns of the table at `path`, whose cells `cells` returns.
    pub(super) fn read(
        &self,
        path: &Path,
        outcome: Option<&OutcomeConfig>,
        cells: impl Fn(&str) -> Result<Vec<Option<String>>, DataError>,
    ) -> Result<Observed, DataError> {
        let named = |name: &str| Ok::<_, DataError>(NamedCells { name: name.to_owned(), cells: cells(name)? });
        if let Some(label) = self.label {
            let positive = self.label_value.map(str::to_owned);
            let observed = Observed::Class(ObservedLabel { label: named(label)?, positive });
            return observed.check(path).map(|()| observed);
        }
        if let Some(mask) = self.mask {
            return Ok(Observed::Mask(ObservedMask { mask: named(mask)? }));
        }
        let (time, event) = (named(self.time)?, named(self.event)?);
        Ok(Observed::Times(ObservedTime { time, event, outcome: outcome.cloned() }))
    }
}

impl Observed {
    /// Refuses a class whose positive value no row of the table at `path` has.
    fn check(&self, path: &Path) -> Result<(), DataError> {
        let Self::Class(rule @ ObservedLabel { label, positive: Some(positive) }) = self else { return Ok(()) };
        // Rows without a class are left out, all of them too.
        if label.cells.iter().all(Option::is_none) {
            return Ok(());
        }
        refuse_unused(path, &label.name, positive, &label.cells, |cell| rule.is_positive(cell) == Some(true))
    }

    /// Which values are which class, where one is named: a value of neither is negative like any other.
    fn notes(&self) -> Vec<String> {
        let Self::Class(rule @ ObservedLabel { label, positive: Some(_) }) = self else { return Vec::new() };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        label.cells.iter().flatten().for_each(|cell| *counts.entry(cell.as_str()).or_default() += 1);
        let (of_class, others): (Vec<_>, Vec<_>) =
            counts.into_iter().partition(|(value, _)| rule.is_positive(value) == Some(true));
        let listed = |values: &[(&str, usize)]| {
            let named = values.iter().take(MOST_NAMED).map(|(value, n)| format!("\"{value}\" ({n})"));
            let more = values.len().saturating_sub(MOST_NAMED);
            named.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
        };
        // With two values there is nothing that could be meant otherwise.
        if others.len() < 2 {
            return Vec::new();
        }
        vec![format!("class from \"{}\": positive {}; negative {}", label.name, listed(&of_class), listed(&others))]
    }

    /// The rule in one sentence.
    fn sentence(&self) -> String {
        let rule = match self {
            Self::Times(rule) => rule,
            Self::Class(ObservedLabel { label, positive }) => {
                let positive = positive.as_deref().unwrap_or("1");
                return format!("class from column \"{}\", positive is \"{positive}\"", label.name);
            }
            Self::Mask(rule) => return format!("masks from column \"{}\"", rule.mask.name),
        };
        let columns = format!("time from column \"{}\", event from column \"{}\"", rule.time.name, rule.event.name);
        match &rule.outcome {
            Some(outcome) => format!("{columns}: {}", outcome.expected()),
            None => columns,
        }
    }

    /// What is an option of the labels, which their content hash covers: numbers of causes, and the value of a positive row.
    fn options(&self) -> Vec<(String, String)> {
        let list = |codes: &[u32]| codes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let of = |key: &str, value: String| (key.to_owned(), value);
        let outcome = match self {
            Self::Times(ObservedTime { outcome: Some(outcome), .. }) => outcome,
            Self::Times(_) => return Vec::new(),
            Self::Class(ObservedLabel { label, positive }) => {
                let positive = positive.clone().unwrap_or_else(|| "1".to_owned());
                return vec![of("label", label.name.clone()), of("label-value", positive)];
            }
            Self::Mask(rule) => return vec![of("mask", rule.mask.name.clone())],
        };
        let mut options =
            vec![of("outcome.cause", outcome.cause.to_string()), of("outcome.competing", list(&outcome.competing))];
        if !outcome.censored.is_empty() {
            options.push(of("outcome.censored", list(&outcome.censored)));
        }
        options
    }
}

/// The rule as adapters return it; without outcomes nothing is known about any row.
pub(super) fn boxed(rule: Option<Observed>) -> Box<dyn LabelRule> {
    match rule {
        None => Box::new(NoOutcome),
        Some(Observed::Times(rule)) => Box::new(rule),
        Some(Observed::Class(rule)) => Box::new(rule),
        Some(Observed::Mask(rule)) => Box::new(rule),
    }
}

/// The cells of the outcome of row `index`, for the content hash; none without outcomes.
pub(super) fn outcome_cells(rule: Option<&Observed>, index: usize) -> Vec<&Option<String>> {
    match rule {
        None => Vec::new(),
        Some(Observed::Times(rule)) => vec![&rule.time.cells[index], &rule.event.cells[index]],
        Some(Observed::Class(rule)) => vec![&rule.label.cells[index]],
        Some(Observed::Mask(rule)) => vec![&rule.mask.cells[index]],
    }
}

/// The origin of the labels of a table whose rows are in `hasher`; `reasons` are those before the outcome.
pub(super) fn provenance_of(
    hasher: ContentHasher,
    (name, version): (&str, u32),
    mut options: Vec<(String, String)>,
    reasons: &[Reason],
    rule: Option<&Observed>,
) -> Provenance {
    let of_outcome: &[Reason] = match rule {
        Some(Observed::Class(_) | Observed::Mask(_)) => &[Reason::MissingLabel],
        _ => &[Reason::MissingTime, Reason::MissingEvent],
    };
    options.extend(rule.map(Observed::options).unwrap_or_default());
    let sentence = rule.map_or_else(|| NO_OUTCOMES.to_owned(), Observed::sentence);
    let mut provenance = hasher.finish(name, sentence, version, options, &[reasons, of_outcome].concat());
    provenance.notes.extend(rule.map(Observed::notes).unwrap_or_default());
    match rule {
        Some(Observed::Class(rule)) => provenance.label = Some(rule.label.name.clone()),
        Some(Observed::Mask(rule)) => provenance.mask = Some(rule.mask.name.clone()),
        Some(Observed::Times(_)) | None => {}
    }
    provenance
}
