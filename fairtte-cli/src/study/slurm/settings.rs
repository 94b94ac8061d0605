//! `[execute.slurm]`: what a task of the study asks of SLURM.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::CliError;

/// What a task asks of SLURM. Every key that is not given is left to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Slurm {
    /// `--partition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) partition: Option<String>,
    /// `--account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// `--qos`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) qos: Option<String>,
    /// `--time`, in any form of SLURM: `90`, `04:00:00`, `1-12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
    /// `--gres`, for example `gpu:1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gres: Option<String>,
    /// `--cpus-per-task`; a trial has as many threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<usize>,
    /// `--mem`, for example `16G`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mem: Option<String>,
    /// What is put before the program, for example `apptainer exec --nv image.sif`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,
    /// Trials per task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pack: Option<usize>,
    /// Tasks that run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_running: Option<usize>,
    /// A script of the user in place of that of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<PathBuf>,
    /// Further options of `sbatch`, for example `--exclude=n7`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extra: Vec<String>,
}

/// Minutes that a task needs at least: its warning signal comes two minutes before its end.
const LEAST_MINUTES: f64 = 5.0;

/// Options that `submit` sets itself.
const OURS: [&str; 11] = [
    "array",
    "signal",
    "requeue",
    "no-requeue",
    "open-mode",
    "output",
    "parsable",
    "wrap",
    "test-only",
    "job-name",
    "wait",
];
/// Their short forms.
const OURS_SHORT: [char; 4] = ['a', 'o', 'J', 'W'];

impl Slurm {
    /// Checks every value.
    ///
    /// # Errors
    /// [`CliError::Config`] naming the key.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let wrong = |key: &str, message: String| Err(CliError::setting(&format!("execute.slurm.{key}"), message, None));
        let words =
            [("partition", &self.partition), ("account", &self.account), ("qos", &self.qos), ("gres", &self.gres)];
        for (key, value) in words {
            if let Some(value) = value.as_deref().filter(|value| !is_word(value)) {
                return wrong(key, format!("\"{value}\", expected one word of letters, digits and -_.,:=/"));
            }
        }
        if let Some(time) = &self.time {
            match minutes(time) {
                None => {
                    let forms =
                        "\"90\" (minutes), \"4:00:00\", \"1-12\" (days and hours), \"1-12:30\" or \"UNLIMITED\"";
                    return wrong("time", format!("\"{time}\", expected a time of SLURM, such as {forms}"));
                }
                Some(minutes) if minutes < LEAST_MINUTES => {
                    let why = "the warning signal of a task comes two minutes before its end";
                    return wrong("time", format!("\"{time}\", expected at least {LEAST_MINUTES} minutes: {why}"));
                }
                Some(_) => {}
            }
        }
        if let Some(mem) = self.mem.as_deref().filter(|mem| !is_memory(mem)) {
            return wrong("mem", format!("\"{mem}\", expected a number of megabytes, or with its unit: \"16G\""));
        }
        for (key, value) in [("cpus", self.cpus), ("pack", self.pack), ("max-running", self.max_running)] {
            if value == Some(0) {
                return wrong(key, "0, expected at least 1".to_owned());
            }
        }
        let is_line = |text: &str| !text.trim().is_empty() && !text.contains(char::is_control);
        if let Some(container) = self.container.as_deref().filter(|container| !is_line(container)) {
            return wrong(
                "container",
                format!("{container:?}, expected one line, such as \"apptainer exec image.sif\""),
            );
        }
        check_options("execute.slurm.extra", &self.extra)
    }

    /// The limit of a task in minutes, if it is known.
    pub(crate) fn minutes(&self) -> Option<f64> {
        self.time.as_deref().and_then(minutes)
    }

    /// Options of `sbatch` for the head of the script, without those of the command line.
    pub(crate) fn options(&self) -> Vec<String> {
        let named = [
            ("partition", self.partition.clone()),
            ("account", self.account.clone()),
            ("qos", self.qos.clone()),
            ("time", self.time.clone()),
            ("gres", self.gres.clone()),
            ("cpus-per-task", self.cpus.map(|cpus| cpus.to_string())),
            ("mem", self.mem.clone()),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
        named.chain(self.extra.iter().cloned()).collect()
    }
}

/// Checks options of `sbatch` that a person gave: one each, with spaces in the value of `--NAME=VALUE` only, and none that `submit`
/// sets itself.
///
/// # Errors
/// [`CliError::Config`] naming the option.
pub(crate) fn check_options(key: &str, options: &[String]) -> Result<(), CliError> {
    for option in options {
        let long = option.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or_default());
        let short = option.strip_prefix('-').and_then(|rest| rest.chars().next());
        let is_option = match long {
            Some(name) => name.starts_with(|c: char| c.is_ascii_lowercase()),
            None => short.is_some_and(|c| c.is_ascii_alphabetic()),
        };
        // sbatch would take what follows a space for another option.
        let is_divided = long.unwrap_or(option).contains(char::is_whitespace);
        if !is_option || is_divided || option.contains(|c: char| c.is_control()) {
            let message = format!(
                "{option:?}, expected one option of sbatch, such as \"--exclude=n7\" or \"--comment=our films\""
            );
            return Err(CliError::setting(key, message, None));
        }
        // sbatch takes the beginning of a name for the whole.
        let is_ours = match long {
            Some(name) => OURS.iter().any(|ours| name.len() >= 3 && ours.starts_with(name)),
            None => short.is_some_and(|c| OURS_SHORT.contains(&c)),
        };
        if is_ours {
            return Err(CliError::setting(key, format!("{option:?}: `study submit` sets this option itself"), None));
        }
    }
    Ok(())
}

/// Whether a value can stand behind `=` in a line of `#SBATCH`.
fn is_word(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_alphanumeric() || "-_.,:=/".contains(c))
}

fn is_memory(value: &str) -> bool {
    let number = value.strip_suffix(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']).unwrap_or(value);
    number.parse::<u64>().is_ok_and(|n| n > 0)
}

/// The minutes of a time as SLURM reads it: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`.
fn minutes(time: &str) -> Option<f64> {
    if ["unlimited", "infinite"].contains(&time.to_ascii_lowercase().as_str()) {
        return Some(f64::INFINITY);
    }
    let numbers = |text: &str| -> Option<Vec<f64>> {
        let is_number = |word: &str| !word.is_empty() && word.len() <= 6 && word.bytes().all(|b| b.is_ascii_digit());
        text.split(':').map(|word| is_number(word).then(|| word.parse().ok()).flatten()).collect()
    };
    let (days, rest) = match time.split_once('-') {
        Some((days, rest)) => (Some(numbers(days).filter(|days| days.len() == 1)?[0]), rest),
        None => (None, time),
    };
    Some(match (days, &numbers(rest)?[..]) {
        (None, [m]) => *m,
        (None, [m, s]) => m + s / 60.0,
        (None, [h, m, s]) => h * 60.0 + m + s / 60.0,
        (Some(days), [h]) => days * 1440.0 + h * 60.0,
        (Some(days), [h, m]) => days * 1440.0 + h * 60.0 + m,
        (Some(days), [h, m, s]) => days * 1440.0 + h * 60.0 + m + s / 60.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change<'a> = &'a dyn Fn(&mut Slurm);

    #[test]
    fn times_are_read_as_slurm_reads_them() {
        // The forms of `man sbatch`.
        for (time, expected) in [
            ("90", Some(90.0)),
            ("90:30", Some(90.5)),
            ("4:00:00", Some(240.0)),
            ("1-12", Some(2160.0)),
            ("1-12:30", Some(2190.0)),
            ("0-0:30:30", Some(30.5)),
            ("UNLIMITED", Some(f64::INFINITY)),
            ("", None),
            ("4h", None),
            ("1:2:3:4", None),
            ("-1", None),
            ("1:2-3", None),
            ("1e3", None),
        ] {
            assert_eq!(minutes(time), expected, "{time}");
        }
    }

    #[test]
    fn wrong_values_are_refused_by_key() {
        let text = |value: &str| Some(value.to_owned());
        let with = |change: &dyn Fn(&mut Slurm)| {
            let mut slurm = Slurm::default();
            change(&mut slurm);
            slurm.check().map_err(|error| error.to_string())
        };
        assert_eq!(with(&|_| ()), Ok(()));
        let all = |s: &mut Slurm| {
            (s.partition, s.account, s.qos) = (text("gpu,long"), text("lab_1"), text("normal"));
            (s.time, s.gres, s.mem) = (text("04:00:00"), text("gpu:a100:1"), text("16G"));
            (s.cpus, s.pack, s.max_running) = (Some(4), Some(1), Some(1));
            s.container = text("apptainer exec --nv 'my image.sif'");
            s.extra = vec!["--exclude=n7".to_owned(), "-wn1".to_owned(), "--exclusive".to_owned()];
            s.extra.push("--comment=films of 2024".to_owned());
        };
        assert_eq!(with(&all), Ok(()));
        let refused: [(&str, Change<'_>); 12] = [
            ("partition: \"a b\"", &|s| s.partition = text("a b")),
            ("account: \"\"", &|s| s.account = text("")),
            ("qos: \"a\n", &|s| s.qos = text("a\n#SBATCH")),
            ("gres: \"gpu;rm\"", &|s| s.gres = text("gpu;rm")),
            ("time: \"4h\"", &|s| s.time = text("4h")),
            ("time: \"4\", expected at least 5 minutes", &|s| s.time = text("4")),
            ("mem: \"16 GB\"", &|s| s.mem = text("16 GB")),
            ("mem: \"0\"", &|s| s.mem = text("0")),
            ("cpus: 0", &|s| s.cpus = Some(0)),
            ("pack: 0", &|s| s.pack = Some(0)),
            ("max-running: 0", &|s| s.max_running = Some(0)),
            ("container: \"a\\nb\"", &|s| s.container = text("a\nb")),
        ];
        for (sentence, change) in refused {
            let error = with(change).expect_err(sentence);
            assert!(error.starts_with(&format!("execute.slurm.{sentence}")), "{error}");
        }
        let ours = ["--array=0", "--arr=0", "-a0", "--signal=B:USR1", "-o/dev/null", "--no-requeue"];
        for option in ours.into_iter().chain(["script", "--", "-", "--comment our films", "-w n1"]) {
            assert!(with(&|s| s.extra = vec![option.to_owned()]).is_err(), "{option}");
        }
    }
}
