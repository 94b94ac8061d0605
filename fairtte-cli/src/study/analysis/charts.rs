//! The figures of a study, each a function of the same scores as the tables.

use fairtte_metrics::Direction;

use super::{Measures, N_MEASURES};
use crate::plural::counted;
use crate::report::{Chart, Dot, Panels, PlanePanel, RowPanel};

/// `C^td (higher is better)`.
pub(super) fn metric_axis(measures: Measures, metric: usize) -> String {
    let better = if measures.direction(metric) == Direction::LowerIsBetter { "lower" } else { "higher" };
    format!("{} ({better} is better)", measures.labels()[metric])
}

/// `3 trials`, or `2 to 3 trials`.
pub(super) fn range(n: &[usize], noun: &str) -> String {
    let (low, high) = (n.iter().min().copied().unwrap_or(0), n.iter().max().copied().unwrap_or(0));
    if low == high { counted(high, noun) } else { format!("{low} to {}", counted(high, noun)) }
}

/// Letters, digits and dashes of a name, for the stem of a file.
pub(super) fn stem(words: &[&str]) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let text: String = words.join("-").chars().map(plain).collect();
    text.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// The place of `name` among the series, which gets it if it has not.
pub(super) fn series(all: &mut Vec<String>, name: &str) -> usize {
    all.iter().position(|known| known == name).unwrap_or_else(|| {
        all.push(name.to_owned());
        all.len() - 1
    })
}

/// Rows of a panel per metric: the figures of the three metrics grow together.
pub(super) struct RowCharts {
    measures: Measures,
    series: Vec<String>,
    panels: [Vec<RowPanel>; N_MEASURES],
}

impl RowCharts {
    /// Figures of these metrics, without a panel.
    pub(super) fn of(measures: Measures) -> Self {
        Self { measures, series: Vec::new(), panels: Default::default() }
    }

    /// Begins a panel in all figures.
    pub(super) fn panel(&mut self, title: &str) {
        for panels in &mut self.panels {
            panels.push(RowPanel { title: title.to_owned(), rows: Vec::new() });
        }
    }

    /// Adds a row to the last panel of every figure.
    pub(super) fn row(&mut self, name: &str) {
        for panel in self.panels.iter_mut().filter_map(|panels| panels.last_mut()) {
            panel.rows.push((name.to_owned(), Vec::new()));
        }
    }

    /// Adds a value of a metric to the last row.
    pub(super) fn dot(&mut self, metric: usize, name: &str, value: Option<f64>, interval: Option<(f64, f64)>) {
        let series = series(&mut self.series, name);
        let row = self.panels[metric].last_mut().and_then(|panel| panel.rows.last_mut());
        if let (Some((_, dots)), Some(value)) = (row, value) {
            dots.push(Dot { series, value, interval });
        }
    }

    /// The figures that have a value: `prefix-<metric>`.
    pub(super) fn charts(
        self,
        prefix: &str,
        zero: bool,
        texts: impl Fn(usize) -> (String, String, String),
    ) -> Vec<Chart> {
        let Self { measures, series, panels } = self;
        let chart = |(metric, panels): (usize, Vec<RowPanel>)| {
            let (title, axis, caption) = texts(metric);
            Chart {
                name: stem(&[prefix, measures.names()[metric]]),
                title,
                caption,
                series: series.clone(),
                panels: Panels::Rows { axis, zero, panels },
            }
        };
        panels.into_iter().enumerate().map(chart).filter(|chart| chart.n_marks() > 0).collect()
    }
}

/// A figure of panels between two axes.
pub(super) fn plane(
    name: String,
    title: String,
    caption: String,
    series: &[String],
    (diagonal, lines): (bool, bool),
    panels: Vec<PlanePanel>,
) -> Option<Chart> {
    let chart =
        Chart { name, title, caption, series: series.to_vec(), panels: Panels::Plane { diagonal, lines, panels } };
    (chart.n_marks() > 0).then_some(chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_are_file_names() {
        assert_eq!(stem(&["shift", "Our films/2", "Age group"]), "shift-our-films-2-age-group");
        assert_eq!(stem(&["groups", "c-td"]), "groups-c-td");
        assert_eq!(stem(&["..", "x"]), "x");
    }

    #[test]
    fn a_row_has_its_own_values_and_a_figure_without_any_is_left_out() {
        let mut rows = RowCharts::of(Measures::Curves);
        rows.panel("films sex");
        rows.row("pmf");
        rows.dot(0, "F", Some(0.6), None);
        rows.dot(0, "M", Some(0.7), Some((0.6, 0.8)));
        rows.row("deephit");
        rows.dot(0, "M", Some(0.5), None);
        rows.dot(2, "F", None, None);
        let charts = rows
            .charts("groups", false, |metric| (String::new(), metric_axis(Measures::Curves, metric), String::new()));
        assert_eq!(charts.len(), 1, "AUC and IBS have no value");
        assert_eq!((charts[0].name.as_str(), charts[0].series.join(" ").as_str()), ("groups-c-td", "F M"));
        let Panels::Rows { panels, axis, .. } = &charts[0].panels else { panic!("rows") };
        assert_eq!(axis, "C^td (higher is better)");
        assert_eq!(panels[0].rows[1], ("deephit".to_owned(), vec![Dot { series: 1, value: 0.5, interval: None }]));
    }
}
