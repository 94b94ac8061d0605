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

/// The interval as `0.652 to 0.791`, where there is one.
pub(super) fn interval(estimate: &Estimate) -> Option<String> {
    let (lower, upper) = estimate.lower.zip(estimate.upper)?;
    Some(format!("{} to {}", number(lower), number(upper)))
}

/// Up to four significant digits without trailing zeros, for times and axis ticks.
pub(crate) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    let decimals = (3.0 - magnitude).clamp(0.0, 9.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "decimals lies in [0, 9]")]
    let text = format!("{value:.*}", decimals as usize);
    match if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() } {
        "-0" => "0".to_owned(),
        shown => shown.to_owned(),
    }
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
