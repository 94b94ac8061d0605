//! What only masks have, as tables of texts.

use fairtte_metrics::Groups;
use fairtte_metrics::evaluation::{EmptyMasks, Estimate};

use super::super::classes::{ClassRow, ClassTable, rows_of, texts};
use super::super::format::{interval, number, percent, value};
use super::super::verdict::percent_of;
use super::{MaskPage, SampleRow, is_distance};

/// Dice below which a mask counts as missed.
const MISSED: f64 = 0.5;

/// All tables of a page, in its order.
pub(super) fn all(page: &MaskPage<'_>) -> Vec<ClassTable> {
    let mut tables = vec![spread(page), empty(page)];
    tables.extend(equity(page));
    tables.push(lowest(page));
    tables
}

/// One class of one slice of the samples.
struct Spread<'a> {
    attribute: Option<String>,
    level: Option<String>,
    class: &'a str,
    /// Ascending.
    dice: Vec<f64>,
}

/// Dice over the samples of every group: a mean hides masks that were missed.
pub(super) fn spread(page: &MaskPage<'_>) -> ClassTable {
    let mut all: Vec<Spread<'_>> = Vec::new();
    for (attribute, level, rows) in slices(page.groups, page.report.n) {
        for (class, scores) in page.report.classes.iter().zip(page.scores) {
            let mut dice: Vec<f64> = rows.iter().map(|row| scores[*row].dice()).collect();
            dice.sort_unstable_by(f64::total_cmp);
            all.push(Spread { attribute: attribute.clone(), level: level.clone(), class: &class.name, dice });
        }
    }
    let row = |of: &Spread<'_>| {
        let n = of.dice.len();
        let at = |p: f64| if n == 0 { "none".to_owned() } else { number(quantile(&of.dice, p)) };
        let n_missed = of.dice.iter().filter(|dice| **dice < MISSED).count();
        let missed =
            if n == 0 { "none".to_owned() } else { format!("{n_missed} ({})", percent_of(n_missed as f64 / n as f64)) };
        let cells = vec![of.class.to_owned(), n.to_string(), at(0.0), at(0.1), at(0.25), at(0.5), at(0.75), missed];
        (cells, None)
    };
    let of = |of: &Spread<'_>| (of.attribute.clone(), of.level.clone());
    let header = ["group", "class", "n", "lowest", "10 %", "25 %", "median", "75 %", "below 0.5"];
    let caption = "Dice over samples".to_owned();
    ClassTable { name: "dice-by-sample", caption, header: texts(header), rows: rows_of(&all, of, row) }
}

/// The whole sample, then every level of every attribute.
fn slices(groups: &[Groups], n: usize) -> Vec<(Option<String>, Option<String>, Vec<usize>)> {
    let of_groups = groups.iter().flat_map(|groups| {
        groups.ids().map(move |group| {
            (Some(groups.attribute().to_owned()), Some(groups.levels()[group.index()].clone()), groups.rows(group))
        })
    });
    std::iter::once((None, None, (0..n).collect())).chain(of_groups).collect()
}

/// By linear interpolation, of ascending values.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the list")]
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Empty masks by group.
pub(super) fn empty(page: &MaskPage<'_>) -> ClassTable {
    // By group, then class.
    let mut all: Vec<&EmptyMasks> = page.report.empty.iter().collect();
    let place = |of: &EmptyMasks| {
        page.report.empty.iter().position(|other| (&other.attribute, &other.level) == (&of.attribute, &of.level))
    };
    all.sort_by_key(|of| place(of));
    let row = |of: &&EmptyMasks| {
        let share = |n: usize| {
            if of.n == 0 { n.to_string() } else { format!("{n} ({})", percent_of(n as f64 / of.n as f64)) }
        };
        let cells =
            vec![of.class.clone(), of.n.to_string(), share(of.n_predicted), share(of.n_truth), share(of.n_both)];
        (cells, None)
    };
    let of = |of: &&EmptyMasks| (of.attribute.clone(), of.level.clone());
    let header = ["group", "class", "n", "prediction empty", "truth empty", "both empty"];
    let caption = "Empty masks".to_owned();
    ClassTable { name: "empty-masks", caption, header: texts(header), rows: rows_of(&all, of, row) }
}

/// The two forms of equity scaling of `FairSeg`; `None` without attributes.
pub(super) fn equity(page: &MaskPage<'_>) -> Option<ClassTable> {
    let metrics = || page.report.metrics.iter().filter(|metric| !is_distance(&metric.name) && metric.higher_is_better);
    let mut rows = Vec::new();
    for (place, attribute) in metrics().next()?.attributes.iter().enumerate() {
        rows.push(ClassRow { kind: "attribute", name: attribute.attribute.clone(), cells: Vec::new(), remark: None });
        for metric in metrics() {
            let of = &metric.attributes[place];
            let ends = |of: &Estimate| interval(of).unwrap_or_else(|| "none".to_owned());
            let mut cells = vec![value(&metric.overall)];
            cells.extend([value(&of.equity_scaling_fair_seg), ends(&of.equity_scaling_fair_seg)]);
            let deviation = of.equity_scaling_deviation.as_ref();
            cells.push(deviation.map_or_else(|| "none".to_owned(), value));
            cells.push(deviation.map_or_else(|| "none".to_owned(), ends));
            let remark = of.equity_scaling_fair_seg.undefined.clone();
            rows.push(ClassRow { kind: "group", name: metric.label.clone(), cells, remark });
        }
    }
    let level = format!("{} interval", percent(page.report.settings.level));
    let header = ["metric", "overall", "ES, sum", &level, "ES, deviation", &level].map(str::to_owned).to_vec();
    let caption = "Equity-scaled overlap, as FairSeg defines it".to_owned();
    (!rows.is_empty()).then_some(ClassTable { name: "equity-scaling", caption, header, rows })
}

/// The samples to look at first.
pub(super) fn lowest(page: &MaskPage<'_>) -> ClassTable {
    let row = |of: &SampleRow| {
        let surface = of.score.surface;
        let shown = |value: Option<f64>| value.map_or_else(|| "undefined".to_owned(), number);
        let cells = vec![
            of.subject.clone(),
            of.class.clone(),
            number(of.score.dice()),
            shown(surface.map(|surface| surface.hd95)),
            of.score.n_truth.to_string(),
            of.score.n_predicted.to_string(),
        ];
        ClassRow { kind: "all", name: of.sample.clone(), cells, remark: None }
    };
    let hd95 = format!("HD95 ({})", page.report.unit);
    let header = ["sample", "subject", "class", "Dice", &hd95, "true pixels", "predicted pixels"];
    let header = header.map(str::to_owned).to_vec();
    let caption = "Samples with the lowest Dice".to_owned();
    ClassTable { name: "lowest-dice", caption, header, rows: page.lowest.iter().map(row).collect() }
}
