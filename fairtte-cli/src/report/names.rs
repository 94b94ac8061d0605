//! Names of figures and tables: ids inside a page and stems of files, made of the names of metrics, attributes and groups.

use std::collections::HashSet;

use fairtte_metrics::evaluation::MetricReport;

use super::format::starts_a_number;

/// Most bytes of a name that is made of one text. File systems allow 255, of which a letter takes up to four; the longest stems are
/// those of calibration by model, attribute and group, with three names.
const LONGEST: usize = 60;
/// The same of one of the parts of a text that `: ` divides, so that the first does not use up all of it.
const LONGEST_PART: usize = 40;

/// One name per text: small letters and digits, `: ` as `_`, `<=` as `le`, everything else as single hyphens. No two are the same, so that none
/// replaces another as a file: repeated ones are numbered from 2.
pub(super) fn names<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut used = HashSet::new();
    let unused = |text: &str| {
        let joined = text.split(": ").map(name).collect::<Vec<_>>().join("_");
        let name = start(&joined, LONGEST).trim_end_matches(['-', '_']);
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| used.insert(name.clone()));
        free.unwrap_or_else(|| name.to_owned())
    };
    texts.into_iter().map(unused).collect()
}

/// One name per metric, of its name in settings.
pub(super) fn names_of_metrics<'a>(metrics: impl IntoIterator<Item = &'a MetricReport>) -> Vec<String> {
    let in_settings = |metric: &'a MetricReport| match metric.name.as_str() {
        "c_td_antolini_strict" => "c-td",
        name => name,
    };
    names(metrics.into_iter().map(in_settings))
}

/// Signs that distinguish the groups of a threshold, in letters.
const SIGNS: [(&str, &str); 6] =
    [("<=", " le "), (">=", " ge "), ("\u{2264}", " le "), ("\u{2265}", " ge "), ("<", " lt "), (">", " gt ")];

/// `text` with the signs before numbers in letters.
fn spelled(text: &str) -> String {
    let mut spelled = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let sign = SIGNS.iter().find(|(sign, _)| rest.strip_prefix(sign).is_some_and(starts_a_number));
        let same = &rest[..first.len_utf8()];
        let (taken, shown) = sign.copied().unwrap_or((same, same));
        spelled.push_str(shown);
        rest = &rest[taken.len()..];
    }
    spelled
}

fn name(text: &str) -> String {
    let text = spelled(text);
    let letters: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let joined = letters.to_lowercase().split_whitespace().collect::<Vec<_>>().join("-");
    match start(&joined, LONGEST_PART).trim_end_matches('-') {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

/// The start of `text` in at most `most` bytes, cut between two characters.
fn start(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_as_a_file_and_no_two_are_the_same() {
        let texts = [
            "sex",
            "Sex",
            "sex-2",
            "sex x race",
            "../etc",
            "c_td",
            "auc:1.5",
            "",
            "%",
            "\u{1b}[2J",
            "größe",
            "race: A & B",
        ];
        let expected = [
            "sex",
            "sex-2",
            "sex-2-2",
            "sex-x-race",
            "etc",
            "c-td",
            "auc-1-5",
            "unnamed",
            "unnamed-2",
            "2j",
            "größe",
            "race_a-b",
        ];
        assert_eq!(names(texts), expected);
        let thresholds = ["<= 60", "> 60", "< 60", ">=60", "age: > 50 to 65", "M & \u{2264} 60.5", "<b>"];
        assert_eq!(names(thresholds), ["le-60", "gt-60", "lt-60", "ge-60", "age_gt-50-to-65", "m-le-60-5", "b"]);
    }

    #[test]
    fn a_name_is_cut_by_its_bytes_and_numbered_after_the_cut() {
        let long = "very long name of a group ".repeat(20);
        assert_eq!(names([long.as_str()])[0].len(), LONGEST_PART);
        // A letter of two, of three and of four bytes; 40 is no multiple of three.
        for letter in ["ж", "字", "𠮷"] {
            let long = letter.repeat(100);
            let [name, second] = [0, 1].map(|place| names([long.as_str(), long.as_str()])[place].clone());
            assert_eq!(name, letter.repeat(40 / letter.len()));
            assert_eq!(second, format!("{name}-2"));
            let texts = [format!("{long}: {long}"), [long.as_str(); 9].join(": ")];
            let [two, many] = [0, 1].map(|place| names(texts.iter().map(String::as_str))[place].clone());
            assert!(two.starts_with(&format!("{name}_{letter}")) && two.len() <= LONGEST, "{two}");
            assert_eq!(many, format!("{two}-2"));
        }
    }
}
