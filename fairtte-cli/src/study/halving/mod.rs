//! Successive halving: the trials of a cell stop at rungs, and only the best continue.
//!
//! Inside a cell only, because strategies learn at different speeds; synchronous, from validation numbers alone, so that neither
//! machines nor the order of arrival matter; by the metric and by the worst group, never by the gap, which is 0 in a model that
//! says the same of everybody. A seeded share of what stops is trained to the end as an audit: such a trial is never chosen, and
//! the report says whether it would have been.
//! Sources: Jamieson & Talwalkar 2016 (halving); Schmucker et al. 2021 (non-dominated sorting); Deb et al. 2002 (fronts).

mod promotion;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairtte_metrics::seeds::stream;
use fairtte_records::{Monitor, Validation};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use self::promotion::{Entrant, promoted};
use super::file::Keep;
use super::folder::TrialFolder;
use super::plan::Plan;
use super::state::{Failure, TrialState};
use super::tidy::keep_only;
use crate::CliError;
use crate::run_folder::{RunFolder, read_json, write_json};

/// `[halving]` of a study file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Halving {
    /// Epochs after which the trials of a cell are compared.
    pub(crate) rungs: Vec<usize>,
    /// Share of the trials at a rung that continues; rounded up.
    #[serde(default = "third")]
    pub(crate) keep: f64,
    /// Share of what stops that is trained to the end, to see what stopping does.
    #[serde(default = "tenth")]
    pub(crate) audit: f64,
}

fn third() -> f64 {
    1.0 / 3.0
}

fn tenth() -> f64 {
    0.1
}

impl Halving {
    /// # Errors
    /// [`CliError::Config`] naming the key.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let wrong = |key: &str, message: String| Err(CliError::setting(key, message, None));
        let is_rising = self.rungs.windows(2).all(|pair| pair[0] < pair[1]);
        if self.rungs.is_empty() || self.rungs[0] == 0 || !is_rising {
            let message = format!("{:?}, expected epochs above 0 in rising order, for example [3, 9]", self.rungs);
            return wrong("halving.rungs", message);
        }
        if !(self.keep > 0.0 && self.keep < 1.0) {
            return wrong("halving.keep", format!("{} is no share, expected a number between 0 and 1", self.keep));
        }
        if !(0.0..=1.0).contains(&self.audit) {
            return wrong("halving.audit", format!("{} is no share, expected a number from 0 to 1", self.audit));
        }
        Ok(())
    }

    /// Trials of `n` that continue after every rung: the same number in every cell.
    pub(crate) fn numbers(&self, n: usize) -> Vec<usize> {
        let mut left = n;
        let mut next = || {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of trials")]
            let kept = (self.keep * left as f64 - 1e-9).ceil() as usize;
            left = kept.max(1);
            left
        };
        self.rungs.iter().map(|_| next()).collect()
    }
}

/// That a training has stopped at a rung, `rung.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AtRung {
    /// Epochs that were trained.
    pub(crate) epochs: usize,
}

/// What was decided at a rung of a cell, `rungs/HASH-EPOCH.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Decision {
    /// The cell in words.
    pub(crate) cell: String,
    /// Epochs after which it was decided.
    pub(crate) epochs: usize,
    /// All that were compared, in the order of the trials.
    pub(crate) entrants: Vec<Entrant>,
    /// Trials that continue, counted from 0.
    pub(crate) promoted: BTreeSet<usize>,
    /// Trials among the others that are trained to the end as an audit.
    pub(crate) audited: BTreeSet<usize>,
}

/// What a training may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Next {
    /// It has stopped permanently.
    Stopped,
    /// It waits for the other trials of its cell.
    Wait,
    /// It trains until this many epochs, and no further yet.
    Until(usize),
    /// It trains to the end.
    End,
}

/// What reading a study changes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Nothing,
    /// New decisions are written.
    Decisions,
    /// The same, and states of permanently stopped trials are removed.
    DecisionsAndStates,
}

/// A study with halving and what was decided so far.
#[derive(Debug)]
pub(crate) struct Ladder {
    /// By cell, the decisions of the rungs, in their order, as far as they are made.
    decisions: BTreeMap<usize, Vec<Decision>>,
    /// By training.
    next: BTreeMap<String, Next>,
}

impl Ladder {
    /// Reads the decisions of a study and finds those that can be made; `None` without halving.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a file cannot be read.
    pub(crate) fn read(plan: &Plan) -> Result<Option<Self>, CliError> {
        Self::of(plan, 0..plan.cells().len(), Record::Nothing)
    }

    /// As [`read`](Self::read), but records new decisions and removes the states of permanently stopped trials.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a file cannot be read or written.
    pub(crate) fn climb(plan: &Plan) -> Result<Option<Self>, CliError> {
        Self::of(plan, 0..plan.cells().len(), Record::DecisionsAndStates)
    }

    /// As [`climb`](Self::climb), for the cells of one training alone.
    ///
    /// # Errors
    /// As [`climb`](Self::climb).
    pub(crate) fn climb_for(plan: &Plan, id: &str) -> Result<Option<Self>, CliError> {
        let has = |(place, other): (usize, &String)| (other == id).then(|| plan.place(place).0);
        let cells: BTreeSet<usize> = plan.ids().iter().enumerate().filter_map(has).collect();
        // What another cell allows the other trainings is not known here, so no state is removed.
        Self::of(plan, cells, Record::Decisions)
    }

    fn of(plan: &Plan, cells: impl IntoIterator<Item = usize>, record: Record) -> Result<Option<Self>, CliError> {
        let Some(halving) = &plan.study().halving else { return Ok(None) };
        let of_cell = |cell: usize| Ok((cell, decide(plan, halving, cell, record)?));
        // An estimator has no epochs: its trials are all fitted to the end.
        let has_epochs = |cell: &usize| !plan.is_of_estimator(*cell);
        let decisions =
            cells.into_iter().filter(has_epochs).map(of_cell).collect::<Result<BTreeMap<_, _>, CliError>>()?;
        let mut next: BTreeMap<String, Next> = BTreeMap::new();
        for (cell, decisions) in &decisions {
            for trial in 0..plan.study().trials {
                for place in plan.places_of(*cell, trial) {
                    let id = &plan.ids()[place];
                    let own = of_trial(halving, decisions, trial, reached(&plan.folder().trial(id))?);
                    // A training that several cells share does what the most generous of them allows.
                    let known = next.entry(id.clone()).or_insert(own);
                    *known = own.max(*known);
                }
            }
        }
        if record == Record::DecisionsAndStates && plan.study().execute.keep != Keep::Everything {
            for (id, _) in next.iter().filter(|(_, next)| **next == Next::Stopped) {
                let folder = plan.folder().trial(id);
                if folder.rung().exists() && !folder.scores().exists() {
                    keep_only(&folder, Keep::Scores)?;
                }
            }
        }
        Ok(Some(Self { decisions, next }))
    }

    /// What a training may do next.
    pub(crate) fn next(&self, id: &str) -> Next {
        self.next.get(id).copied().unwrap_or(Next::End)
    }

    /// The decisions of a cell, in the order of the rungs.
    pub(crate) fn decisions(&self, cell: usize) -> &[Decision] {
        self.decisions.get(&cell).map_or(&[], Vec::as_slice)
    }

    /// Whether the trial of a cell was stopped at a rung: then it is never chosen, also if it was trained to the end as an audit or
    /// for another cell.
    pub(crate) fn is_stopped(&self, cell: usize, trial: usize) -> bool {
        self.decisions(cell).iter().any(|decision| decision.has_stopped(trial))
    }

    /// Whether the trial of a cell is trained to the end as an audit.
    pub(crate) fn is_audited(&self, cell: usize, trial: usize) -> bool {
        self.decisions(cell).iter().any(|decision| decision.audited.contains(&trial))
    }
}

impl Decision {
    fn has_stopped(&self, trial: usize) -> bool {
        self.entrants.iter().any(|entrant| entrant.trial == trial) && !self.promoted.contains(&trial)
    }
}

/// What a trial of a cell does next, of which `reached` epochs are trained.
fn of_trial(halving: &Halving, decisions: &[Decision], trial: usize, reached: usize) -> Next {
    for (rung, epochs) in halving.rungs.iter().enumerate() {
        match decisions.get(rung) {
            None if reached >= *epochs => return Next::Wait,
            None => return Next::Until(*epochs),
            Some(decision) if decision.audited.contains(&trial) => return Next::End,
            Some(decision) if decision.promoted.contains(&trial) => {}
            Some(_) => return Next::Stopped,
        }
    }
    Next::End
}

/// Epochs after which a training has stopped at a rung.
fn reached(folder: &TrialFolder) -> Result<usize, CliError> {
    let path = folder.rung();
    if !path.exists() {
        return Ok(0);
    }
    Ok(read_json::<AtRung>(&path)?.epochs)
}

/// The decisions of a cell, as far as its trials allow them.
fn decide(plan: &Plan, halving: &Halving, cell: usize, record: Record) -> Result<Vec<Decision>, CliError> {
    let mut entrants: Vec<usize> = (0..plan.study().trials).collect();
    let mut found = Vec::new();
    for (rung, (epochs, n)) in halving.rungs.iter().zip(halving.numbers(entrants.len())).enumerate() {
        let ids = |trial: &usize| plan.places_of(cell, *trial).map(|place| plan.ids()[place].as_str());
        let names: Vec<&str> = entrants.iter().flat_map(ids).collect();
        // Named by what is compared: with more trials it is another question, and so it is for another attribute, whose worst group is
        // another one although the trainings may be the same.
        let attribute = &plan.cells()[cell].attribute;
        let path = |of_attribute: &str| {
            let key = format!("{}{of_attribute} {} {}", names.join(" "), halving.keep, halving.audit);
            let hash = blake3::hash(key.as_bytes()).to_hex();
            plan.folder().rungs().join(format!("{}-{epochs}.json", &hash[..16]))
        };
        // Older versions did not name the attribute: their decision is that of the cell that it names.
        let [older, path] = [path(""), path(&format!(" {attribute}"))];
        let read = |path: &Path| path.exists().then(|| read_json::<Decision>(path)).transpose();
        let is_of_cell = |decision: &Decision| decision.cell == plan.words_of_cell(cell);
        let known = match read(&path)? {
            Some(decision) => Some(decision),
            None => read(&older)?.filter(is_of_cell),
        };
        let decision = if let Some(known) = known {
            known
        } else {
            let mut compared = Vec::new();
            for trial in &entrants {
                match entrant(plan, cell, *trial, *epochs)? {
                    Some(entrant) => compared.push(entrant),
                    None => return Ok(found),
                }
            }
            let promoted = promoted(&compared, n);
            let is_audited = |trial: &&usize| {
                let counters = [cell as u64, **trial as u64, rung as u64];
                stream(plan.study().seed, "study/halving/audit", &counters).random::<f64>() < halving.audit
            };
            let stopped = entrants.iter().filter(|trial| !promoted.contains(*trial));
            let audited = stopped.filter(is_audited).copied().collect();
            let cell = plan.words_of_cell(cell);
            let decision = Decision { cell, epochs: *epochs, entrants: compared, promoted, audited };
            if record != Record::Nothing {
                std::fs::create_dir_all(plan.folder().rungs())
                    .map_err(|error| CliError::RunFolder { path: path.clone(), problem: error.to_string() })?;
                // Every process that decides writes the same.
                write_json(&path, &decision)?;
            }
            decision
        };
        entrants.retain(|trial| decision.promoted.contains(trial));
        found.push(decision);
    }
    Ok(found)
}

/// What a trial shows in the validation part of its first `epochs` epochs: means over folds; `None` if a fold has not come so far.
/// One that was refused, or failed permanently, shows nothing.
fn entrant(plan: &Plan, cell: usize, trial: usize, epochs: usize) -> Result<Option<Entrant>, CliError> {
    let attribute = &plan.cells()[cell].attribute;
    let [metric, of_worst] = plan.measures().monitors();
    let (mut overall, mut worst) = (Vec::new(), Vec::new());
    for place in plan.places_of(cell, trial) {
        let folder = plan.folder().trial(&plan.ids()[place]);
        let is_lost = folder.refused().exists() || Failure::of(&folder)?.is_some_and(|failure| failure.is_final());
        if is_lost {
            return Ok(Some(Entrant { trial, overall: None, worst: None }));
        }
        if !folder.scores().exists() && reached(&folder)? < epochs {
            return Ok(None);
        }
        let reports = RunFolder::new(folder.path()).epochs()?;
        let seen = reports.iter().filter(|report| report.epoch <= epochs);
        let best = |values: &mut dyn Iterator<Item = Option<f64>>| values.flatten().max_by(f64::total_cmp);
        overall.push(best(&mut seen.clone().map(|report| report.validation.value(metric))));
        worst.push(best(&mut seen.map(|report| worst_group(&report.validation, of_worst, attribute))));
    }
    let mean = |values: Vec<Option<f64>>| {
        let n = values.len() as f64;
        values.into_iter().sum::<Option<f64>>().map(|sum| sum / n)
    };
    Ok(Some(Entrant { trial, overall: mean(overall), worst: mean(worst) }))
}

/// The metric of the worst group; a validation of one attribute names none.
fn worst_group(validation: &Validation, metric: Monitor, attribute: &str) -> Option<f64> {
    let attribute = (!validation.attributes.is_empty()).then_some(attribute);
    validation.value_for(metric, attribute)
}

/// Whether a process may take the training now.
pub(crate) fn may_run(ladder: Option<&Ladder>, state: &TrialState, id: &str) -> bool {
    state.is_open() && ladder.is_none_or(|ladder| matches!(ladder.next(id), Next::Until(_) | Next::End))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    fn halving(rungs: &[usize], keep: f64) -> Halving {
        Halving { rungs: rungs.to_vec(), keep, audit: 0.1 }
    }

    #[test]
    fn numbers_are_rounded_up_and_never_below_one() {
        assert_eq!(halving(&[1, 2, 3], 1.0 / 3.0).numbers(10), [4, 2, 1]);
        assert_eq!(halving(&[1, 2, 3], 1.0 / 3.0).numbers(27), [9, 3, 1]);
        assert_eq!(halving(&[1, 2], 0.1).numbers(2), [1, 1]);
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (wrong, expected) in [
            (halving(&[], 0.5), "halving.rungs: "),
            (halving(&[3, 3], 0.5), "halving.rungs: "),
            (halving(&[0, 3], 0.5), "halving.rungs: "),
            (halving(&[3], 1.0), "halving.keep: "),
            (Halving { audit: 1.5, ..halving(&[3], 0.5) }, "halving.audit: "),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_trial_climbs_waits_and_stops() {
        let halving = halving(&[2, 4], 0.5);
        let decision = |promoted: &[usize], audited: &[usize], n: usize| Decision {
            cell: String::new(),
            epochs: 2,
            entrants: (0..n).map(|trial| Entrant { trial, overall: None, worst: None }).collect(),
            promoted: promoted.iter().copied().collect(),
            audited: audited.iter().copied().collect(),
        };
        assert_eq!(of_trial(&halving, &[], 0, 0), Next::Until(2));
        assert_eq!(of_trial(&halving, &[], 0, 2), Next::Wait);
        let first = [decision(&[0, 1], &[3], 4)];
        let next = |trial, reached| of_trial(&halving, &first, trial, reached);
        assert_eq!(
            [next(0, 2), next(0, 4), next(2, 2), next(3, 2)],
            [Next::Until(4), Next::Wait, Next::Stopped, Next::End]
        );
        let both = [first[0].clone(), decision(&[1], &[], 2)];
        let next = |trial| of_trial(&halving, &both, trial, 4);
        assert_eq!([next(0), next(1), next(2), next(3)], [Next::Stopped, Next::End, Next::Stopped, Next::End]);
        assert!(Next::Stopped < Next::Wait && Next::Wait < Next::Until(2) && Next::Until(2) < Next::Until(4));
        assert!(Next::Until(400) < Next::End, "the most generous of several cells");
    }
}
