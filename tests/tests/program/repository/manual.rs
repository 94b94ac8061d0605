//! Shell completions and manual pages, generated from the arguments of the program.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeSet;
use std::path::Path;

use fairtte_tests::{fail, succeed};

/// Commands as the help lists them.
fn commands() -> BTreeSet<String> {
    let help = succeed(["--help"]).stdout;
    let listed =
        help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1).take_while(|line| !line.is_empty());
    listed
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shell_gets_a_script_with_every_command() {
    let commands = commands();
    assert!(commands.contains("train") && commands.contains("completions"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = succeed(["completions", shell]).stdout;
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell}: {command}");
        }
    }
    fail(["completions", "tcl"], 2, "invalid value 'tcl' for '<SHELL>'");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    succeed(["man-pages", &pages.display().to_string()]);
    let read = |name: &str| std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
    for command in commands().into_iter().filter(|command| command != "help") {
        assert!(read(&format!("fairtte-{command}")).contains(".SH NAME"), "{command}");
    }
    assert!(read("fairtte-weights-import").contains("arch"));
    assert!(read("fairtte-train").contains("Train a model and evaluate it"));
}

/// The first cells of the table of commands in the guide, each with the texts in its backticks.
fn cells_of_the_guide() -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/getting-started.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (_, table) = guide.split_once("\n## Commands\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    rows.map(|cell| format!("`{cell}").split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
}

#[test]
fn the_table_of_the_guide_has_every_command_and_every_list() {
    let cells = cells_of_the_guide();
    let first_word = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
    let named: BTreeSet<String> = cells.iter().flatten().map(first_word).collect();
    let known: BTreeSet<String> = commands().into_iter().filter(|command| command != "help").collect();
    assert_eq!(named, known);
    let listed = cells.iter().flatten().find_map(|text| text.strip_prefix("list [")?.strip_suffix(']')).unwrap();
    let help = succeed(["list", "--help"]).stdout;
    let possible = help.lines().filter_map(|line| Some(line.trim().strip_prefix("- ")?.split_once(':')?.0));
    assert_eq!(listed.split(", ").collect::<Vec<_>>(), possible.collect::<Vec<_>>());
}
