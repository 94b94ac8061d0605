//! The tables of a study, each a function of the scores of its finished trials.

mod bound;
mod causes;
mod charts;
mod cohorts;
mod equity;
mod folds;
mod groups;
mod halving;
mod horizon;
mod intervals;
mod pairs;
mod shifts;
mod strategies;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub(crate) use self::bound::{Bound, Members};
pub(crate) use self::causes::Causes;
pub(crate) use self::cohorts::Read as ReadCohort;
pub(crate) use self::intervals::{Model, Samples};
use self::pairs::{Family, PairRow};
use self::strategies::Ranked;
use super::cells::{Block, Cell};
use super::measures::{Measures, N_MEASURES};
use super::plan::Plan;
use super::points::{Level, Points, Setting, TrialPoints, Values};
use crate::CliError;
use crate::args::Rule;
use crate::method_tests::MethodTests;
use crate::report::Chart;
use crate::report::sheet::{Cell as SheetCell, Sheet};

/// Events below which a group is too small to compare models in it.
pub(crate) const FEW_EVENTS: usize = 10;

/// A question of the study with its tables.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Section {
    /// Name on the page.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// What is asked, as a sentence.
    pub(crate) question: String,
    /// What was found, or why nothing can be said.
    pub(crate) verdict: Vec<String>,
    #[serde(skip)]
    pub(crate) sheets: Vec<Sheet>,
    /// Figures, in the order of the page; their names in `study.json`.
    #[serde(rename = "figures", skip_serializing_if = "Vec::is_empty")]
    pub(crate) charts: Vec<Chart>,
}

/// Everything that a report of a study shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Analysis {
    pub(crate) sections: Vec<Section>,
    /// Rank tests of the gaps of the chosen models, the base by its own rule, as in the paper.
    pub(crate) gaps: Option<MethodTests>,
    /// The same with the base chosen by the rule of the others.
    pub(crate) gaps_against_control: Option<MethodTests>,
    /// Rank tests of the metrics and of their worst groups, where the base is chosen as all others are.
    pub(crate) metrics: Option<MethodTests>,
}

/// The finished trials with what they are of.
pub(crate) struct Study<'a> {
    plan: &'a Plan,
    points: &'a Points,
    /// Replicates of chosen models; empty if none were requested.
    samples: Samples,
    /// Sources of bias and terms of Theorem 1; empty if the study file does not ask for them.
    causes: Causes,
}

impl<'a> Study<'a> {
    pub(crate) fn new(plan: &'a Plan, points: &'a Points) -> Self {
        Self { plan, points, samples: Samples::new(), causes: Causes::default() }
    }

    /// With replicates of the chosen models.
    pub(crate) fn with(self, samples: Samples) -> Self {
        Self { samples, ..self }
    }

    /// With the causes of gaps.
    pub(crate) fn with_causes(self, causes: Causes) -> Self {
        Self { causes, ..self }
    }

    /// All tables that the finished trials allow; `cohorts` are the data sets, in the order of the study.
    ///
    /// # Errors
    /// [`CliError`] if a statistic cannot be computed, which no scores should cause.
    pub(crate) fn analyse(&self, cohorts: &[ReadCohort]) -> Result<Analysis, CliError> {
        let chosen = strategies::choose(self)?;
        let gaps = strategies::rank_tests(self, &chosen, Ranked::Gaps)?;
        let (mut gaps_against_control, mut metrics) = (None, None);
        if self.plan.study().rule == Rule::Fairest {
            gaps_against_control = strategies::rank_tests(self, &chosen, Ranked::GapsAgainstControl)?;
        } else {
            metrics = strategies::rank_tests(self, &chosen, Ranked::Metrics)?;
        }
        let mut sections = vec![cohorts::section(self, cohorts), self.sizes()];
        sections.extend(strategies::section(self, &chosen));
        sections.extend(horizon::section(self, &chosen));
        sections.extend(intervals::section(self, &chosen));
        sections.extend(folds::section(self, &chosen));
        sections.extend(halving::section(self)?);
        sections.push(groups::section(self)?);
        sections.extend(causes::section(self, &chosen)?);
        sections.extend(bound::section(self));
        sections.extend(groups::starts(self)?);
        sections.extend(groups::backbones(self)?);
        sections.extend(shifts::section(self)?);
        for sheet in sections.iter_mut().flat_map(|section| &mut section.sheets) {
            let is_starred = |row: &Vec<SheetCell>| matches!(&row[0], SheetCell::Text(name) if name.ends_with('*'));
            if sheet.rows.iter().any(is_starred) {
                sheet
                    .notes
                    .push(format!("* A group has fewer than {FEW_EVENTS} events in the validation or the test part."));
            }
        }
        distinct(sections.iter_mut().flat_map(|section| &mut section.charts));
        Ok(Analysis { sections, gaps, gaps_against_control, metrics })
    }

    /// All models that a rule chooses: those of the strategies, and the best ones of every cell by every metric.
    ///
    /// # Errors
    /// [`CliError`] if a value is not finite.
    pub(crate) fn chosen(&self) -> Result<BTreeSet<Model>, CliError> {
        let mut models: BTreeSet<Model> =
            strategies::choose(self)?.iter().flat_map(strategies::ChosenOf::models).map(Model::from).collect();
        let mut by_cell: BTreeMap<usize, Vec<&TrialPoints>> = BTreeMap::new();
        for trial in &self.points.trials {
            by_cell.entry(trial.cell).or_default().push(trial);
        }
        for trials in by_cell.values() {
            for metric in 0..N_MEASURES {
                models.extend(super::choice::best(trials, metric)?.as_ref().map(Model::from));
            }
        }
        Ok(models)
    }

    /// What the models predict, and the metrics by which they are compared.
    fn measures(&self) -> Measures {
        self.points.measures
    }

    /// Titles of the metrics.
    fn labels(&self) -> [&'static str; N_MEASURES] {
        self.measures().labels()
    }

    /// The names and titles of a column per metric: `c-td`, `C^td`; with `prefix` `gap-c-td`, `gap C^td`.
    fn metric_columns(&self, prefix: &str) -> Vec<(String, String)> {
        let dash = if prefix.is_empty() { "" } else { "-" };
        let space = if prefix.is_empty() { "" } else { " " };
        let column =
            |(metric, label): (&str, &str)| (format!("{prefix}{dash}{metric}"), format!("{prefix}{space}{label}"));
        self.measures().names().into_iter().zip(self.labels()).map(column).collect()
    }

    /// All settings that have a finished trial.
    fn settings(&self) -> Vec<&'a Setting> {
        self.points.levels.keys().collect()
    }

    /// `films sex`, with a star if a group has few events.
    fn name(&self, setting: &Setting) -> String {
        let is_few = |level: &Level| level.events_validation.min(level.events_test) < FEW_EVENTS;
        let star =
            if self.points.levels.get(setting).is_some_and(|levels| levels.iter().any(is_few)) { "*" } else { "" };
        format!("{} {}{star}", self.plan.study().data[setting.data].name, setting.attribute)
    }

    /// The finished trials of the cells of a setting that `is_in`, in the order of the manifest.
    fn trials(&self, setting: &Setting, is_in: impl Fn(&Cell) -> bool) -> Vec<&'a TrialPoints> {
        let is_of = |cell: &Cell| cell.data == setting.data && cell.attribute == setting.attribute && is_in(cell);
        self.points.trials.iter().filter(|trial| is_of(&self.plan.cells()[trial.cell])).collect()
    }

    /// Whether a cell has the head and the start of the base, without shift and with the backbone of the run file.
    fn is_plain(&self, cell: &Cell) -> bool {
        let study = self.plan.study();
        cell.head == study.base_head()
            && cell.start == study.base_start()
            && cell.shift.is_none()
            && cell.backbone.is_none()
            && matches!(cell.block, Block::Base | Block::Fair)
    }

    /// The sizes of all groups, and which of them carry few events.
    fn sizes(&self) -> Section {
        let columns = [
            ("setting", "setting"),
            ("group", "group"),
            ("n-validation", "n valid."),
            ("events-validation", "events valid."),
            ("n-test", "n test"),
            ("events-test", "events test"),
        ];
        let mut rows = Vec::new();
        let mut few = Vec::new();
        for (setting, levels) in &self.points.levels {
            for level in levels {
                let name = self.name(setting);
                if level.events_validation.min(level.events_test) < FEW_EVENTS {
                    few.push(format!("{} in {name}", level.name));
                }
                rows.push(vec![
                    SheetCell::Text(name),
                    SheetCell::Text(level.name.clone()),
                    SheetCell::Count(level.n_validation),
                    SheetCell::Count(level.events_validation),
                    SheetCell::Count(level.n_test),
                    SheetCell::Count(level.events_test),
                ]);
            }
        }
        let verdict = if few.is_empty() {
            vec![format!("Every group has {FEW_EVENTS} events or more in the validation and in the test part.")]
        } else {
            vec![format!(
                "Fewer than {FEW_EVENTS} events in the validation or the test part: {}. Numbers of these groups, and gaps with \
                 them, are mostly noise.",
                few.join("; ")
            )]
        };
        let caption = "Samples and events of every group.".to_owned();
        Section {
            id: "sizes",
            title: "Who is compared".to_owned(),
            question: "How many events are there in every group?".to_owned(),
            verdict,
            sheets: vec![Sheet::new("sizes".to_owned(), caption, &columns, rows)],
            charts: Vec::new(),
        }
    }
}

/// Makes the names of figures unique: two names may have the same letters and digits.
fn distinct<'a>(charts: impl Iterator<Item = &'a mut Chart>) {
    let mut known = BTreeSet::new();
    for chart in charts {
        let stem = chart.name.clone();
        let mut n = 1;
        while !known.insert(chart.name.clone()) {
            n += 1;
            chart.name = format!("{stem}-{n}");
        }
    }
}

/// The kept epoch of a trial that is best in the validation part by a metric, with its values in the test part.
fn of_trial(trial: &TrialPoints, metric: usize) -> Result<Option<Values>, CliError> {
    Ok(super::choice::best(&[trial], metric)?.map(|chosen| chosen.test))
}

/// The mean of the values that are defined, and their number.
fn mean(values: impl IntoIterator<Item = f64>) -> (Option<f64>, usize) {
    let (sum, n) = values.into_iter().fold((0.0, 0_usize), |(sum, n), value| (sum + value, n + 1));
    ((n > 0).then(|| sum / n as f64), n)
}

/// Trials by number, so that those of two cells are paired.
fn by_trial<'a>(trials: &[&'a TrialPoints]) -> BTreeMap<usize, &'a TrialPoints> {
    trials.iter().map(|trial| (trial.trial, *trial)).collect()
}

/// A metric with three decimals, or a dash.
fn score(score: Option<f64>) -> SheetCell {
    SheetCell::or_missing(score, SheetCell::Statistic)
}

/// A value or a dash.
fn value(value: Option<f64>) -> SheetCell {
    SheetCell::or_missing(value, SheetCell::Value)
}

/// A table with columns of changing number.
fn sheet(name: &str, caption: &str, columns: &[(String, String)], rows: Vec<Vec<SheetCell>>, notes: &[&str]) -> Sheet {
    let columns: Vec<(&str, &str)> = columns.iter().map(|(key, title)| (key.as_str(), title.as_str())).collect();
    let mut sheet = Sheet::new(name.to_owned(), caption.to_owned(), &columns, rows);
    sheet.notes = notes.iter().map(|note| (*note).to_owned()).collect();
    sheet
}

/// Columns with the same name and title.
fn columns(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).replace(' ', "-"), (*name).to_owned())).collect()
}
