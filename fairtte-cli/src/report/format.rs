//! The format of numbers and texts, shared by the table, the page and the plots.

use fairtte_metrics::evaluation::Estimate;

/// Value of a metric, gap or interval end: three decimals.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".to_owned() } else { text }
}

/// The value, or the word `undefined`.
pub(super) fn value(estimate: &Estimate) -> String {
    estimate.value.map_or_else(|| "undefined".to_owned(), number)
}

/// A p value: three decimals, or `< 0.001`.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0005 { "< 0.001".to_owned() } else { number(p) }
}

/// The same after the letter p: `= 0.021`, `< 0.001`.
pub(crate) fn p_relation(p: f64) -> String {
    let p = p_value(p);
    if p.starts_with('<') { p } else { format!("= {p}") }
}

/// The interval as `0.652 to 0.791`, where there is one to show.
pub(super) fn interval(estimate: &Estimate) -> Option<String> {
    let (lower, upper) = known_ends(estimate)?;
    Some(format!("{} to {}", number(lower), number(upper)))
}

/// The ends of the interval, where there is one to show.
pub(super) fn known_ends(estimate: &Estimate) -> Option<(f64, f64)> {
    telling_ends(estimate.lower.zip(estimate.upper)?, estimate.n_subjects, estimate.n_events)
}

/// `ends` unless all replicates gave one value because it is that of a single subject, event or mask: such an interval says
/// nothing about how certain the value is.
pub(super) fn telling_ends((lower, upper): (f64, f64), n_subjects: usize, n_events: usize) -> Option<(f64, f64)> {
    // A mean with other weights can differ in its last bits.
    let is_point = upper - lower <= 1e-9 * lower.abs().max(upper.abs());
    (!is_point || n_subjects > 1 && n_events > 1).then_some((lower, upper))
}

/// `sex = F`, `age <= 60`.
pub(crate) fn of_level(attribute: &str, level: &str) -> String {
    let after_sign = level.trim_start_matches(['<', '>', '=', '\u{2264}', '\u{2265}']);
    let is_threshold = after_sign.len() < level.len() && starts_a_number(after_sign);
    format!("{attribute}{}{level}", if is_threshold { " " } else { " = " })
}

/// Whether a number follows, as after the sign of a threshold.
pub(super) fn starts_a_number(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'))
}

/// Up to four significant digits without trailing zeros, for times and axis ticks.
pub(crate) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.*}", decimals_of(value));
    match if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() } {
        "-0" => "0".to_owned(),
        shown => shown.to_owned(),
    }
}

/// Decimals of four significant digits.
fn decimals_of(value: f64) -> usize {
    let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 9.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "decimals lies in [0, 9]")]
    let decimals = decimals as usize;
    decimals
}

/// The values of one column with one number of decimals, so that they can be compared at a glance: as many as [`short`] needs
/// for one of them, but no more than three unless all are small. Where that would show a small value as 0, each is [`short`].
pub(super) fn column(values: &[f64]) -> Vec<String> {
    let after_point = |value: &f64| short(*value).split_once('.').map_or(0, |(_, after)| after.len());
    let needed = values.iter().map(after_point).max().unwrap_or(0);
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let decimals = needed.min(decimals_of(largest).max(3));
    let fixed = |value: &f64| format!("{:.decimals$}", if *value == 0.0 { 0.0 } else { *value });
    let is_lost = |value: &f64| *value != 0.0 && fixed(value).trim_matches(['-', '0', '.']).is_empty();
    if values.iter().any(is_lost) {
        return values.iter().map(|value| short(*value)).collect();
    }
    values.iter().map(fixed).collect()
}

/// The same where some values are missing.
pub(super) fn column_of(values: impl Iterator<Item = Option<f64>>) -> Vec<Option<String>> {
    let values: Vec<Option<f64>> = values.collect();
    let mut shown = column(&values.iter().copied().flatten().collect::<Vec<_>>()).into_iter();
    values.iter().map(|value| value.and_then(|_| shown.next())).collect()
}

/// A share in (0, 1) as `95 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// `1 event`, `2 events`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}

/// Text without control characters, which could move the cursor of a terminal or break a line.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// `text` in at most `n` characters, with `…` in place of the rest.
pub(super) fn elide(text: &str, n: usize) -> String {
    if text.chars().count() <= n {
        return text.to_owned();
    }
    let kept: String = text.chars().take(n.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Breaks `text` at spaces into lines of at most `width` characters; a longer word is cut.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while word.len() > width {
            let rest = word.split_off(width);
            push_word(&mut lines, &word, false);
            lines.push(String::new());
            word = rest;
        }
        push_word(&mut lines, &word, used > 0);
        used += word.len() + usize::from(used > 0);
    }
    lines
}

fn push_word(lines: &mut [String], word: &[char], after_another: bool) {
    if let Some(line) = lines.last_mut() {
        if after_another {
            line.push(' ');
        }
        line.extend(word);
    }
}

/// Escapes `text` for HTML and SVG, as element content or in a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_minus_zero() {
        assert_eq!([number(-0.0001), number(0.71249), number(1.0)], ["0.000", "0.712", "1.000"]);
        assert_eq!([short(0.0), short(0.1 + 0.2), short(12.5), short(7.0)], ["0", "0.3", "12.5", "7"]);
        assert_eq!([short(-1e-17), short(-0.0)], ["0", "0"]);
        assert_eq!([short(1234.6), short(100.0), short(0.000_12), short(-2.5)], ["1235", "100", "0.00012", "-2.5"]);
        assert_eq!([percent(0.95), percent(0.999)], ["95 %", "99.9 %"]);
        assert_eq!([p_value(0.000_1), p_value(1.0 / 1001.0), p_value(1.0)], ["< 0.001", "0.001", "1.000"]);
    }

    #[test]
    fn a_column_has_one_number_of_decimals() {
        assert_eq!(column(&[37.8, 49.56, 0.0]), ["37.80", "49.56", "0.00"]);
        assert_eq!(column(&[4.62, 4.583]), ["4.620", "4.583"]);
        assert_eq!(column(&[1995.0, 240.0]), ["1995", "240"]);
        assert_eq!(column(&[0.000_12, 0.000_312_4]), ["0.0001200", "0.0003124"]);
        assert_eq!(column(&[0.012_34, 12.5, -0.0]), ["0.012", "12.500", "0.000"]);
        // Three decimals would show it as 0.
        assert_eq!(column(&[0.000_12, 12.5]), ["0.00012", "12.5"]);
        assert!(column(&[]).is_empty());
        let with_gap = column_of([Some(4.62), None, Some(4.583)].into_iter());
        assert_eq!(with_gap, [Some("4.620".to_owned()), None, Some("4.583".to_owned())]);
    }

    #[test]
    fn one_subject_and_one_event_have_no_interval_to_show() {
        let of = |ends, n_subjects, n_events| telling_ends(ends, n_subjects, n_events);
        let point = (4.922, 4.922 + 1e-15);
        assert_eq!([of(point, 1, 1), of((0.0, 0.0), 3, 0), of((0.7, 0.7), 2, 1)], [None; 3]);
        // A perfect value of many subjects, and the interval of several samples of one subject.
        assert_eq!((of((1.0, 1.0), 80, 80), of((0.2, 0.3), 1, 0)), (Some((1.0, 1.0)), Some((0.2, 0.3))));
    }

    #[test]
    fn a_threshold_is_joined_without_an_equals_sign() {
        assert_eq!([of_level("sex", "F"), of_level("age", "<= 60")], ["sex = F", "age <= 60"]);
        assert_eq!([of_level("age", "> 50 to 65"), of_level("age", "<b>")], ["age > 50 to 65", "age = <b>"]);
    }

    #[test]
    fn wrapping_keeps_every_word_and_cuts_what_is_too_long() {
        assert_eq!(wrap("no event at or before time 3", 12), ["no event at", "or before", "time 3"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("x abcdefgh", 4), ["x", "abcd", "efgh"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn texts_are_cleaned_elided_and_escaped() {
        assert_eq!(clean("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!([elide("female", 6), elide("female and old", 8)], ["female", "female…"]);
        assert_eq!(escape("<a b='\"'>&"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(list(&["a".to_owned(), "b".to_owned(), "c".to_owned()]), "a, b and c");
        assert_eq!([count(1, "event"), count(0, "event")], ["1 event", "0 events"]);
    }
}
