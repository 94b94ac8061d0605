//! The tests on the terminal: per metric the verdict, average ranks, Nemenyi's p values and signed-rank tests.

use super::super::format::{clean, column, count, elide, list, number, p_relation, p_value, short, wrap};
use super::sheets::{by_rank, null_name};
use super::{left_out, trials};
use crate::method_tests::{MethodTests, MetricTests, PairTest, Tested};

const MIN_WIDTH: usize = 72;
/// Longest name of a method, and of a pair of them.
const NAME: usize = 22;
const PAIR: usize = 29;
/// Columns of a p value.
const P: usize = 8;

pub(super) fn render(tests: &MethodTests, width: usize) -> String {
    let mut table = Text { width: width.max(MIN_WIDTH), text: String::new() };
    for metric in &tests.metrics {
        table.metric(metric, tests.level);
    }
    table.text.trim_end().to_owned()
}

struct Text {
    width: usize,
    text: String,
}

impl Text {
    fn metric(&mut self, metric: &MetricTests, level: f64) {
        self.wrapped("", &metric.question);
        metric.verdict.iter().for_each(|sentence| self.wrapped("  ", sentence));
        for out in left_out(metric) {
            self.wrapped("  ", &format!("not ranked: {out}"));
        }
        if !metric.settings.is_empty() {
            self.ranks(metric, level);
        }
        if let Some(tested) = &metric.ranks.tested {
            self.nemenyi(metric, tested, level);
        }
        self.pairs(metric);
        self.text.push('\n');
    }

    fn ranks(&mut self, metric: &MetricTests, level: f64) {
        self.text.push('\n');
        let width = name_width(metric);
        let of = match trials(metric) {
            none if none.is_empty() => String::new(),
            trials => format!(" ({trials})"),
        };
        self.line(&format!("  {:<width$}{:>14}{:>12}{of}", "method", "average rank", "mean"));
        let means = column(&metric.ranks.means);
        for method in by_rank(metric) {
            let (rank, mean) = (metric.ranks.average_ranks[method], &means[method]);
            let name = elide(&clean(&metric.methods[method]), NAME);
            self.line(&format!("  {name:<width$}{:>14}{:>12}", number(rank), mean));
        }
        let Some(tested) = &metric.ranks.tested else { return };
        let friedman = &tested.friedman;
        let f = tested.iman_davenport.as_ref().map_or_else(
            || "; F (Iman and Davenport) is infinite".to_owned(),
            |test| {
                let (one, other) = test.degrees;
                format!("; F({one}, {other}) = {}, p {} (Iman and Davenport)", number(test.f), p_relation(test.p_value))
            },
        );
        let chi_square = number(friedman.chi_square);
        let friedman =
            format!("chi-square({}) = {chi_square}, p {} (Friedman)", friedman.degrees, p_relation(friedman.p_value));
        self.wrapped("  ", &format!("{friedman}{f}"));
        let name = |method: &usize| metric.methods[*method].clone();
        let bars = tested.cliques.iter().filter(|clique| clique.len() > 1);
        let bars: Vec<String> = bars.map(|clique| list(&clique.iter().map(name).collect::<Vec<_>>())).collect();
        let bars = if bars.is_empty() { "no two methods".to_owned() } else { bars.join("; ") };
        let difference = number(tested.critical_difference);
        self.wrapped("  ", &format!("critical difference at {}: {difference}; within it: {bars}", short(level)));
    }

    /// The matrix, with numbers in place of names where these are too long for it, or only the smallest p values.
    fn nemenyi(&mut self, metric: &MetricTests, tested: &Tested, level: f64) {
        let (k, name_width) = (metric.methods.len(), name_width(metric));
        self.text.push('\n');
        let longest = metric.methods.iter().map(|method| method.chars().count()).max().unwrap_or(0);
        let room = self.width - 2 - name_width;
        let numbered = longest.max(P - 1) * k + k > room;
        let column = if numbered { P } else { longest.max(P - 1) + 1 };
        if column * k > room.saturating_sub(4) && numbered {
            self.smallest(metric, tested, level);
            return;
        }
        let label = |place: usize| if numbered { format!("[{}]", place + 1) } else { clean(&metric.methods[place]) };
        let header = (0..k).map(|place| format!("{:>column$}", label(place))).collect::<Vec<_>>().concat();
        let mark = if numbered { 4 } else { 0 };
        self.line(&format!("  {:<width$}{header}", "p (Nemenyi)", width = name_width + mark));
        for (row, p_values) in tested.nemenyi_p.iter().enumerate() {
            let cell = |(place, p): (usize, &f64)| {
                let text = if place == row { "-".to_owned() } else { p_value(*p) };
                format!("{text:>column$}")
            };
            let cells = p_values.iter().enumerate().map(cell).collect::<Vec<_>>().concat();
            let name = elide(&clean(&metric.methods[row]), NAME);
            let mark = if numbered { format!("{:<4}", label(row)) } else { String::new() };
            self.line(&format!("  {mark}{name:<name_width$}{cells}"));
        }
    }

    fn smallest(&mut self, metric: &MetricTests, tested: &Tested, level: f64) {
        let k = metric.methods.len();
        let below = (0..k).flat_map(|i| (0..i).map(move |j| (j, i))).filter(|(i, j)| tested.nemenyi_p[*i][*j] < level);
        let named = below.map(|(i, j)| {
            let p = p_relation(tested.nemenyi_p[i][j]);
            format!("{} and {} (p {p})", metric.methods[i], metric.methods[j])
        });
        let named: Vec<String> = named.collect();
        let named = if named.is_empty() { "none".to_owned() } else { list(&named) };
        self.wrapped("  ", &format!("p (Nemenyi) below {}: {named}", short(level)));
    }

    fn pairs(&mut self, metric: &MetricTests) {
        self.text.push('\n');
        let to_base = metric.pairs.len() < metric.methods.len();
        let half = (PAIR - " minus ".len()) / 2;
        let name = |pair: &PairTest| {
            let [first, second] = [&pair.first, &pair.second].map(|method| clean(method));
            if to_base {
                return elide(&first, PAIR);
            }
            let whole = format!("{first} minus {second}");
            let fits = whole.chars().count() <= PAIR;
            if fits { whole } else { format!("{} minus {}", elide(&first, half), elide(&second, half)) }
        };
        let title =
            if to_base { elide(&format!("minus {}", clean(&metric.base)), PAIR) } else { "signed-rank".to_owned() };
        let names: Vec<String> = metric.pairs.iter().map(name).collect();
        let width = names.iter().chain([&title]).map(|name| name.chars().count()).max().unwrap_or(0);
        let header = format!("{:>6}{:>7}{:>6}{:>5}{:>9}", "pairs", "better", "worse", "zero", "median");
        self.line(&format!("  {title:<width$}{header}{:>P$}{:>P$}", "p", "Holm"));
        for (pair, name) in metric.pairs.iter().zip(&names) {
            self.pair(pair, name, width);
        }
        let n_unpaired: usize = metric.pairs.iter().map(|pair| pair.n_unpaired).sum();
        if n_unpaired > 0 {
            let of = count(n_unpaired, "value");
            self.wrapped("  ", &format!("{of} without a partner in the other method of a pair, not used there"));
        }
        let normal = |pair: &&PairTest| pair.test.is_some_and(|test| null_name(test.null) == "normal");
        if metric.pairs.iter().any(|pair| normal(&pair)) {
            self.wrapped("  ", "p from the normal approximation where more than 1,000 differences are not zero");
        }
    }

    fn pair(&mut self, pair: &PairTest, name: &str, width: usize) {
        let counts = format!("{:>6}{:>7}{:>6}{:>5}", pair.n_pairs, pair.n_better, pair.n_worse, pair.n_zero);
        let numbers = match (pair.median_difference, pair.test, pair.p_holm) {
            (Some(median), Some(test), Some(p_holm)) => {
                format!("{:>9}{:>P$}{:>P$}", short(median), p_value(test.p_value), p_value(p_holm))
            }
            _ => "  no pair of values".to_owned(),
        };
        self.line(&format!("  {name:<width$}{counts}{numbers}"));
    }

    fn wrapped(&mut self, indent: &str, text: &str) {
        for line in wrap(&clean(text), self.width - indent.len()) {
            self.line(&format!("{indent}{line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn name_width(metric: &MetricTests) -> usize {
    metric.methods.iter().map(|method| method.chars().count()).max().unwrap_or(0).clamp(11, NAME)
}
