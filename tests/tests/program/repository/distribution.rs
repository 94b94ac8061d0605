//! The files from which containers, wheels and releases are built name versions, features and paths that exist.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::Table;

/// The licences of the packages that a build contains, which the release workflow writes.
const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES.txt";

/// Files in which the version of the compiler is written, with the text around it.
const COMPILER: [(&str, &str); 4] = [
    ("Dockerfile", "ARG RUST={}\n"),
    ("fairtte.def", "From: docker.io/library/rust:{}-slim-bookworm\n"),
    (".github/workflows/release.yml", "rust-toolchain: {}\n"),
    (".github/workflows/release.yml", "RUSTUP_TOOLCHAIN: {}\n"),
];

/// Files that name features of `fairtte-cli` or paths of the repository.
const COMMANDS: [&str; 7] = [
    "Dockerfile",
    "fairtte.def",
    ".github/workflows/release.yml",
    "README.md",
    "CHANGELOG.md",
    "docs/src/getting-started.md",
    "docs/src/installing.md",
];

/// The folder of the workspace.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A TOML file of the repository.
pub(super) fn table(path: &str) -> Table {
    read(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rest of each line of `text` after `start`, without the spaces around it.
fn after<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.trim().strip_prefix(start)).map(str::trim)
}

/// Lines of a section of an Apptainer definition, up to the next section or stage.
fn section<'a>(definition: &'a str, title: &str) -> Vec<&'a str> {
    let lines = definition.lines().skip_while(|line| *line != title).skip(1);
    lines.take_while(|line| !line.starts_with('%') && !line.starts_with("Bootstrap:")).map(str::trim).collect()
}

/// The paths of the repository that reach a build: `.dockerignore` excludes everything and names exceptions.
fn context() -> Vec<String> {
    let ignored = read(".dockerignore");
    assert_eq!(after(&ignored, "*").next(), Some(""), "the first pattern excludes everything");
    after(&ignored, "!").map(str::to_owned).collect()
}

#[test]
fn every_file_names_the_compiler_of_the_workspace() {
    let channel = table("rust-toolchain.toml")["toolchain"]["channel"].as_str().unwrap().to_owned();
    let oldest = table("Cargo.toml")["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    assert!(channel == oldest || channel.starts_with(&format!("{oldest}.")), "{channel} and {oldest}");
    for (path, pattern) in COMPILER {
        let (start, end) = pattern.split_once("{}").unwrap();
        let text = read(path);
        let found: Vec<&str> = text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect();
        assert!(!found.is_empty(), "{path} contains no {start:?}");
        for version in found {
            assert_eq!(version, channel, "{path}: {start:?}");
        }
    }
}

#[test]
fn every_feature_that_a_command_names_exists() {
    let manifest = table("fairtte-cli/Cargo.toml");
    let features = manifest["features"].as_table().unwrap();
    let mut n = 0;
    for path in COMMANDS {
        // Other programs have features of their own.
        let text = read(path);
        let text: Vec<&str> = text.lines().filter(|line| !line.contains("cargo install cargo-")).collect();
        let text = text.join("\n");
        for start in ["--features ", "--features=", "FEATURES="] {
            for rest in text.split(start).skip(1) {
                let list: String = rest.chars().take_while(|&c| c.is_alphanumeric() || "-_,".contains(c)).collect();
                for feature in list.split(',').filter(|feature| !feature.is_empty()) {
                    assert!(features.contains_key(feature), "{path} names the feature {feature:?}");
                    n += 1;
                }
            }
        }
    }
    assert!(n >= 8, "only {n} features were found");
    let defaults: Vec<&str> =
        features["default"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let expected = format!("FEATURES={}", defaults.join(","));
    for path in ["Dockerfile", "fairtte.def", ".github/workflows/release.yml"] {
        assert!(read(path).contains(&expected), "{path} does not contain {expected}, the default features");
    }
}

#[test]
fn a_build_in_a_container_gets_every_file_that_it_reads() {
    let context = context();
    let definition = read("fairtte.def");
    let copied: Vec<&str> = section(&definition, "%files").iter().filter_map(|line| line.split(' ').next()).collect();
    let copied: Vec<String> = copied.iter().filter(|path| !path.is_empty()).map(|&path| path.to_owned()).collect();
    // Written by the release workflow alone.
    let context: Vec<String> = context.into_iter().filter(|path| path != THIRD_PARTY).collect();
    for path in context.iter().chain(&copied) {
        assert!(root().join(path).exists(), "{path} does not exist");
    }
    assert_eq!(context, copied, ".dockerignore and fairtte.def name the same paths in the same order");
    let manifest = table("Cargo.toml");
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let members = members.iter().map(|member| member.as_str().unwrap());
    for needed in members.chain(["Cargo.toml", "Cargo.lock"]) {
        let first = needed.split('/').next().unwrap();
        assert!(context.iter().any(|path| path == first), "{needed} does not reach a build in a container");
    }
}

#[test]
fn the_last_stage_holds_the_program_and_its_licences_and_is_not_run_by_root() {
    let docker = read("Dockerfile");
    let (_, last) = docker.rsplit_once("\nFROM ").unwrap();
    let definition = read("fairtte.def");
    let from_build: Vec<&str> = after(last, "COPY ").collect();
    let files: Vec<&str> =
        section(&definition, "%files from build").into_iter().filter(|line| !line.is_empty()).collect();
    // Docker takes all licences there are, Apptainer those of the repository.
    let licences: [&[&str]; 2] = [&["*LICENSE*"], &["LICENSE-APACHE", "LICENSE-MIT"]];
    for (lines, licences) in [from_build, files].into_iter().zip(licences) {
        let sources = lines.iter().flat_map(|line| line.split(' ')).filter_map(|word| word.strip_prefix("/build/"));
        let mut sources: Vec<&str> = sources.collect();
        sources.sort_unstable();
        assert_eq!(sources, [licences, &["target/release/fairtte"]].concat(), "{lines:?}");
    }
    let user: u32 = after(last, "USER ").last().expect("a USER").parse().expect("the number of a user");
    assert_ne!(user, 0);
    let manifest = table("fairtte-cli/Cargo.toml");
    assert_eq!(manifest["package"]["name"].as_str(), Some("fairtte-cli"));
    assert_eq!(manifest["bin"][0]["name"].as_str(), Some("fairtte"));
    for text in [&docker, &definition] {
        assert!(text.contains("cargo build --locked --release -p fairtte-cli --no-default-features --features"));
    }
}

#[test]
fn the_wheel_has_the_version_of_the_workspace_and_holds_a_program() {
    let project = table("pyproject.toml");
    let dynamic = project["project"].get("dynamic").and_then(|names| names.as_array());
    let is_dynamic = dynamic.is_some_and(|names| names.iter().any(|name| name.as_str() == Some("version")));
    let version = table("Cargo.toml")["workspace"]["package"]["version"].clone();
    assert!(is_dynamic || project["project"].get("version") == Some(&version), "neither dynamic nor {version}");
    let package = table("python/Cargo.toml")["package"]["version"].clone();
    assert_eq!(package, version, "python/Cargo.toml has the version of the workspace");
    let maturin = project["tool"]["maturin"].as_table().unwrap();
    assert_eq!(maturin["bindings"].as_str(), Some("bin"));
    assert_eq!(maturin["manifest-path"].as_str(), Some("fairtte-cli/Cargo.toml"));
    let readme = project["project"]["readme"].as_str().unwrap();
    assert!(root().join(readme).exists(), "{readme} does not exist");
    for entry in maturin["include"].as_array().unwrap() {
        let path = entry["path"].as_str().unwrap();
        assert!(root().join(path).exists(), "{path} does not exist");
    }
    assert_eq!(project["project"]["license"], table("Cargo.toml")["workspace"]["package"]["license"]);
}

#[test]
fn every_crate_has_the_version_of_the_workspace_also_in_the_lock_files() {
    let manifest = table("Cargo.toml");
    let version = manifest["workspace"]["package"]["version"].clone();
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    let ours: Vec<_> = dependencies.iter().filter(|(name, _)| name.starts_with("fairtte-")).collect();
    assert!(ours.len() >= 10, "{ours:?}");
    for (name, dependency) in ours {
        assert_eq!(dependency["version"], version, "{name} under [workspace.dependencies]");
    }
    for path in ["Cargo.lock", "python/Cargo.lock"] {
        let lock = table(path);
        let packages = lock["package"].as_array().unwrap().iter();
        let ours: Vec<_> =
            packages.filter(|package| package["name"].as_str().unwrap().starts_with("fairtte-")).collect();
        assert!(ours.len() >= 5, "{path}: {ours:?}");
        for package in ours {
            assert_eq!(package["version"], version, "{path}: {}", package["name"]);
        }
    }
}

#[test]
fn wheels_hold_the_licences_of_the_workspace_and_of_what_they_are_built_from() {
    for path in ["pyproject.toml", "python/pyproject.toml"] {
        let project = table(path);
        // One pattern, which the licences of the repository match: without those of other packages a wheel can be built as well.
        assert_eq!(project["project"]["license-files"].to_string(), "[\"*LICENSE*\"]", "{path}");
        assert_eq!(project["tool"]["maturin"]["locked"].as_bool(), Some(true), "{path}");
    }
    for path in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(read(&format!("python/{path}")) == read(path), "python/{path} differs from {path}");
    }
    assert!(read(".github/workflows/release.yml").contains(&format!("--output-file python/{THIRD_PARTY}\n")));
    let accepted = |path: &str, list: toml::Value| -> BTreeSet<String> {
        let list = list.as_array().unwrap_or_else(|| panic!("{path} has no list of licences")).clone();
        list.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let written = accepted("about.toml", table("about.toml")["accepted"].clone());
    assert_eq!(written, accepted("deny.toml", table("deny.toml")["licenses"]["allow"].clone()));
}

#[test]
fn every_program_that_is_installed_or_released_has_the_packages_of_the_lock_file() {
    // What the changelog says of earlier versions stays as it was.
    for path in COMMANDS.into_iter().filter(|path| *path != "CHANGELOG.md") {
        let text = read(path);
        for unlocked in ["cargo install --path", "cargo build --release"] {
            assert!(!text.contains(unlocked), "{path}: {unlocked}, expected --locked");
        }
    }
}

#[test]
fn every_action_of_the_release_is_pinned_to_a_commit() {
    let text = read(".github/workflows/release.yml");
    let actions: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action).collect();
    assert!(actions.len() >= 4, "{actions:?}");
    for action in actions {
        let (_, rest) = action.split_once('@').unwrap_or_else(|| panic!("{action} has no version"));
        let (commit, version) = rest.split_once(" # v").unwrap_or_else(|| panic!("{action} does not name its version"));
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{action}");
    }
    for archive in text.lines().filter(|line| line.contains(" README.md ")) {
        assert!(archive.contains(&format!("cp LICENSE-MIT LICENSE-APACHE {THIRD_PARTY} README.md")), "{archive}");
    }
}
