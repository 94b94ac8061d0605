//! No option of any command is accepted and ignored: every option of every command has an entry for every mode of the
//! command (`options/table.rs`), which shows that it changes the results or what a dry run prints, or that it is refused. That
//! settings or a page repeat an option is no evidence: results are compared without them. The options are those of the program's own definition, so that a new one without an entry fails here.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

mod fixtures;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use clap::CommandFactory as _;
use fairtte_cli::args::Arguments;
use fairtte_tests::{Outcome, fairtte, files};
use serde_json::Value;

use self::table::{Effect, Mode, modes};

/// A folder with copies of the fixtures, the same path for every call, so that paths in results are equal.
struct Workplace {
    fixtures: PathBuf,
    folder: PathBuf,
    /// Its files before every call.
    untouched: BTreeMap<String, Stamp>,
}

/// Length and time of a file.
type Stamp = (u64, SystemTime);

/// What a call leaves: exit code, both outputs without times of the clock, and every file that it wrote, changed or removed.
#[derive(Debug, PartialEq)]
struct Left {
    code: i32,
    stdout: String,
    stderr: Vec<String>,
    files: BTreeMap<String, Option<Vec<u8>>>,
}

/// What was computed, without texts, settings and titles, which may repeat an option that has no effect.
#[derive(Debug, PartialEq)]
struct Computed {
    code: i32,
    results: BTreeMap<String, Option<Vec<u8>>>,
}

/// Keys of results that repeat what was asked for.
const ECHO: [&str; 5] = ["arguments", "settings", "title", "notes", "repair"];
/// Characters of a line of `bench` that are no measurement.
const BEFORE_TIMES: usize = 34;
/// Calls at the same time, each in a workplace of its own.
const N_WORKPLACES: usize = 2;

impl Left {
    fn computed(&self) -> Computed {
        let mut results = BTreeMap::new();
        for (name, content) in &self.files {
            // Of a page it counts that it is there.
            let result = |bytes: &Vec<u8>| {
                if is_of(name, "html") { Vec::new() } else { without_echo(bytes).unwrap_or_else(|| bytes.clone()) }
            };
            results.insert(name.clone(), content.as_ref().map(result));
        }
        // A text beside numbers in a file says what is in them.
        let has_numbers = self.files.keys().any(|name| is_of(name, "json"));
        let stdout = without_echo(self.stdout.as_bytes());
        let stdout = stdout.or_else(|| (!has_numbers).then(|| self.stdout.clone().into_bytes()));
        results.insert("standard output".to_owned(), stdout);
        Computed { code: self.code, results }
    }
}

/// Whether the name of a file ends in this extension.
fn is_of(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

/// JSON without the keys that repeat options; `None` of anything else.
fn without_echo(text: &[u8]) -> Option<Vec<u8>> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.retain(|key, _| !ECHO.contains(&key.as_str()));
                object.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::from_slice(text).ok()?;
    strip(&mut value);
    Some(value.to_string().into_bytes())
}

impl Workplace {
    fn new(fixtures: &Path, folder: PathBuf) -> Self {
        copy(fixtures, &folder);
        let untouched = stamps(&folder);
        Self { fixtures: fixtures.to_owned(), folder, untouched }
    }

    fn call(&self, line: &str) -> Left {
        let output = fairtte().args(line.split_whitespace()).current_dir(&self.folder).output().unwrap();
        let Outcome { code, mut stdout, stderr } = output.into();
        if line.starts_with("bench ") {
            // Times differ from call to call: what stands in a line before the first one is compared.
            let before = |line: &str| line.chars().take(BEFORE_TIMES).chain(['\n']).collect::<String>();
            stdout = stdout.lines().map(before).collect();
        }
        let stderr = stderr.lines().filter(|line| !line.contains("done in ")).map(str::to_owned).collect();
        Left { code, stdout, stderr, files: self.restore() }
    }

    /// What differs from the fixtures, which are put back.
    fn restore(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let found = stamps(&self.folder);
        let mut differing = BTreeMap::new();
        for (name, stamp) in &found {
            if self.untouched.get(name) != Some(stamp) {
                let path = self.folder.join(name);
                differing.insert(name.clone(), Some(std::fs::read(&path).unwrap()));
                std::fs::remove_file(path).unwrap();
            }
        }
        let removed = self.untouched.keys().filter(|name| !found.contains_key(*name));
        differing.extend(removed.map(|name| (name.clone(), None)));
        differing.retain(|name, content| {
            if !self.untouched.contains_key(name) {
                return true;
            }
            let (from, to) = (self.fixtures.join(name), self.folder.join(name));
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            copy_file(&from, &to);
            content.as_ref() != Some(&std::fs::read(from).unwrap())
        });
        remove_folders_without(&self.fixtures, &self.folder);
        differing
    }

    /// Why the effect of an option is not as the table says. What a dry run prints repeats the options: that is all of it.
    fn problem(&self, mode: &Mode, base: &Left, effect: &Effect) -> Option<String> {
        let with = |extra: &str| self.call(&format!("{} {extra}", mode.base));
        let is_dry = mode.base.contains("--dry-run");
        let is_same = |one: &Left, other: &Left| if is_dry { one == other } else { one.computed() == other.computed() };
        match effect {
            Effect::Allows(_, extra) | Effect::Shown(extra) if is_dry => {
                let left = with(extra);
                (left == *base).then(|| format!("{extra} changes nothing, or fails: {}", words(&left)))
            }
            Effect::Changes(extra) => {
                let left = with(extra);
                let is_as_said = left.code == base.code && !is_same(&left, base);
                (!is_as_said).then(|| format!("{extra} changes no result, or fails: {}", words(&left)))
            }
            Effect::Shown(extra) => {
                let left = with(extra);
                let is_as_said = left.code == base.code && left != *base;
                (!is_as_said).then(|| format!("{extra} is not shown, or fails: {}", words(&left)))
            }
            Effect::Between(first, second) => {
                let (one, other) = (with(first), with(second));
                let is_as_said = one.code == base.code && other.code == base.code && !is_same(&one, &other);
                (!is_as_said).then(|| format!("{first} gives the same as {second}, or fails: {}", words(&other)))
            }
            Effect::Instead(line) => is_same(&self.call(line), base).then(|| format!("`{line}` gives the same")),
            Effect::Allows(line, extra) => {
                let (without, with) = (self.call(line), self.call(&format!("{line} {extra}")));
                let is_as_said = without.code != 0 && with.code == 0;
                (!is_as_said).then(|| format!("`{line}` without and with {extra}: {}{}", words(&without), words(&with)))
            }
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
    fn problem_of_dry_run(&self, mode: &Mode) -> Option<String> {
        let needed = ["--dry-run", "--json"];
        let has = |name: &&str| mode.options.iter().any(|(option, _)| option == name);
        if !needed.iter().all(has) {
            return None;
        }
        let missing = needed.into_iter().filter(|name| !mode.base.contains(name));
        let left = self.call(&missing.fold(mode.base.clone(), |line, name| format!("{line} {name}")));
        let printed: Value = serde_json::from_str(&left.stdout).unwrap_or_default();
        let is_as_said = left.code == 0 && printed["would"].is_string() && left.files.is_empty();
        (!is_as_said).then(|| format!("the dry run of `{}` with --json: {}\n{}", mode.base, words(&left), left.stdout))
    }

    /// Everything that is not as the table says of a mode.
    fn problems(&self, mode: &Mode) -> Vec<String> {
        let base = self.call(&mode.base);
        if base.code != 0 {
            return vec![format!("{}: {}", mode.base, words(&base))];
        }
        let again = self.call(&mode.base);
        if again != base {
            let differing = again.files.iter().filter(|(name, content)| base.files.get(*name) != Some(content));
            let names: Vec<&String> = differing.map(|(name, _)| name).collect();
            return vec![format!("{}: two calls differ, in {names:?}", mode.base)];
        }
        let of_option = |(option, effect): &(&str, Effect)| {
            let problem = self.problem(mode, &base, effect)?;
            Some(format!("{} ({}), {option}: {problem}", mode.command, mode.name))
        };
        self.problem_of_dry_run(mode).into_iter().chain(mode.options.iter().filter_map(of_option)).collect()
    }
}

fn words(left: &Left) -> String {
    format!("exit code {}\n{}", left.code, left.stderr.join("\n"))
}

fn stamps(folder: &Path) -> BTreeMap<String, Stamp> {
    let stamp = |name: String| {
        let about = std::fs::metadata(folder.join(&name)).unwrap();
        (name, (about.len(), about.modified().unwrap()))
    };
    files(folder).into_iter().map(stamp).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { copy_file(&path, &target) }
    }
}

/// With its time, on which names of caches depend.
fn copy_file(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
    let time = std::fs::metadata(from).unwrap().modified().unwrap();
    std::fs::File::options().append(true).open(to).unwrap().set_modified(time).unwrap();
}

/// Removes the folders below `folder` that are not below `fixtures`.
fn remove_folders_without(fixtures: &Path, folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let known = fixtures.join(path.file_name().unwrap());
        match (path.is_dir(), known.is_dir()) {
            (true, true) => remove_folders_without(&known, &path),
            (true, false) => std::fs::remove_dir_all(path).unwrap(),
            (false, _) => {}
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
    let (modes, next) = (modes(), AtomicUsize::new(0));
    let walk = &|place: usize| {
        let place = Workplace::new(&fixtures, folder.path().join(format!("work-{place}")));
        let claimed = std::iter::from_fn(|| modes.get(next.fetch_add(1, Ordering::Relaxed)));
        claimed.flat_map(|mode| place.problems(mode)).collect::<Vec<String>>()
    };
    let problems: Vec<String> = std::thread::scope(|scope| {
        let walks: Vec<_> = (0..N_WORKPLACES).map(|place| scope.spawn(move || walk(place))).collect();
        walks.into_iter().flat_map(|walk| walk.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn what_repeats_an_option_is_no_result() {
    let left = |settings: u32, value: u32| {
        let json = format!("{{\"settings\":{settings},\"models\":[{{\"value\":{value},\"title\":{settings}}}]}}");
        let files = [("a.json", json), ("a.html", settings.to_string())];
        let files = files.map(|(name, text)| (name.to_owned(), Some(text.into_bytes())));
        Left { code: 0, stdout: settings.to_string() + " replicates", stderr: Vec::new(), files: files.into() }
    };
    assert_eq!(left(1, 2).computed(), left(3, 2).computed());
    assert_ne!(left(1, 2).computed(), left(1, 3).computed());
    let printed = |text: &str| Left { stdout: text.to_owned(), files: BTreeMap::new(), ..left(1, 2) };
    assert_ne!(printed("5").computed(), printed("6").computed());
}
