//! The contact sheet of `prepare`: a few samples of every group and part, as they enter the model.
//!
//! The samples come from the streams `samples/PART/ATTRIBUTE/LEVEL` of the seed of the run. A training sample is shown
//! without augmentation and as its first draws in epochs 1 and 2, which are those of the training.

pub(crate) mod picture;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use fairtte_data::loader::{HostBatch, Sampling, draw_rows};
use fairtte_data::{Loader, Part};
use fairtte_metrics::{GroupId, Groups};

use self::picture::{Display, Range, Ranges};
use crate::plural::counted;
use crate::prepared::Prepared;
use crate::report::samples::{
    OfAttribute, OfGroup, OfPart, RangeRow, SamplesPage, Shown, View, outcome, render_samples,
};
use crate::{CliError, RunFile};

/// Name of a view that is not augmented.
const PLAIN: &str = "without augmentation";
/// Name of the augmented views in the table of ranges.
const AUGMENTED: &str = "train, augmented";
/// Epochs whose draws are shown, as the loader counts them, with their names.
const DRAWS: [(u64, &str); 2] = [(0, "epoch 1"), (1, "epoch 2")];

/// The page with `n` samples of every group and part.
///
/// # Errors
/// [`CliError::Bug`] for a table of columns, otherwise the errors of the loader and the page.
pub(crate) fn contact_sheet(run: &RunFile, prepared: &Prepared, n: usize) -> Result<String, CliError> {
    Ok(render_samples(&page(run, prepared, n)?)?)
}

fn page(run: &RunFile, prepared: &Prepared, n: usize) -> Result<SamplesPage, CliError> {
    let (loader, intensity) = prepared.loader(run, vec![None; prepared.cohort.n()])?;
    let intensity = intensity.ok_or_else(|| CliError::Bug("pictures of a table".to_owned()))?;
    let mut sheet = Sheet {
        loader,
        display: Display::new(&intensity),
        time_unit: prepared.cohort.time_unit.clone(),
        seed: run.training_seed(),
        is_augmented: run.augmentation()?.is_some_and(|augmentation| !augmentation.is_identity()),
        ranges: Vec::new(),
        seen: BTreeSet::new(),
    };
    let all = prepared.attributes.all();
    let mut attributes = Vec::new();
    for attribute in all.iter().map(Some).chain(all.is_empty().then_some(None)) {
        let name = attribute.map_or("all samples", Groups::attribute);
        let mut groups = Vec::new();
        for (level, members) in levels(attribute, prepared.cohort.n()) {
            let mut parts = Vec::new();
            for part in Part::ALL {
                let rows: Vec<usize> = prepared.split.rows(part).iter().copied().filter(|row| members[*row]).collect();
                let drawn = draw_rows(&rows, n, run.seed, &format!("{}/{name}/{level}", part.name()));
                let samples = drawn.into_iter().map(|row| sheet.sample(row, part, &level));
                let samples = samples.collect::<Result<Vec<_>, CliError>>()?;
                parts.push(OfPart { name: part.name(), n: rows.len(), samples });
            }
            groups.push(OfGroup { name: level, parts });
        }
        attributes.push(OfAttribute { name: name.to_owned(), groups });
    }
    let sides: Vec<String> = sheet.loader.size().iter().map(ToString::to_string).collect();
    let mut notes = vec![sheet.display.words().to_owned()];
    if run.shift.is_some() {
        notes.push("The training part is shown with the distribution shift of the run file.".to_owned());
    }
    if !sheet.is_augmented {
        notes.push("No augmentation is set: every epoch sees the same pictures.".to_owned());
    }
    Ok(SamplesPage {
        title: run.name.clone(),
        subtitle: format!("{}, {}, seed {}", sides.join(" x "), counted(run.image.channels, "channel"), run.seed),
        is_augmented: sheet.is_augmented,
        is_volume: sides.len() == 3,
        ranges: sheet.range_rows(),
        attributes,
        notes,
    })
}

/// Every group of an attribute and, if there are any, the samples in none, each with which rows of the cohort it has.
fn levels(attribute: Option<&Groups>, n: usize) -> Vec<(String, Vec<bool>)> {
    let Some(groups) = attribute else { return vec![("all".to_owned(), vec![true; n])] };
    let of = |group: Option<GroupId>| groups.membership().iter().map(|found| *found == group).collect::<Vec<bool>>();
    let mut levels: Vec<_> =
        groups.ids().map(|group| (groups.levels()[group.index()].clone(), of(Some(group)))).collect();
    let none = of(None);
    if none.contains(&true) {
        levels.push(("no value".to_owned(), none));
    }
    levels
}

/// The pictures drawn so far.
struct Sheet<'a> {
    loader: Loader<'a>,
    display: Display,
    time_unit: String,
    seed: u64,
    is_augmented: bool,
    /// By part, with the augmented views apart, in the order in which they were first shown.
    ranges: Vec<(&'static str, Ranges)>,
    /// Rows that are in the ranges: a sample may be shown in several groups.
    seen: BTreeSet<usize>,
}

impl Sheet<'_> {
    /// A sample with all its views.
    fn sample(&mut self, row: usize, part: Part, group: &str) -> Result<Shown, CliError> {
        let plain = self.batch(row, &Sampling::Sequential, 0)?;
        let (id, outcome) = (plain.sample_ids[0].to_string(), outcome(plain.time[0], plain.event[0], &self.time_unit));
        let own = self.display.ranges(&plain);
        let mut batches = vec![(PLAIN, part.name(), plain)];
        if part == Part::Train && self.is_augmented {
            for (epoch, name) in DRAWS {
                batches.push((name, AUGMENTED, self.batch(row, &Sampling::Shuffled, epoch)?));
            }
        }
        let is_new = self.seen.insert(row);
        let mut views = Vec::with_capacity(batches.len());
        for (name, kind, batch) in batches {
            let ranges = self.display.ranges(&batch);
            if is_new {
                self.add(kind, &ranges);
            }
            let planes = self.display.planes(&batch, &own)?;
            views.push(View { name, range: ranges.model.numbers(), planes });
        }
        Ok(Shown { id, outcome, group: group.to_owned(), views })
    }

    /// A batch of one sample, as the model gets it.
    fn batch(&self, row: usize, sampling: &Sampling, epoch: u64) -> Result<HostBatch, CliError> {
        let mut batches = self.loader.batches(&[row], 1, sampling, self.seed, epoch)?;
        batches.next().ok_or_else(|| CliError::Bug(format!("no batch of row {row}")))
    }

    fn add(&mut self, kind: &'static str, ranges: &Ranges) {
        match self.ranges.iter_mut().find(|(found, _)| *found == kind) {
            Some((_, found)) => found.add(ranges),
            None => self.ranges.push((kind, ranges.clone())),
        }
    }

    fn range_rows(&self) -> Vec<RangeRow> {
        let row = |(name, ranges): &(&'static str, Ranges)| RangeRow {
            name,
            n: ranges.n_pictures,
            model: ranges.model.numbers(),
            unit: ranges.unit.as_ref().map(Range::numbers),
        };
        self.ranges.iter().map(row).collect()
    }
}
