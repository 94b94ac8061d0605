//! Models x scenarios: the mean absolute logit error (MALE) of estimators on cohorts of the generator, whose hazards are known.
//!
//! `cargo run --release -p fairtte-classical --example survival_benchmark -- [PEOPLE [REPEATS [ROWS.csv]]]`
//!
//! Models are fitted to treatment and covariates of PEOPLE (default 1,000) and predict as many others. ROWS.csv are real covariates, one
//! row per person and a column of numbers per covariate, with a line of names; without it they are normal. MALE is given for intervals up to
//! the 75 % quantile of the event times (early), and from there to the 99 % quantile (late).
//!
//! Treatment effects, from curves of everybody without and with treatment, are compared with the true ones, of everybody and by subgroup.
//!
//! With `--heat-map FILE.svg` at the end, models x scenarios alone are run and also drawn; FILE.csv has the values as `fairtte test` reads
//! them. `--write FOLDER` in its place writes the people of every scenario and every setting of subgroups, and repeat, as CSV, and
//! `--read FOLDER` adds the models whose curves of them lie there to these two tables: `benches/peers/networks.py` trains networks between
//! the two. A scenario or setting whose folders have been removed is left out.

#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::path::Path;

use fairtte_classical::generator::{Arm, Generated, GeneratorSettings, generate, generate_on};
use fairtte_classical::{ClassicalError, Estimator, ForestSettings, SurvivalEstimator as _, SurvivalModel as _};
use fairtte_metrics::effects::LogitErrors;
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::scores::kaplan_meier_curves;
use fairtte_metrics::statistics::{RangeQuantile, RankTable, RankTies, critical_difference, friedman};
use fairtte_metrics::{Direction, Outcomes, SurvivalCurves};
use ndarray::{Array2, Axis};

#[path = "survival_benchmark/effects.rs"]
mod effects;
#[path = "survival_benchmark/heat_map.rs"]
mod heat_map;
#[path = "survival_benchmark/outside.rs"]
mod outside;
#[path = "survival_benchmark/scenarios.rs"]
mod scenarios;

use scenarios::{confounded, scenarios, subgrouped, unmeasured};

type Failure = Box<dyn std::error::Error>;
/// Intervals of time up to the 99 % quantile of the event times.
const INTERVALS: usize = 20;
/// Fits a model and predicts the curves of several tables of other people on a grid.
type Predict = Box<dyn Fn(&Array2<f64>, &Outcomes, &[Array2<f64>], &[f64]) -> Result<Vec<SurvivalCurves>, Failure>>;

/// Kaplan-Meier, every estimator of one kind of event with its defaults (a forest: those of ranger), and a forest with those of rfsrc.
fn models() -> Vec<(String, Predict)> {
    let kaplan_meier: Predict = Box::new(|_, outcomes, others, grid| {
        let curve = KaplanMeier::fit(outcomes)?;
        others.iter().map(|people| Ok(kaplan_meier_curves(&curve, grid, people.nrows())?)).collect()
    });
    let fitted = |estimator: Estimator| -> Predict {
        Box::new(move |x, outcomes, others, grid| {
            let model = estimator.fit(x, outcomes)?;
            others.iter().map(|people| Ok(model.survival_curves(people, grid)?)).collect()
        })
    };
    let mut models = vec![("Kaplan-Meier".to_owned(), kaplan_meier)];
    for (name, _) in Estimator::CATALOGUE {
        // With one kind of event the models of one of several causes are Cox regressions.
        if ["fine-gray", "cause-specific"].contains(name) {
            continue;
        }
        models.extend(Estimator::by_name(name).map(|estimator| ((*name).to_owned(), fitted(estimator))));
    }
    models.push(("forest (rfsrc)".to_owned(), fitted(Estimator::Forest(ForestSettings::rfsrc()))));
    models
}

fn names_of_models() -> Vec<String> {
    models().into_iter().map(|(name, _)| name).collect()
}

/// Where covariates come from, and how many people are drawn.
struct Source {
    n: usize,
    rows: Option<Array2<f64>>,
}

impl Source {
    fn draw(&self, settings: &GeneratorSettings, seed: u64) -> Result<Generated, ClassicalError> {
        let settings = GeneratorSettings { n: 2 * self.n, ..settings.clone() };
        match &self.rows {
            Some(rows) => generate_on(&settings, rows, seed),
            None => generate(&settings, seed),
        }
    }
}

/// The second half of a cohort, predicted by a model of the first one.
struct Scored {
    errors: LogitErrors,
    others: Vec<usize>,
    cohort: Generated,
}

/// The first half of a cohort, which is fitted to, and the second one, which is predicted.
struct Halves {
    cohort: Generated,
    first: Vec<usize>,
    others: Vec<usize>,
    grid: Vec<f64>,
    median: usize,
    quartile: usize,
}

impl Halves {
    fn draw(source: &Source, settings: &GeneratorSettings, seed: u64) -> Result<Self, Failure> {
        let cohort = source.draw(settings, seed)?;
        let n = source.n;
        let (first, others): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (n..2 * n).collect());
        let outcomes = cohort.outcomes.select(&first);
        let mut times: Vec<f64> =
            outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event).map(|(time, _)| *time).collect();
        times.sort_by(f64::total_cmp);
        // Intervals up to the 99 % quantile of the event times.
        let last = times[(times.len() - 1) * 99 / 100];
        let grid: Vec<f64> = (0..=INTERVALS).map(|k| last * k as f64 / INTERVALS as f64).collect();
        // The first times of the grid from the median and from the upper quartile of the event times on.
        let [median, quartile] =
            [2, 3].map(|k| grid.partition_point(|time| *time < times[(times.len() - 1) * k / 4]).max(1));
        Ok(Self { cohort, first, others, grid, median, quartile })
    }

    /// Curves of the second half by every model of the first one, of treatment as `inputs` have it.
    fn predictions(&self, inputs: &[Array2<f64>]) -> Result<Vec<Vec<SurvivalCurves>>, Failure> {
        let of = |inputs: &Array2<f64>, rows: &[usize]| inputs.select(Axis(0), rows);
        let (fitted_to, outcomes) = (of(&self.cohort.inputs(), &self.first), self.cohort.outcomes.select(&self.first));
        let people: Vec<Array2<f64>> = inputs.iter().map(|inputs| of(inputs, &self.others)).collect();
        models().into_iter().map(|(_, predict)| predict(&fitted_to, &outcomes, &people, &self.grid)).collect()
    }

    fn scored(&self, curves: &SurvivalCurves) -> Result<Scored, Failure> {
        let truth = self.cohort.survival(Arm::Observed, &self.grid)?.select(&self.others);
        let errors = LogitErrors::new(&truth, curves, &self.cohort.outcomes.select(&self.others))?;
        Ok(Scored { errors, others: self.others.clone(), cohort: self.cohort.clone() })
    }
}

impl Scored {
    /// One comparison per model, in their order.
    fn of_all(source: &Source, settings: &GeneratorSettings, seed: u64) -> Result<Vec<Self>, Failure> {
        let halves = Halves::draw(source, settings, seed)?;
        let curves = halves.predictions(&[halves.cohort.inputs()])?;
        curves.iter().flatten().map(|curves| halves.scored(curves)).collect()
    }

    fn middle(&self) -> f64 {
        self.errors.event_time_quantile(0.75).unwrap_or(f64::INFINITY)
    }

    fn early(&self) -> f64 {
        self.errors.mean(0.0, self.middle()).map_or(f64::INFINITY, |found| found.value)
    }

    fn late(&self) -> f64 {
        let last = self.errors.event_time_quantile(0.99).unwrap_or(f64::INFINITY);
        self.errors.mean(self.middle(), last).map_or(f64::INFINITY, |found| found.value)
    }

    /// Early MALE of the people of an arm, and of a subgroup if there are any.
    fn early_of(&self, treated: bool, subgroup: Option<usize>) -> f64 {
        let is_in = |row: usize| {
            self.cohort.treatment[row] == treated && subgroup.is_none_or(|group| self.cohort.subgroup[row] == group)
        };
        let rows: Vec<usize> = (0..self.others.len()).filter(|place| is_in(self.others[*place])).collect();
        self.errors.mean_of(&rows, 0.0, self.middle()).map_or(f64::INFINITY, |found| found.value)
    }
}

fn average(repeats: u64, one: impl Fn(u64) -> Result<Vec<Vec<f64>>, Failure>) -> Result<Vec<Vec<f64>>, Failure> {
    let mut sums: Vec<Vec<f64>> = Vec::new();
    for seed in 1..=repeats {
        let found = one(seed)?;
        if sums.is_empty() {
            sums = found;
        } else {
            sums.iter_mut().zip(found).for_each(|(sum, new)| sum.iter_mut().zip(new).for_each(|(a, b)| *a += b));
        }
    }
    sums.iter_mut().flatten().for_each(|value| *value /= repeats as f64);
    Ok(sums)
}

fn header(first: &str, names: &[String]) {
    println!("\n| {first} | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
}

fn line(first: &str, values: impl Iterator<Item = String>) {
    println!("| {first} | {} |", values.collect::<Vec<_>>().join(" | "));
}

fn by_scenario(source: &Source, repeats: u64, drawing: Option<&str>, outside: Option<&str>) -> Result<(), Failure> {
    let names = with_outside(outside)?;
    header("scenario: MALE early / late", &names);
    let (mut rows, mut early, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for (name, kind, settings) in scenarios() {
        if outside.is_some_and(|folder| !outside::has(folder, name)) {
            continue;
        }
        let found = average(repeats, |seed| {
            let scored = all_scored(source, name, &settings, seed, outside)?;
            Ok(scored.iter().map(|scored| vec![scored.early(), scored.late()]).collect())
        })?;
        let row = format!("{name} ({kind})");
        line(&row, found.iter().map(|of| format!("{:.3} / {:.3}", of[0], of[1])));
        rows.push(row);
        early.push(found.iter().map(|of| of[0]).collect::<Vec<_>>());
        late.push(found.iter().map(|of| of[1]).collect::<Vec<_>>());
    }
    if let Some(file) = drawing {
        let panels = [("early", &early), ("late", &late)];
        std::fs::write(file, heat_map::drawn(&panels, &rows, &names))?;
        std::fs::write(Path::new(file).with_extension("csv"), heat_map::table(&panels, &rows, &names))?;
    }
    ranks("early", early)?;
    ranks("late", late)
}

/// Names of all columns.
fn with_outside(outside: Option<&str>) -> Result<Vec<String>, Failure> {
    let mut names = names_of_models();
    names.extend(outside.map(outside::names).transpose()?.unwrap_or_default());
    Ok(names)
}

/// The models of this crate, then those of `outside`.
fn all_scored(
    source: &Source,
    name: &str,
    settings: &GeneratorSettings,
    seed: u64,
    outside: Option<&str>,
) -> Result<Vec<Scored>, Failure> {
    let mut scored = Scored::of_all(source, settings, seed)?;
    if let Some(folder) = outside {
        scored.extend(outside::scored(folder, &format!("{name}-{seed}"), source, settings, seed)?);
    }
    Ok(scored)
}

/// Average ranks of the models over scenarios, with the tests of their difference; small values are better.
fn ranks(what: &str, values: Vec<Vec<f64>>) -> Result<(), Failure> {
    let (rows, columns) = (values.len(), values.first().map_or(0, Vec::len));
    if rows < 2 {
        return Ok(());
    }
    let values = Array2::from_shape_vec((rows, columns), values.into_iter().flatten().collect())?;
    let table = RankTable::new(values, Direction::LowerIsBetter)?;
    let ranks: Vec<String> = table.average_ranks().iter().map(|rank| format!("{rank:.2}")).collect();
    let p = friedman(&table, RankTies::default())?.p_value;
    let difference = critical_difference(columns, rows, 0.05, RangeQuantile::default())?;
    println!(
        "\naverage ranks, {what}: {}; Friedman p = {p:.1e}; critical difference {difference:.2}",
        ranks.join(", ")
    );
    Ok(())
}

/// ALE(t): the absolute logit error by interval of time, mean over scenarios in which the interval has an event.
fn by_interval(source: &Source, repeats: u64) -> Result<(), Failure> {
    let names = names_of_models();
    let mut sums = Array2::<f64>::zeros((INTERVALS, names.len()));
    let mut n = sums.clone();
    for (_, _, settings) in scenarios() {
        for seed in 1..=repeats {
            for (model, scored) in Scored::of_all(source, &settings, seed)?.iter().enumerate() {
                let intervals = scored.errors.by_interval();
                for (k, at) in intervals.iter().enumerate().filter(|(_, at)| at.n_events > 0) {
                    if let Some(error) = at.error {
                        sums[[k, model]] += error;
                        n[[k, model]] += 1.0;
                    }
                }
            }
        }
    }
    header("interval, cohorts with an event in it: ALE", &names);
    for (k, (sums, n)) in sums.rows().into_iter().zip(n.rows()).enumerate() {
        line(&format!("{}, {}", k + 1, n[0]), sums.iter().zip(n).map(|(sum, n)| format!("{:.3}", sum / n)));
    }
    Ok(())
}

/// Early MALE by arm for each strength of confounding.
fn confounding(source: &Source, repeats: u64) -> Result<(), Failure> {
    let tables = [
        ("confounders, weight (measured, piece-9)", confounded()),
        ("correlation of z, weight (unmeasured, piece-4)", unmeasured()),
    ];
    for (first, rows) in tables {
        header(&format!("{first}: MALE untreated / treated"), &names_of_models());
        for (name, settings) in rows {
            let found = average(repeats, |seed| {
                let scored = Scored::of_all(source, &settings, seed)?;
                Ok(scored.iter().map(|of| vec![of.early_of(false, None), of.early_of(true, None)]).collect())
            })?;
            line(&name, found.iter().map(|of| format!("{:.3} / {:.3}", of[0], of[1])));
        }
    }
    Ok(())
}

/// Early MALE by arm and subgroup for means and shares of subgroups.
fn subgroups(source: &Source, repeats: u64, outside: Option<&str>) -> Result<(), Failure> {
    header("means, share of s = 1 (piece-1): MALE (a, s) = 00 / 01 / 10 / 11", &with_outside(outside)?);
    for (name, settings) in subgrouped() {
        let folder_name = outside::name_of_subgroups(&name);
        if outside.is_some_and(|folder| !outside::has(folder, &folder_name)) {
            continue;
        }
        let found = average(repeats, |seed| {
            let cells = |scored: &Scored| {
                [(false, 0), (false, 1), (true, 0), (true, 1)].map(|(a, s)| scored.early_of(a, Some(s))).to_vec()
            };
            Ok(all_scored(source, &folder_name, &settings, seed, outside)?.iter().map(cells).collect())
        })?;
        let cells = |of: &Vec<f64>| of.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(" / ");
        line(&name, found.iter().map(cells));
    }
    Ok(())
}

fn read_rows(path: &str) -> Result<Array2<f64>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines();
    let columns = lines.next().map_or(0, |names| names.split(',').count());
    let values: Result<Vec<f64>, _> = lines.flat_map(|line| line.split(',')).map(|cell| cell.trim().parse()).collect();
    let values = values?;
    Ok(Array2::from_shape_vec((values.len() / columns.max(1), columns), values)?)
}

fn main() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| {
        let place = arguments.iter().position(|word| word == name)?;
        arguments.drain(place..(place + 2).min(arguments.len())).nth(1)
    };
    let [drawing, written, outside] = ["--heat-map", "--write", "--read"].map(&mut option);
    let n = arguments.first().map_or(Ok(1_000), |word| word.parse())?;
    let repeats = arguments.get(1).map_or(Ok(3), |word| word.parse())?;
    let rows = arguments.get(2).map(|path| read_rows(path)).transpose()?;
    let source = Source { n, rows };
    println!("{n} people to fit, as many to predict; {repeats} repeats");
    if let Some(folder) = written {
        return outside::write(&folder, &source, repeats);
    }
    by_scenario(&source, repeats, drawing.as_deref(), outside.as_deref())?;
    if outside.is_some() {
        return subgroups(&source, repeats, outside.as_deref());
    }
    if drawing.is_some() {
        return Ok(());
    }
    by_interval(&source, repeats)?;
    confounding(&source, repeats)?;
    subgroups(&source, repeats, None)?;
    effects::tables(&source, repeats)
}
