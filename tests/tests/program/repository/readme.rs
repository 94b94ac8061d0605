//! The table of the demo in the README and in the introduction of the guide is what the program prints; names in the READMEs of the
//! crates lead to their source.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_tests::succeed;

/// The lines of the first block of text of a page, without the `..` that ends it.
fn first_block(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, block) = text.split_once("```text\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().filter(|line| *line != "..").map(str::to_owned).collect()
}

/// The same line with every digit behind a decimal point as `_`: training rounds differently on processors without AVX-512.
fn without_decimals(line: &str) -> String {
    let mut is_decimal = false;
    let masked = line.chars().map(|character| {
        is_decimal = character == '.' || is_decimal && character.is_ascii_digit();
        if is_decimal && character.is_ascii_digit() { '_' } else { character }
    });
    masked.collect::<String>().replace('-', " ")
}

#[test]
fn the_table_of_the_demo_is_what_the_program_prints() {
    let folder = tempfile::tempdir().unwrap();
    let printed = succeed(["demo", "--output", &folder.path().join("demo").display().to_string()]).stdout;
    #[cfg(target_arch = "x86_64")]
    let is_exact = std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    let is_exact = false;
    let of = |line: &str| if is_exact { line.to_owned() } else { without_decimals(line) };
    for page in ["README.md", "docs/src/introduction.md"] {
        let block = first_block(page);
        assert!(block.len() >= 6, "{page}: {block:?}");
        let mut lines = printed.lines();
        for line in &block {
            assert!(lines.any(|printed| of(printed) == of(line)), "{page}: \"{line}\" is not printed in this place");
        }
    }
}

/// Every name in brackets of a page with the file that it leads to, if the page says one.
fn names(page: &str) -> BTreeMap<&str, Option<&str>> {
    let definitions: BTreeMap<&str, &str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("[`")?.split_once("`]: "))
        .map(|(name, file)| (name, file.trim()))
        .collect();
    let named = page.split("[`").skip(1).filter_map(|rest| rest.split_once("`]"));
    let without_address = named.filter(|(_, rest)| !rest.starts_with('('));
    without_address.map(|(name, _)| (name, definitions.get(name).copied())).collect()
}

/// Whether a file is a module of this name or defines the last part of it.
fn is_defined(name: &str, file: &Path, text: &str) -> bool {
    /// Enums that a macro defines from the list of what is registered.
    const BY_MACRO: [&str; 2] = ["StrategyConfig", "HeadConfig"];
    // `pub use depthwise::normed as normed_depthwise`.
    let name = if name == "conv::normed_depthwise" { "normed" } else { name.rsplit("::").next().unwrap_or(name) };
    let is_folder = ["mod.rs", "README.md"].iter().any(|name| file.ends_with(name));
    let module = if is_folder { file.parent().unwrap() } else { file };
    let keywords = ["struct", "enum", "trait", "fn", "type", "const", "mod", "macro_rules!"];
    let ends = ["(", "<", " ", ";", ":", "{"];
    module.file_stem().is_some_and(|stem| stem == name)
        || BY_MACRO.contains(&name) && text.contains(name)
        || keywords.iter().any(|keyword| ends.iter().any(|end| text.contains(&format!("{keyword} {name}{end}"))))
}

#[test]
fn every_name_in_the_readme_of_a_crate_leads_to_its_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders =
        ["data", "data/images", "fairness", "metrics", "models", "models/kernels", "survival", "survival/classical"];
    for folder in folders.map(|folder| root.join(format!("fairtte-{folder}"))) {
        let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let names = names(&page);
        assert!(names.len() >= 3, "{}: {names:?}", folder.display());
        for (name, file) in names {
            let page = folder.join("README.md").display().to_string();
            let file = folder.join(file.unwrap_or_else(|| panic!("{page}: [`{name}`] leads nowhere")));
            let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{page}: [`{name}`]: {error}"));
            assert!(is_defined(name, &file, &text), "{page}: [`{name}`] is not defined in {}", file.display());
        }
    }
}

#[test]
fn names_of_a_page_are_found_with_and_without_a_file() {
    let page = "See [`a`], [`b::c`] and [`d`](elsewhere).\n\n[`a`]: src/a.rs\n";
    assert_eq!(names(page), BTreeMap::from([("a", Some("src/a.rs")), ("b::c", None)]));
}

#[test]
fn decimals_are_masked_and_counts_are_not() {
    assert_eq!(without_decimals("F  0.598  -0.1 to 0.25  161"), "F  0.___   0._ to 0.__  161");
}
