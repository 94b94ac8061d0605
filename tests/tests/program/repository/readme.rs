//! The table of the demo in the README and in the introduction of the guide is what the program prints.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

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

#[test]
fn decimals_are_masked_and_counts_are_not() {
    assert_eq!(without_decimals("F  0.598  -0.1 to 0.25  161"), "F  0.___   0._ to 0.__  161");
}
