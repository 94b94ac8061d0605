//! Every run file in `configs/` and in the guide parses and is checked; those on real images also read their data if it is available.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the numbers behind a bound are printed")]

use std::path::{Path, PathBuf};

use fairtte_tests::succeed;

use super::distribution::root;

#[test]
fn every_run_file_parses() {
    let mut n = 0;
    for entry in std::fs::read_dir(root().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let is_comparison = path.file_name().unwrap().to_string_lossy().starts_with("compare_");
            let command = if is_comparison { "compare" } else { "train" };
            succeed([command, "--dry-run", "--config", &path.display().to_string()]);
            n += 1;
        }
    }
    println!("{n} run files parsed");
    assert!(n >= 3, "configs/ contains at least demo, grape and lgg");
}

/// The pages below a folder of the guide.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// The blocks of TOML of a page, without the indentation of a list.
fn blocks_of_toml(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(indent) = line.strip_suffix("```toml").filter(|indent| indent.trim().is_empty()) else { continue };
        let end = format!("{indent}```");
        let block = lines.by_ref().take_while(|line| *line != end);
        blocks.push(block.map(|line| line.strip_prefix(indent).unwrap_or(line)).collect::<Vec<_>>().join("\n"));
    }
    blocks
}

#[test]
fn every_run_file_of_the_guide_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    let mut n = 0;
    // The page of errors shows a wrong one.
    for page in pages(&root().join("docs/src")).iter().filter(|page| !page.ends_with("errors.md")) {
        let text = std::fs::read_to_string(page).unwrap();
        for block in blocks_of_toml(&text).iter().filter(|block| block.contains("[data.")) {
            println!("{}", page.display());
            std::fs::write(&file, block).unwrap();
            succeed(["train", "--dry-run", "--config", &file.display().to_string()]);
            n += 1;
        }
    }
    assert!(n >= 15, "{n} run files were found");
}

#[test]
fn the_study_on_support_has_its_cells() {
    let table = root().parent().unwrap().join("shared/data/tabular_fairness/support_named.csv.gz");
    if !table.exists() {
        println!("skipped: {} is missing", table.display());
        return;
    }
    let path = root().join("configs/studies/support.toml").display().to_string();
    let planned = succeed(["study", "plan", &path, "--dry-run", "--json"]).stdout;
    let planned: serde_json::Value = serde_json::from_str(&planned).unwrap();
    // 3 attributes x (erm + 15 strategies); those that read no groups are trained once for all three.
    assert_eq!((planned["cells"].as_u64(), planned["trainings"].as_u64()), (Some(48), Some(400)));
}

#[test]
fn the_run_files_of_the_paper_have_its_pre_processing_and_time_grid() {
    for (name, size, intervals) in [
        ("adni", "size = [96, 128, 128]", "intervals = 28"),
        ("areds", "size = [224, 224]", "intervals = 14"),
        ("mimic-cxr", "size = [224, 224]", "intervals = 128"),
    ] {
        let path = root().join(format!("configs/{name}.toml")).display().to_string();
        let printed =
            succeed(["train", "--dry-run", "--config", &path]).stdout.replace(['\n', ' '], "").replace(",]", "]");
        for setting in ["intensity = \"unit\"", "channels = 3", "grid = \"equidistant\"", size, intervals] {
            assert!(printed.contains(&setting.replace(' ', "")), "{name}: {setting} is not in\n{printed}");
        }
    }
}

/// Prepares a run file on real images, at a small size, if its data set is available.
fn prepare(config: &str, table: &str, sets: &[&str]) -> Option<serde_json::Value> {
    let table = root().parent().unwrap().join("shared/data").join(table);
    if !table.exists() {
        println!("skipped: {} is missing", table.display());
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = root().join("configs").join(config).display().to_string();
    let output = folder.path().join("run").display().to_string();
    let mut arguments = vec!["prepare", "--json", "--config", &config, "--output", &output];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    Some(serde_json::from_str(&succeed(arguments).stdout).unwrap())
}

#[test]
fn the_fundus_photographs_of_grape_become_a_cohort() {
    if let Some(summary) = prepare("grape.toml", "grape/manifest.csv", &["image.size=[32, 32]"]) {
        assert_eq!((summary["n"].as_u64(), summary["n-subjects"].as_u64()), (Some(443), Some(144)));
        assert_eq!(summary["n-events"].as_u64(), Some(106));
    }
}

#[test]
fn the_brain_volumes_of_lgg_become_a_cohort() {
    if let Some(summary) = prepare("lgg.toml", "lgg_mri/manifest.csv", &["image.size=[12, 16, 16]"]) {
        assert_eq!((summary["n"].as_u64(), summary["n-subjects"].as_u64()), (Some(110), Some(110)));
        assert_eq!(summary["n-events"].as_u64(), Some(32));
    }
}

#[test]
fn the_patients_of_support_become_a_cohort() {
    if let Some(summary) = prepare("support.toml", "tabular_fairness/support_named.csv.gz", &[]) {
        assert_eq!((summary["n"].as_u64(), summary["n-events"].as_u64()), (Some(8873), Some(6036)));
    }
}
