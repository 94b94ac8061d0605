//! A run folder as the place of one training: resumed with the same settings and the same data only.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;
use fairtte_fairness::{PretrainedConfig, TrainingConfig, can_resume, copy_checkpoint, has_checkpoint, is_unfinished};
use fairtte_metrics::EvaluationSettings;
use toml::{Table, Value};

use super::{OpenRun, RunFolder, write_text};
use crate::device::kind;
use crate::run_file::GroupsConfig;
use crate::shell::quoted_path;
use crate::{CliError, RunFile};

impl OpenRun {
    /// The finished run in the folder of `run`, with the settings that its `run.toml` now has; `None` if there is something to
    /// train. With `goes_on`, a finished run is resumed for more epochs or patience.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn finished(run: &RunFile, goes_on: bool) -> Result<Option<Self>, CliError> {
        let folder = RunFolder::new(&run.output);
        if !folder.done().exists() {
            return Ok(None);
        }
        let kept = RunFile::read(&[folder.run_file()], &[])?;
        let mut resolved = RunFile { cache: Some(run.cache()), ..run.clone() };
        // The weights that it started from are not read again: unless another hash is requested, they are the same.
        if let (Some(asked), Some(kept)) = (&mut resolved.pretrained, &kept.pretrained) {
            asked.sha256 = asked.sha256.take().or_else(|| kept.sha256.clone());
        }
        folder.require_same(&resolved, goes_on)?;
        if goes_on && is_unfinished(folder.path(), &run.training)? {
            return Ok(None);
        }
        // Showing a finished run again computes nothing, so its record keeps the device that it was trained on.
        resolved.device.clone_from(&kept.device);
        resolved.training = kept.training;
        write_text(&folder.run_file(), &resolved.to_toml()?)?;
        Ok(Some(Self { file: resolved, folder }))
    }

    /// Opens the folder of `run` and locks it as long as the value exists. If nothing was trained in it yet, it gets
    /// its `run.toml`; if it contains the same run, it is unchanged until [`begin`](Self::begin).
    ///
    /// # Errors
    /// [`CliError::OtherRun`] if it contains a run with other settings, [`CliError::RunFolder`] if another process uses
    /// it, [`CliError::Data`] if it cannot be written.
    pub(crate) fn open(run: RunFile) -> Result<Self, CliError> {
        Self::open_from(None, run)
    }

    /// As [`open`](Self::open); a folder without a state of its own first gets that of the run in `origin`.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`CliError::RunFolder`] if there is no state to resume from.
    pub(crate) fn open_from(origin: Option<&Path>, run: RunFile) -> Result<Self, CliError> {
        let origin = origin.map(|origin| RunFolder::origin(origin, &run)).transpose()?;
        let folder = RunFolder::new(&run.output).locked()?;
        if let Some(origin) = origin {
            folder.take_over(&origin)?;
        }
        let open = Self { file: run, folder };
        if open.folder.is_trained()? {
            open.folder.require_same(&open.file, true)?;
        } else {
            open.begin()?;
        }
        Ok(open)
    }

    /// Opens the folder of `run` for its data alone: trained states are kept with the settings of their training, which may be others
    /// than those of `run`, and a finished run stays finished.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn for_preparation(mut run: RunFile) -> Result<Self, CliError> {
        let folder = RunFolder::new(&run.output);
        if folder.is_trained()? {
            run.training = RunFile::read(&[folder.run_file()], &[])?.training;
        }
        match Self::finished(&run, false)? {
            Some(finished) => Ok(finished),
            None => Self::open(run),
        }
    }
}

impl RunFolder {
    /// The folder of a run that `run` can resume.
    fn origin(path: &Path, run: &RunFile) -> Result<Self, CliError> {
        let origin = Self::new(path);
        if !has_checkpoint(origin.path())? {
            let problem = "there is no checkpoint to resume from".to_owned();
            return Err(CliError::RunFolder { path: origin.path, problem });
        }
        origin.require_same(run, true)?;
        Ok(origin)
    }

    /// Copies the state of the run in `origin`, with the record of the data that it was trained on, if that is another
    /// folder and this one has no state of its own.
    fn take_over(&self, origin: &Self) -> Result<(), CliError> {
        if self.is_trained()? {
            return Ok(()); // the folder itself, or an earlier call has copied it
        }
        let kept = RunFile::read(&[origin.run_file()], &[])?;
        write_text(&self.run_file(), &kept.to_toml()?)?;
        let records = [Self::cohort, Self::split, Self::inputs].map(|of| (of(origin), of(self)));
        for (from, to) in records.iter().filter(|(from, _)| from.exists()) {
            let bytes = std::fs::read(from)
                .map_err(|error| CliError::RunFolder { path: from.clone(), problem: error.to_string() })?;
            write_atomically(to, |file| file.write_all(&bytes))?;
        }
        Ok(copy_checkpoint(origin.path(), self.path())?)
    }

    /// Refuses settings that would have changed the training so far; with `goes_on`, more epochs or patience are
    /// allowed for a finished run.
    fn require_same(&self, run: &RunFile, goes_on: bool) -> Result<(), CliError> {
        let kept = RunFile::read(&[self.run_file()], &[])?;
        let may_last = goes_on || !self.done().exists();
        let lasts = may_last && can_resume(&self.path, &kept.training, &run.training)?;
        let mut asked = run.clone();
        // They affect the report alone; names of trials contain them, so `essence` has them.
        asked.evaluation = EvaluationSettings {
            permutations: kept.evaluation.permutations,
            over_time: kept.evaluation.over_time,
            thresholds: kept.evaluation.thresholds.clone(),
            sensitivity: kept.evaluation.sensitivity.clone(),
            risk: kept.evaluation.risk,
            min_events: kept.evaluation.min_events,
            reference: kept.evaluation.reference.clone(),
            ..asked.evaluation
        };
        if lasts {
            (asked.training.epochs, asked.training.patience) = (kept.training.epochs, kept.training.patience);
        }
        let differences = differences(&essence(&kept)?, &essence(&asked)?);
        if differences.is_empty() {
            return Ok(());
        }
        let only_lasts =
            differences.iter().all(|(key, _)| ["training.epochs", "training.patience"].contains(&key.as_str()));
        let help = if only_lasts && self.done().exists() && can_resume(&self.path, &kept.training, &run.training)? {
            format!("give --resume-from {} to resume it", quoted_path(&self.path))
        } else {
            "choose another --output, or remove the folder to start again".to_owned()
        };
        let difference = differences.into_iter().map(|(_, words)| words).collect::<Vec<_>>().join("; ");
        Err(CliError::OtherRun { folder: self.path.clone(), difference, help })
    }
}

/// The settings that affect the trained model: not titles, paths, threads, how often the state is saved, how intervals
/// are computed, nor which groups are reported in addition to those of the training.
pub(crate) fn essence(run: &RunFile) -> Result<Table, CliError> {
    let plain = EvaluationSettings::default();
    let first = run.attribute.first().map(|attribute| attribute.name.clone());
    let run = RunFile {
        // The same whether explicit or the default.
        training_seed: run.training_seed.filter(|seed| *seed != run.seed),
        name: String::new(),
        // Another card of the same kind computes the same.
        device: kind(&run.device).to_owned(),
        // The choice of epochs depends on reading and times.
        evaluation: EvaluationSettings {
            replicates: plain.replicates,
            level: plain.level,
            seed: plain.seed,
            resample: plain.resample,
            interval: plain.interval,
            stratify: plain.stratify,
            ..run.evaluation.clone()
        },
        groups: GroupsConfig {
            intersections: Vec::new(),
            train: if run.groups.train.iter().eq(&first) { Vec::new() } else { run.groups.train.clone() },
        },
        output: PathBuf::new(),
        cache: None,
        threads: 0,
        training: TrainingConfig { checkpoint_minutes: 0.0, prefetch: None, ..run.training },
        // The same weights may be at another path: their hash is compared.
        pretrained: run.pretrained.clone().map(|config| PretrainedConfig { path: PathBuf::new(), ..config }),
        ..run.clone()
    };
    let text = run.to_toml()?;
    text.parse().map_err(|error: toml::de::Error| CliError::Bug(format!("the run file cannot be read: {error}")))
}

/// Keys with different values, and the values in words.
fn differences(kept: &Table, asked: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let keys: BTreeSet<&String> = kept.keys().chain(asked.keys()).collect();
    for key in keys {
        match (kept.get(key), asked.get(key)) {
            (kept, asked) if kept == asked => {}
            (Some(Value::Table(kept)), Some(Value::Table(asked))) => {
                let below = differences(kept, asked).into_iter();
                found.extend(below.map(|(path, words)| (format!("{key}.{path}"), format!("{key}.{words}"))));
            }
            (kept, asked) => {
                let words = |value: Option<&Value>| value.map_or_else(|| "not set".to_owned(), ToString::to_string);
                found.push((key.clone(), format!("{key} is {} there and {} here", words(kept), words(asked))));
            }
        }
    }
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn run(folder: &Path, device: &str) -> RunFile {
        let text = include_str!("../commands/demo.toml");
        let run = RunFile::from_text(text, "demo.toml", &[format!("device={device}")]).unwrap();
        RunFile { output: folder.join("run"), ..run }
    }

    #[test]
    fn a_finished_run_keeps_the_device_it_was_trained_on() {
        let folder = tempfile::tempdir().unwrap();
        drop(OpenRun::open(run(folder.path(), "flex")).unwrap());
        assert!(OpenRun::finished(&run(folder.path(), "tch"), false).unwrap().is_none(), "nothing was computed yet");
        let opened_again = OpenRun::open(run(folder.path(), "tch-cuda:1")).unwrap();
        write_text(&opened_again.folder.done(), "").unwrap();
        let shown = OpenRun::finished(&run(folder.path(), "tch-cuda:0"), false).unwrap().unwrap();
        let kept = RunFile::read(&[opened_again.folder.run_file()], &[]).unwrap();
        assert_eq!((shown.file.device.as_str(), kept.device.as_str()), ("tch-cuda:1", "tch-cuda:1"));
        let error = OpenRun::finished(&run(folder.path(), "flex"), false).unwrap_err().to_string();
        assert!(error.ends_with("device is \"tch-cuda\" there and \"flex\" here"), "{error}");
    }

    #[test]
    fn a_preparation_does_not_compare_the_settings_of_the_training() {
        let folder = tempfile::tempdir().unwrap();
        let first = run(folder.path(), "flex");
        let opened = OpenRun::open(first.clone()).unwrap();
        write_text(&opened.folder.done(), "").unwrap();
        drop(opened);
        let mut asked = first.clone();
        asked.training.epochs += 1;
        let prepared = OpenRun::for_preparation(asked.clone()).unwrap();
        assert_eq!(prepared.file.training.epochs, first.training.epochs, "the run keeps its own");
        drop(prepared);
        asked.seed = 2;
        let error = OpenRun::for_preparation(asked).unwrap_err().to_string();
        assert!(error.contains("seed is 1 there and 2 here") && !error.contains("epochs"), "{error}");
    }

    #[test]
    fn what_changes_the_report_alone_may_differ_from_that_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        drop(OpenRun::open(run(folder.path(), "flex")).unwrap());
        let opened = RunFolder::new(&folder.path().join("run"));
        let asked = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let text = include_str!("../commands/demo.toml");
            opened.require_same(&RunFile::from_text(text, "demo.toml", &sets).unwrap(), true)
        };
        let report = [
            "permutations=0",
            "over-time=3",
            "thresholds=[0.2]",
            "sensitivity.imputations=5",
            "risk=expected-mortality",
            "min-events=3",
            "reference.sex=F",
        ];
        asked(&report.map(|set| format!("evaluation.{set}")).each_ref().map(String::as_str)).unwrap();
        let error = asked(&["evaluation.permutations=0", "evaluation.n-times=7"]).unwrap_err().to_string();
        assert!(error.contains("evaluation.n-times is 100 there and 7 here"), "{error}");
        assert!(!error.contains("permutations"), "{error}");
    }

    #[test]
    fn every_setting_that_changes_the_result_is_named_with_both_values() {
        let folder = tempfile::tempdir().unwrap();
        let kept = essence(&run(folder.path(), "flex")).unwrap();
        let found = |sets: &[&str]| {
            let text = include_str!("../commands/demo.toml");
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let asked = RunFile::from_text(text, "demo.toml", &sets).unwrap();
            let differences = differences(&kept, &essence(&asked).unwrap());
            differences.into_iter().map(|(_, words)| words).collect::<Vec<_>>().join("; ")
        };
        let harmless = [
            "name=other",
            "output=elsewhere",
            "cache=elsewhere",
            "threads=1",
            "training.checkpoint-minutes=1",
            "training.prefetch=3",
            "evaluation.replicates=7",
            "evaluation.level=0.9",
            "evaluation.seed=3",
            "evaluation.interval=basic",
            "groups.intersections=[[\"sex\", \"age\"]]",
            "groups.train=[\"sex\"]",
            "training-seed=1",
        ];
        assert_eq!(found(&harmless), "");
        for (set, words) in [
            ("seed=2", "seed is 1 there and 2 here"),
            ("training.batch-size=7", "training.batch-size is 32 there and 7 here"),
            ("training.accumulate=2", "training.accumulate is 1 there and 2 here"),
            ("optimiser.learning-rate=0.5", "there and 0.5 here"),
            ("evaluation.n-times=7", "evaluation.n-times is 100 there and 7 here"),
            (
                "training.schedule.cosine.floor=0.5",
                "training.schedule.cosine is not set there and { floor = 0.5, warm-up = 0 } here",
            ),
            ("strategy.group-dro.eta=0.5", "strategy.group-dro is not set there"),
            ("shift={ attribute = \"sex\", group = \"F\", blur = 1.0 }", "shift is not set there"),
        ] {
            let found = found(&[set]);
            assert!(found.contains(words), "{set}: {found}");
        }
    }

    #[test]
    fn a_checkpoint_folder_without_a_complete_epoch_is_no_training() {
        let folder = tempfile::tempdir().unwrap();
        let run_folder = RunFolder::new(folder.path());
        let make = |name: &str| std::fs::create_dir_all(folder.path().join("checkpoint").join(name)).unwrap();
        make(".epoch-00001.tmp");
        for foreign in ["epoch-junk", "epoch-7", "epoch-00001-batch-3"] {
            make(foreign);
        }
        std::fs::write(folder.path().join("checkpoint/epoch-99999"), "").unwrap();
        assert!(!run_folder.is_trained().unwrap());
        make("epoch-00001");
        assert!(run_folder.is_trained().unwrap());
    }
}
