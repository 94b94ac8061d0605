//! Steps 1 to 4, shared by `prepare` and `train`: from files to a cohort with a split, groups and decoded images.

use fairtte_data::{
    Cohort, Exclusions, FittedAttributes, ImageStore, Part, Split, build_cohort, read_cohort, split_by_subject,
    write_cohort,
};
use fairtte_metrics::{GroupId, Groups};

use crate::progress::{Files, say};
use crate::run_folder::RunFolder;
use crate::{CliError, RunFile};

/// A data set that is ready for training.
pub(crate) struct Prepared {
    pub(crate) cohort: Cohort,
    pub(crate) exclusions: Exclusions,
    pub(crate) split: Split,
    pub(crate) store: ImageStore,
    /// Groups that the strategy works on, for every row of the cohort.
    pub(crate) training_groups: Option<Groups>,
}

impl Prepared {
    /// Group of every row of the cohort that the strategy works on.
    pub(crate) fn membership(&self) -> Vec<Option<GroupId>> {
        let none = || vec![None; self.cohort.n()];
        self.training_groups.as_ref().map_or_else(none, |groups| groups.membership().to_vec())
    }
}

/// Reads, labels, decodes, splits and groups, and writes the first files of the run folder.
///
/// # Errors
/// [`CliError`] from the data or the run file.
pub(crate) fn prepare(run: &RunFile, folder: &RunFolder) -> Result<Prepared, CliError> {
    let adapter = run.data.adapter(run.seed, &run.cache());
    let (cohort, mut exclusions) = build_cohort(adapter.read()?, &run.attribute)?;
    let files = Files::new("decoding images");
    let (store, undecodable) =
        ImageStore::open_or_build(&cohort, &run.image, &run.cache(), &|done, total| files.update(done, total))?;
    let cohort = cohort.without(&undecodable);
    exclusions.extend(undecodable);
    exclusions.check(cohort.n())?;
    cohort.require_samples("after decoding", &exclusions)?;
    let split = split_by_subject(&cohort, &run.split, run.seed)?;
    let attributes = FittedAttributes::fit(&run.attribute, &cohort, split.rows(Part::Train))?;
    for value in attributes.ungrouped() {
        say(format!("note: {value}"));
    }
    let training_groups = choose_groups(attributes.all(), &run.training_attributes(), "groups.train")?;
    require_same_cohort(folder, &cohort)?;
    write_cohort(&folder.cohort(), &cohort, &attributes)?;
    exclusions.write_csv(&folder.exclusions())?;
    split.write_csv(&folder.split())?;
    Ok(Prepared { cohort, exclusions, split, store, training_groups })
}

/// A resumed run must see the same samples as when it started.
fn require_same_cohort(folder: &RunFolder, cohort: &Cohort) -> Result<(), CliError> {
    let path = folder.cohort();
    if !folder.is_trained() || !path.exists() {
        return Ok(());
    }
    let (kept, _) = read_cohort(&path)?;
    let outcome = |cohort: &Cohort, row: usize| {
        let sample = &cohort.samples[row];
        (sample.sample_id.clone(), sample.subject_id.clone(), sample.time.to_bits(), sample.event)
    };
    let same = kept.n() == cohort.n() && (0..kept.n()).all(|row| outcome(&kept, row) == outcome(cohort, row));
    if same {
        return Ok(());
    }
    let problem = format!(
        "the run began with {} samples, the data now give {} or other outcomes; choose another --output",
        kept.n(),
        cohort.n()
    );
    Err(CliError::RunFolder { path, problem })
}

/// The groups of the named attributes, crossed if there is more than one; `None` for no name.
///
/// # Errors
/// [`CliError::Config`] naming `key` if a name is not among the attributes.
pub(crate) fn choose_groups(all: &[Groups], names: &[&str], key: &str) -> Result<Option<Groups>, CliError> {
    let find = |name: &&str| {
        all.iter().find(|groups| groups.attribute() == *name).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(Groups::attribute).collect();
            CliError::unknown_attribute(key, name, &known)
        })
    };
    let chosen: Vec<&Groups> = names.iter().map(find).collect::<Result<_, _>>()?;
    Ok(match chosen.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(Groups::intersection(several)?),
    })
}
