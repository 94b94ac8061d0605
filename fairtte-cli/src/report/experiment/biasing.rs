//! The biasing experiment: means by share, trends, rank correlations by table, box plots.

use fairtte_classical::biasing::{Analysis, Biasing, CellResult, MeasureSummary, TableCorrelation, Trend};

use super::super::ReportError;
use super::super::format::{count, list, p_relation, short};
use super::super::plots::{BoxPanel, Chart, Dot, Panels, RowPanel, box_figure};
use super::super::sheet::{Cell, Sheet};
use super::{DrawnFigure, ExperimentPage, ExperimentSection};

/// p values at or above which nothing is claimed.
const LEVEL: f64 = 0.05;

/// The page of an analysis.
///
/// # Errors
/// [`ReportError`] if a figure cannot be drawn.
pub(crate) fn page(analysis: &Analysis, facts: Vec<(String, String)>) -> Result<ExperimentPage, ReportError> {
    let of_method = |method: Biasing| -> Vec<&MeasureSummary> {
        analysis.measures.iter().filter(|of| of.method == method).collect()
    };
    let methods = Biasing::ALL.into_iter().map(of_method).zip(Biasing::ALL);
    let sections = methods.filter(|(of, _)| !of.is_empty()).map(|(of, method)| section(method, &of));
    Ok(ExperimentPage {
        title: "Would this metric have noticed?".to_owned(),
        subtitle: "One half of every table is biased; F says how far apart a measure sees the two halves".to_owned(),
        sections: sections.collect::<Result<_, _>>()?,
        reading: reading(),
        sources: vec![
            "Sonabend, Pfisterer, Mishler, Schauer, Burk, Mukherjee and Vollmer (2022). Flexible group fairness metrics for survival \
             analysis. arXiv:2206.03256.",
            "Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.",
        ],
        facts,
    })
}

fn reading() -> Vec<(&'static str, String)> {
    let term = |name, text: &str| (name, text.to_owned());
    vec![
        term(
            "F",
            "The absolute difference of a measure between a half whose samples were biased with probability sigma and an untouched half, each the mean over the folds of a cross-validation. Above 0 also without bias: two halves differ by chance.",
        ),
        term("Slope of the means", "The line through the means over tables. It does not see how much tables differ."),
        term(
            "Slope over tables",
            "The line through all tables at all shares, whose p value decides whether a measure notices. Values of a table at several shares are not independent.",
        ),
        term(
            "p (Holm)",
            "Adjusted for the measures of a method; for rank correlations of single tables, for the tables.",
        ),
        term(
            "ERV",
            "Explained residual variation: 1 - loss of the model / loss of the Kaplan-Meier curve, both fitted to the training folds.",
        ),
    ]
}

/// Whether F rises significantly over all tables.
fn notices(of: &MeasureSummary) -> bool {
    of.of_tables.is_some_and(|trend| trend.line.slope > 0.0 && trend.slope_p_holm <= LEVEL)
}

fn section(method: Biasing, of: &[&MeasureSummary]) -> Result<ExperimentSection, ReportError> {
    let (rising, flat): (Vec<&MeasureSummary>, Vec<_>) = of.iter().partition(|of| notices(of));
    let names = |of: &[&MeasureSummary]| list(&of.iter().map(|of| of.measure.label().to_owned()).collect::<Vec<_>>());
    let mut verdict = Vec::new();
    if !rising.is_empty() {
        verdict.push(format!("{}: noticed by {}.", method.name(), names(&rising)));
    }
    if !flat.is_empty() {
        verdict.push(format!("{}: not shown to be noticed by {}.", method.name(), names(&flat)));
    }
    let n_undefined: usize = of.iter().flat_map(|of| &of.shares).map(|of| of.n_undefined).sum();
    if n_undefined > 0 {
        verdict.push(format!(
            "{} could not be computed in a fold and {} left out of the means; biasing.csv has the reasons.",
            count(n_undefined, "value"),
            if n_undefined == 1 { "is" } else { "are" }
        ));
    }
    let id = method.name();
    let panels = of.iter().map(|of| BoxPanel {
        title: of.measure.label().to_owned(),
        boxes: of.shares.iter().map(|at| (at.share, at.values.iter().map(|(_, value)| *value).collect())).collect(),
        line: of.of_tables.map(|trend| (trend.line.intercept, trend.line.slope)),
    });
    let panels: Vec<BoxPanel> = panels.collect();
    let boxes = box_figure(&format!("f-{id}"), &format!("F by share, {id}"), ("sigma", "F"), &panels)?;
    let caption = "F of every table (mean over repeats) by the share of biased samples; the line is the regression over all tables.";
    let drawn = boxes.map(|svg| DrawnFigure { svg, caption: caption.to_owned() });
    Ok(ExperimentSection {
        id: id.to_owned(),
        title: format!("Bias by {}", id.replace('-', " ")),
        question: question(method).to_owned(),
        verdict,
        drawn: drawn.into_iter().collect(),
        charts: vec![correlations(method, of)],
        sheets: vec![means(method, of), trends(method, of), tables(method, of)],
    })
}

fn question(method: Biasing) -> &'static str {
    match method {
        Biasing::Permutation => "Do measures notice that the covariates of some people are those of others?",
        Biasing::ColumnPermutation => "Do measures notice that every covariate of some people is another person's?",
        Biasing::Undersampling => "Do measures notice that some people are missing?",
    }
}

fn means(method: Biasing, of: &[&MeasureSummary]) -> Sheet {
    let shares: Vec<f64> = of.first().map(|of| of.shares.iter().map(|at| at.share).collect()).unwrap_or_default();
    let keys: Vec<(String, String)> =
        shares.iter().map(|share| (format!("share_{share}"), format!("σ = {}", short(*share)))).collect();
    let columns: Vec<(&str, &str)> = std::iter::once(("measure", "measure"))
        .chain(keys.iter().map(|(key, title)| (key.as_str(), title.as_str())))
        .collect();
    let row = |of: &&MeasureSummary| {
        let mean = |share: &f64| of.shares.iter().find(|at| at.share.total_cmp(share).is_eq()).and_then(|at| at.mean);
        let cells = shares.iter().map(|share| Cell::or_missing(mean(share), Cell::Statistic));
        std::iter::once(Cell::Text(of.measure.label().to_owned())).chain(cells).collect()
    };
    let caption = format!("Mean F over tables by the share σ of biased samples, {}", method.name());
    Sheet::new(format!("means-{}", method.name()), caption, &columns, of.iter().map(row).collect())
}

fn trends(method: Biasing, of: &[&MeasureSummary]) -> Sheet {
    let columns = [
        ("measure", "measure"),
        ("intercept", "intercept of the means"),
        ("slope_means", "slope of the means"),
        ("p_means", "p (Holm)"),
        ("slope_tables", "slope over tables"),
        ("p_tables", "p (Holm)"),
        ("rho", "ρ of the means"),
        ("p_rho", "p (Holm)"),
    ];
    let row = |of: &&MeasureSummary| {
        let value = |trend: Option<Trend>, of: fn(&Trend) -> Option<f64>, cell: fn(f64) -> Cell| {
            Cell::or_missing(trend.as_ref().and_then(of), cell)
        };
        vec![
            Cell::Text(of.measure.label().to_owned()),
            value(of.of_means, |trend| Some(trend.line.intercept), Cell::Statistic),
            value(of.of_means, |trend| Some(trend.line.slope), Cell::Statistic),
            value(of.of_means, |trend| Some(trend.slope_p_holm), Cell::P),
            value(of.of_tables, |trend| Some(trend.line.slope), Cell::Statistic),
            value(of.of_tables, |trend| Some(trend.slope_p_holm), Cell::P),
            value(of.of_means, |trend| trend.rho, Cell::Statistic),
            value(of.of_means, |trend| trend.rho_p_holm, Cell::P),
        ]
    };
    let caption = format!("F = intercept + slope σ, and Spearman's ρ of F and σ, {}", method.name());
    Sheet::new(format!("trends-{}", method.name()), caption, &columns, of.iter().map(row).collect())
}

fn tables(method: Biasing, of: &[&MeasureSummary]) -> Sheet {
    let columns = [("table", "table"), ("measure", "measure"), ("rho", "ρ of F and σ"), ("p", "p (Holm)")];
    let row = |of: &MeasureSummary, at: &TableCorrelation| {
        vec![
            Cell::Text(at.table.clone()),
            Cell::Text(of.measure.label().to_owned()),
            Cell::or_missing(at.rho, Cell::Statistic),
            Cell::or_missing(at.p_holm, Cell::P),
        ]
    };
    let rows = of.iter().flat_map(|of| of.tables.iter().map(move |at| row(of, at)));
    let caption = format!("Rank correlation of F and σ within every table, {}", method.name());
    Sheet::new(format!("tables-{}", method.name()), caption, &columns, rows.collect())
}

fn correlations(method: Biasing, of: &[&MeasureSummary]) -> Chart {
    let row = |at: &TableCorrelation| {
        let is_clear = at.p_holm.is_some_and(|p| p <= LEVEL);
        let dot = at.rho.map(|value| Dot { series: usize::from(!is_clear), value, interval: None });
        (at.table.clone(), dot.into_iter().collect())
    };
    let panels = of.iter().map(|of| {
        let said = of.of_means.and_then(|trend| trend.rho_p_holm).map(|p| format!(" (means: p {})", p_relation(p)));
        RowPanel {
            title: format!("{}{}", of.measure.label(), said.unwrap_or_default()),
            rows: of.tables.iter().map(row).collect(),
        }
    });
    Chart {
        name: format!("rho-{}", method.name()),
        title: format!("Rank correlation of F and sigma in every table, {}", method.name()),
        caption: "Spearman's ρ of F and σ in every table; 1: F grows with every step of the share.".to_owned(),
        series: vec![format!("p (Holm) at most {LEVEL}"), "above".to_owned()],
        panels: Panels::Rows { axis: "ρ".to_owned(), zero: true, panels: panels.collect() },
    }
}

/// Every loss of every cell.
pub(crate) fn rows(results: &[CellResult]) -> Sheet {
    let columns = [
        "table",
        "method",
        "share",
        "repeat",
        "n_half",
        "n_drawn",
        "measure",
        "biased",
        "unbiased",
        "difference",
        "reason",
    ];
    let columns: Vec<(&str, &str)> = columns.iter().map(|name| (*name, *name)).collect();
    let rows = results.iter().flat_map(|result| {
        result.losses.iter().map(move |losses| {
            vec![
                Cell::Text(result.table.clone()),
                Cell::Text(result.cell.method.name().to_owned()),
                Cell::Value(result.cell.share),
                Cell::Count(result.cell.repeat),
                Cell::Count(result.n_half),
                Cell::Count(result.n_drawn),
                Cell::Text(losses.measure.name().to_owned()),
                Cell::or_missing(losses.biased, Cell::Value),
                Cell::or_missing(losses.unbiased, Cell::Value),
                Cell::or_missing(losses.difference(), Cell::Value),
                losses.reason.clone().map_or(Cell::Missing, Cell::Text),
            ]
        })
    });
    Sheet::new("biasing".to_owned(), "All cells".to_owned(), &columns, rows.collect())
}
