//! No option of any command is accepted and ignored: every option of every command has an entry for every mode of the
//! command (`options/table.rs`), which shows that it changes the files, the output or what a dry run prints, or that it is
//! refused. The options are those of the program's own definition, so that a new one without an entry fails here.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

#[path = "options/fixtures.rs"]
mod fixtures;
#[path = "options/table.rs"]
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use fairtte_cli::args::Arguments;
use fairtte_tests::{Outcome, fairtte, files};

use self::table::{Effect, Mode, modes};

/// A folder with copies of the fixtures, the same path for every call, so that paths in results are equal.
struct Workplace {
    fixtures: PathBuf,
    folder: PathBuf,
}

/// What a call leaves: exit code, both outputs without times of the clock, and every file.
#[derive(Debug, PartialEq)]
struct Left {
    code: i32,
    stdout: String,
    stderr: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
}

/// Characters of a line of `bench` that are no measurement.
const BEFORE_TIMES: usize = 34;

impl Workplace {
    fn call(&self, line: &str) -> Left {
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder).unwrap();
        }
        copy(&self.fixtures, &self.folder);
        let output = fairtte().args(line.split_whitespace()).current_dir(&self.folder).output().unwrap();
        let Outcome { code, mut stdout, stderr } = output.into();
        if line.starts_with("bench ") {
            // Times differ from call to call: what stands in a line before the first one is compared.
            let before = |line: &str| line.chars().take(BEFORE_TIMES).chain(['\n']).collect::<String>();
            stdout = stdout.lines().map(before).collect();
        }
        let stderr = stderr.lines().filter(|line| !line.contains("done in ")).map(str::to_owned).collect();
        let content = |name: String| (std::fs::read(self.folder.join(&name)).unwrap(), name);
        let files = files(&self.folder).into_iter().map(content).map(|(bytes, name)| (name, bytes)).collect();
        Left { code, stdout, stderr, files }
    }

    /// Why the effect of an option is not as the table says.
    fn problem(&self, mode: &Mode, base: &Left, effect: &Effect) -> Option<String> {
        let with = |extra: &str| self.call(&format!("{} {extra}", mode.base));
        match effect {
            Effect::Changes(extra) => {
                let left = with(extra);
                let is_as_said = left.code == base.code && left != *base;
                (!is_as_said).then(|| format!("{extra} changes nothing, or fails: {}", words(&left)))
            }
            Effect::Between(first, second) => {
                let (one, other) = (with(first), with(second));
                let is_as_said = one.code == base.code && other.code == base.code && one != other;
                (!is_as_said).then(|| format!("{first} gives the same as {second}, or fails: {}", words(&other)))
            }
            Effect::Instead(line) => (self.call(line) == *base).then(|| format!("`{line}` gives the same")),
            Effect::Refused(extra, sentence) => {
                let left = with(extra);
                let is_as_said = left.code != 0 && left.stderr.iter().any(|line| line.contains(sentence));
                (!is_as_said).then(|| format!("{extra} is not refused with \"{sentence}\": {}", words(&left)))
            }
            Effect::OnlySpeed(extra) => {
                let left = with(extra);
                (left != *base).then(|| format!("{extra} changes more than the speed: {}", words(&left)))
            }
        }
    }

    /// Why the dry run of a mode with `--json` does not say in JSON what it would do, or writes something.
    fn problem_of_dry_run(&self, mode: &Mode, untouched: &[(String, Vec<u8>)]) -> Option<String> {
        let needed = ["--dry-run", "--json"];
        let has = |name: &&str| mode.options.iter().any(|(option, _)| option == name);
        if !needed.iter().all(has) {
            return None;
        }
        let missing = needed.into_iter().filter(|name| !mode.base.contains(name));
        let left = self.call(&missing.fold(mode.base.clone(), |line, name| format!("{line} {name}")));
        let printed: serde_json::Value = serde_json::from_str(&left.stdout).unwrap_or_default();
        let is_as_said = left.code == 0 && printed["would"].is_string() && left.files == untouched;
        (!is_as_said).then(|| format!("the dry run of `{}` with --json: {}\n{}", mode.base, words(&left), left.stdout))
    }
}

fn words(left: &Left) -> String {
    format!("exit code {}\n{}", left.code, left.stderr.join("\n"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            // Names of caches depend on the times of the files.
            let time = entry.metadata().unwrap().modified().unwrap();
            std::fs::File::options().append(true).open(target).unwrap().set_modified(time).unwrap();
        }
    }
}

/// Every command that runs, as `weights import`, with its options (`--json`) and arguments (`RUN`).
fn commands() -> Vec<(String, BTreeSet<String>)> {
    fn visit(command: &clap::Command, path: &str, found: &mut Vec<(String, BTreeSet<String>)>) {
        for below in command.get_subcommands() {
            visit(below, format!("{path} {}", below.get_name()).trim(), found);
        }
        if !command.has_subcommands() {
            let options = command.get_arguments().filter(|option| option.get_id() != "help");
            let name = |option: &clap::Arg| match option.get_long() {
                Some(long) => format!("--{long}"),
                None => option.get_value_names().unwrap()[0].to_string(),
            };
            found.push((path.to_owned(), options.map(name).collect()));
        }
    }
    let mut found = Vec::new();
    visit(&Arguments::command(), "", &mut found);
    found
}

#[test]
fn every_option_of_every_command_has_an_entry_in_every_mode() {
    let modes = modes();
    for (command, options) in commands() {
        let of_command: Vec<&Mode> = modes.iter().filter(|mode| mode.command == command).collect();
        assert!(!of_command.is_empty(), "{command} has no mode in options/table.rs");
        for mode in of_command {
            let entries: BTreeSet<String> = mode.options.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(entries.len(), mode.options.len(), "{command}, {}: an option is named twice", mode.name);
            assert_eq!(entries, options, "{command}, {}: entries of options/table.rs, and options", mode.name);
        }
    }
    for mode in &modes {
        assert!(commands().iter().any(|(command, _)| *command == mode.command), "{} is no command", mode.command);
        assert!(mode.base.starts_with(mode.command), "{}: its call is another command", mode.base);
    }
}

#[test]
fn no_option_is_accepted_and_ignored_and_dry_runs_write_nothing_but_json() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = folder.path().join("fixtures");
    fixtures::write(&fixtures);
    let place = Workplace { fixtures, folder: folder.path().join("work") };
    let untouched = place.call("list").files;
    let mut problems = Vec::new();
    for mode in modes() {
        let base = place.call(&mode.base);
        assert_eq!(base.code, 0, "{}: {}", mode.base, words(&base));
        let again = place.call(&mode.base);
        let changed = || again.files.iter().filter(|file| !base.files.contains(file)).map(|(name, _)| name);
        assert!(again == base, "{}: two calls differ, in {:?}", mode.base, changed().collect::<Vec<_>>());
        let found =
            mode.options.iter().filter_map(|(option, effect)| Some((option, place.problem(&mode, &base, effect)?)));
        problems.extend(place.problem_of_dry_run(&mode, &untouched));
        problems
            .extend(found.map(|(option, problem)| format!("{} ({}), {option}: {problem}", mode.command, mode.name)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
