//! Every crate can be published: its folder contains all that its sources include, and both licences.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Component, Path, PathBuf};

use toml::Table;

use super::distribution::{root, table};

/// The folders of the crates that are published, and their manifests.
fn published() -> Vec<(PathBuf, Table)> {
    let workspace = table("Cargo.toml");
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members = members.iter().map(|member| member.as_str().unwrap());
    let crates = members.map(|member| (root().join(member), table(&format!("{member}/Cargo.toml"))));
    let is_published =
        |manifest: &Table| manifest["package"].get("publish").and_then(toml::Value::as_bool) != Some(false);
    crates.filter(|(_, manifest)| is_published(manifest)).collect()
}

/// The Rust files below `folder`, without those of other packages.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.join("Cargo.toml").exists() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// Without `.` and `..`, which `components` keeps.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(resolved.pop(), "{}", path.display()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}

/// The paths that `text` includes at compile time.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
    starts.into_iter().flat_map(|start| text.split(start).skip(1)).filter_map(|rest| rest.split('"').next())
}

#[test]
fn sources_include_no_file_outside_their_package() {
    let mut n = 0;
    for (folder, _) in published() {
        for file in sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for path in included(&text) {
                let target = resolved(&file.parent().unwrap().join(path));
                let (file, path) = (file.display(), target.display());
                assert!(target.starts_with(&folder), "{file} includes {path}, which a package does not contain");
                assert!(target.is_file(), "{file} includes {path}, expected a file");
                n += 1;
            }
        }
    }
    assert!(n > 50, "only {n} inclusions were found");
}

#[test]
fn packages_contain_the_licences_and_what_a_registry_shows() {
    let crates = published();
    assert!(crates.len() >= 10, "{} crates", crates.len());
    for (folder, manifest) in crates {
        let shown = folder.display();
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = std::fs::read(folder.join(licence)).unwrap_or_else(|error| panic!("{shown}/{licence}: {error}"));
            assert_eq!(text, std::fs::read(root().join(licence)).unwrap(), "{shown}/{licence}");
        }
        let package = manifest["package"].as_table().unwrap();
        for key in ["description", "license", "repository"] {
            assert!(package.contains_key(key), "{shown} has no {key}");
        }
        let readme = package["readme"].as_str().unwrap();
        assert!(folder.join(readme).is_file(), "{shown}: {readme}");
    }
}
