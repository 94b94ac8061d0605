//! What the templates of all pages share: filters, the beginning with its style sheet, and parts that several pages have.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, State, UndefinedBehavior};
use serde::Serialize;

use super::ReportError;
use super::format::escape;

const STYLE: &str = include_str!("style.css");
/// Templates that are filled in by filters.
const PARTS: [(&str, &str); 18] = [
    ("head.html", include_str!("head.html")),
    ("origin.html", include_str!("origin.html")),
    ("warnings.html", include_str!("warnings.html")),
    ("statements.html", include_str!("statements.html")),
    ("forests.html", include_str!("forests.html")),
    ("panels.html", include_str!("panels.html")),
    ("sides.html", include_str!("sides.html")),
    ("who.html", include_str!("who.html")),
    ("decisions.html", include_str!("decisions.html")),
    ("differences.html", include_str!("differences.html")),
    ("bias-figures.html", include_str!("bias/figures.html")),
    ("bias-numbers.html", include_str!("bias/numbers.html")),
    ("method-tests.html", include_str!("method_tests/section.html")),
    ("sheet.html", include_str!("sheet.html")),
    ("class-table.html", include_str!("class-table.html")),
    ("tiles.html", include_str!("tiles.html")),
    ("numbers.html", include_str!("numbers.html")),
    ("download.html", include_str!("download.html")),
];

/// Filters and templates; `template` is that of the whole page.
pub(super) fn environment(template: &str) -> Result<Environment<'_>, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // A misspelt name in the template is an error instead of an empty string.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("metric", metric_name);
    environment.add_filter("columns", columns);
    environment.add_filter("by_sentence", by_sentence);
    environment.add_filter("head", head);
    environment.add_filter("origin", origin);
    environment.add_filter("warnings", warnings);
    environment.add_filter("statements", statements);
    environment.add_filter("forests", forests);
    environment.add_filter("panels", panels);
    environment.add_filter("sides", sides);
    environment.add_filter("who", who);
    environment.add_filter("decisions", decisions);
    environment.add_filter("differences", differences);
    environment.add_filter("bias_figures", |state: &State<'_, '_>, section| part(state, "bias-figures.html", section));
    environment.add_filter("bias_numbers", |state: &State<'_, '_>, section| part(state, "bias-numbers.html", section));
    environment.add_filter("sheet", |state: &State<'_, '_>, sheet| part(state, "sheet.html", sheet));
    environment.add_filter("class_table", |state: &State<'_, '_>, table| part(state, "class-table.html", table));
    environment.add_filter("tiles", |state: &State<'_, '_>, tiles| part(state, "tiles.html", tiles));
    environment.add_filter("numbers", |state: &State<'_, '_>, numbers| part(state, "numbers.html", numbers));
    environment.add_filter("download", |state: &State<'_, '_>, csv| part(state, "download.html", csv));
    environment.add_filter("method_tests", |state: &State<'_, '_>, metric| part(state, "method-tests.html", metric));
    environment.add_template("page.html", template)?;
    for (name, part) in PARTS {
        environment.add_template(name, part)?;
    }
    Ok(environment)
}

/// The page with its names replaced by the fields of `context`.
pub(super) fn fill_in(environment: &Environment<'_>, context: &impl Serialize) -> Result<String, ReportError> {
    Ok(environment.get_template("page.html")?.render(Serde(context))?)
}

/// The beginning of a page, up to the end of the style sheet that all pages share: rules of its own may follow.
fn head(state: &State<'_, '_>, title: Value) -> Result<Value, minijinja::Error> {
    part(state, "head.html", minijinja::context! { title, style => STYLE })
}

/// Where the numbers come from; open if there are at most `most_open` facts.
fn origin(state: &State<'_, '_>, facts: Value, most_open: usize) -> Result<Value, minijinja::Error> {
    part(state, "origin.html", minijinja::context! { facts, most_open })
}

/// What must be read before the numbers.
fn warnings(state: &State<'_, '_>, warnings: Value) -> Result<Value, minijinja::Error> {
    part(state, "warnings.html", minijinja::context! { warnings })
}

/// What the numbers say, by topic, with the notes after it.
fn statements(state: &State<'_, '_>, statements: Value, notes: Value) -> Result<Value, minijinja::Error> {
    part(state, "statements.html", minijinja::context! { statements, notes })
}

/// The forest of every metric that has one, with its gaps.
fn forests(state: &State<'_, '_>, metrics: Value) -> Result<Value, minijinja::Error> {
    part(state, "forests.html", minijinja::context! { metrics })
}

/// The figures of every attribute with the caption above them, or beside an odd number of large ones.
fn panels(state: &State<'_, '_>, figures: Value, caption: Value) -> Result<Value, minijinja::Error> {
    part(state, "panels.html", minijinja::context! { figures, caption })
}

/// The figures of cohorts or models beside each other.
fn sides(state: &State<'_, '_>, figures: Value) -> Result<Value, minijinja::Error> {
    part(state, "sides.html", minijinja::context! { figures })
}

/// Who was evaluated, with the predictions of one model or of several.
fn who(state: &State<'_, '_>, table: Value) -> Result<Value, minijinja::Error> {
    part(state, "who.html", minijinja::context! { table })
}

/// Decisions at thresholds, of one model or of several.
fn decisions(state: &State<'_, '_>, section: Value) -> Result<Value, minijinja::Error> {
    part(state, "decisions.html", minijinja::context! { section })
}

/// The table of the differences of two models.
fn differences(state: &State<'_, '_>, pair: Value, level: Value) -> Result<Value, minijinja::Error> {
    part(state, "differences.html", minijinja::context! { pair, level })
}

fn part(state: &State<'_, '_>, name: &str, context: Value) -> Result<Value, minijinja::Error> {
    Ok(Value::from_safe_string(state.env().get_template(name)?.render(context)?))
}

/// How many of `n` panels stand in a row of a wide page: 3 to 5, so that the last row is as full as possible; 4 if equal.
fn columns(n: usize) -> usize {
    let empty = |columns: usize| n.next_multiple_of(columns) - n;
    [4, 5, 3].into_iter().min_by_key(|columns| empty(*columns)).unwrap_or(4)
}

/// A caption of a template, which is HTML, with every sentence on a line of its own.
fn by_sentence(caption: &str) -> Value {
    Value::from_safe_string(caption.replace(". ", ".<br>"))
}

/// Escapes a text, raises the `td` of `C^td` and `AUC^td`, keeps percent signs with their numbers, and drops backticks.
fn metric_name(text: &str) -> Value {
    let text = escape(text).replace("C^td", "C<sup>td</sup>").replace(" % ", "\u{a0}% ");
    Value::from_safe_string(text.replace('`', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_panels_is_as_full_as_possible() {
        assert_eq!([3, 4, 5, 6, 7, 8, 9, 10, 11].map(columns), [3, 4, 5, 3, 4, 4, 3, 5, 4]);
    }
}
