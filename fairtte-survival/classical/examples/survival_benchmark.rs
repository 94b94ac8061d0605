//! Models x scenarios: the mean absolute logit error (MALE) of estimators on cohorts of the generator, whose hazards are known.
//!
//! `cargo run --release -p fairtte-classical --example survival_benchmark -- [PEOPLE [REPEATS [ROWS.csv]]]`
//!
//! Models are fitted to treatment and covariates of PEOPLE (default 1,000) and predict as many others. ROWS.csv are real covariates, one
//! row per person and a column of numbers per covariate, with a line of names; without it they are normal. MALE is given for intervals up to
//! the 75 % quantile of the event times (early), and from there to the 99 % quantile (late).
//!
//! With `--heat-map FILE.svg` at the end, models x scenarios alone are run and also drawn. `--write FOLDER` in its place writes the people of
//! every scenario and repeat as CSV, and `--read FOLDER` adds the models whose curves of them lie there to the first table:
//! `benches/peers/networks.py` trains networks between the two.

#![expect(clippy::print_stdout, reason = "the tables are the result")]

use fairtte_classical::generator::{
    Arm, CensoringSettings, Gauss, Generated, GeneratorSettings, Hazard, LogLinear, Piece, SubgroupSettings,
    TreatmentSettings, UnmeasuredSettings, generate, generate_on,
};
use fairtte_classical::{ClassicalError, Estimator, ForestSettings, SurvivalEstimator as _, SurvivalModel as _};
use fairtte_metrics::effects::LogitErrors;
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::scores::kaplan_meier_curves;
use fairtte_metrics::statistics::{RangeQuantile, RankTable, RankTies, critical_difference, friedman};
use fairtte_metrics::{Direction, Outcomes, SurvivalCurves};
use ndarray::Array2;

#[path = "survival_benchmark/heat_map.rs"]
mod heat_map;
#[path = "survival_benchmark/outside.rs"]
mod outside;

type Failure = Box<dyn std::error::Error>;
/// Fits a model and predicts the curves of other people on a grid.
type Predict = Box<dyn Fn(&Array2<f64>, &Outcomes, &Array2<f64>, &[f64]) -> Result<SurvivalCurves, Failure>>;

/// Kaplan-Meier, every estimator of one kind of event with its defaults (a forest: those of ranger), and a forest with those of rfsrc.
fn models() -> Vec<(String, Predict)> {
    let kaplan_meier: Predict = Box::new(|_, outcomes, others, grid| {
        Ok(kaplan_meier_curves(&KaplanMeier::fit(outcomes)?, grid, others.nrows())?)
    });
    let fitted = |estimator: Estimator| -> Predict {
        Box::new(move |x, outcomes, others, grid| Ok(estimator.fit(x, outcomes)?.survival_curves(others, grid)?))
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

/// Scenarios by name, with the group of scenarios that they belong to.
fn scenarios() -> Vec<(&'static str, &'static str, GeneratorSettings)> {
    let random = CensoringSettings {
        hazard: Hazard::LogLinear(LogLinear { rate: 0.1, ..LogLinear::default() }),
        ..CensoringSettings::default()
    };
    let of = |hazard: Hazard, censoring: Option<Hazard>| GeneratorSettings {
        hazard,
        censoring: censoring
            .map_or(random.clone(), |hazard| CensoringSettings { hazard, ..CensoringSettings::default() }),
        ..GeneratorSettings::default()
    };
    let gauss = |covariates| Hazard::Gauss(Gauss { covariates, ..Gauss::default() });
    let piece = |covariates| Hazard::Piece(Piece { covariates, ..Piece::default() });
    vec![
        ("constant-1", "constant", of(Hazard::Constant1, None)),
        ("constant-2", "constant", of(Hazard::Constant2, None)),
        ("scenario-1", "constant", of(Hazard::Scenario1, Some(Hazard::Censoring1))),
        ("scenario-2", "constant", of(Hazard::Scenario2, None)),
        ("scenario-3", "time-varying", of(Hazard::Scenario3, Some(Hazard::Censoring3))),
        ("scenario-4", "time-varying", of(Hazard::Scenario4, None)),
        ("scenario-5", "time-varying", of(Hazard::Scenario5, None)),
        ("scenario-6", "time-varying", of(Hazard::Scenario6, None)),
        ("scenario-7", "time-varying", of(Hazard::Scenario7, None)),
        ("scenario-8", "time-varying", of(Hazard::Scenario8, None)),
        ("scenario-9", "time-varying", of(Hazard::Scenario9, None)),
        ("scenario-10", "time-varying", of(Hazard::Scenario10, Some(Hazard::Censoring10))),
        ("gauss-2", "non-linear", of(gauss(2), None)),
        ("gauss-4", "non-linear", of(gauss(4), None)),
        ("piece-1", "non-linear", of(piece(1), None)),
        ("piece-4", "non-linear", of(piece(4), None)),
        ("piece-9", "non-linear", of(piece(9), None)),
    ]
}

fn names_of_scenarios() -> Vec<String> {
    scenarios().into_iter().map(|(name, kind, _)| format!("{name} ({kind})")).collect()
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
        // Twenty intervals up to the 99 % quantile of the event times.
        let last = times[(times.len() - 1) * 99 / 100];
        let grid = (0..=20).map(|k| last * f64::from(k) / 20.0).collect();
        Ok(Self { cohort, first, others, grid })
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
        let inputs = halves.cohort.inputs();
        let of = |rows: &[usize]| inputs.select(ndarray::Axis(0), rows);
        let outcomes = halves.cohort.outcomes.select(&halves.first);
        let one = |(_, predict): (String, Predict)| {
            halves.scored(&predict(&of(&halves.first), &outcomes, &of(&halves.others), &halves.grid)?)
        };
        models().into_iter().map(one).collect()
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
    let mut names = names_of_models();
    names.extend(outside.map(outside::names).transpose()?.unwrap_or_default());
    header("scenario: MALE early / late", &names);
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for (name, kind, settings) in scenarios() {
        let found = average(repeats, |seed| {
            let mut scored = Scored::of_all(source, &settings, seed)?;
            if let Some(folder) = outside {
                scored.extend(outside::scored(folder, &format!("{name}-{seed}"), source, &settings, seed)?);
            }
            Ok(scored.iter().map(|scored| vec![scored.early(), scored.late()]).collect())
        })?;
        line(&format!("{name} ({kind})"), found.iter().map(|of| format!("{:.3} / {:.3}", of[0], of[1])));
        early.push(found.iter().map(|of| of[0]).collect::<Vec<_>>());
        late.push(found.iter().map(|of| of[1]).collect::<Vec<_>>());
    }
    if let Some(file) = drawing {
        std::fs::write(file, heat_map::drawn(&[("early", &early), ("late", &late)], &names_of_scenarios(), &names))?;
    }
    for (what, values) in [("early", early), ("late", late)] {
        let (rows, columns) = (values.len(), values[0].len());
        let table = RankTable::new(
            Array2::from_shape_vec((rows, columns), values.into_iter().flatten().collect())?,
            Direction::LowerIsBetter,
        )?;
        let ranks: Vec<String> = table.average_ranks().iter().map(|rank| format!("{rank:.2}")).collect();
        let p = friedman(&table, RankTies::default())?.p_value;
        let difference = critical_difference(columns, rows, 0.05, RangeQuantile::default())?;
        println!(
            "\naverage ranks, {what}: {}; Friedman p = {p:.1e}; critical difference {difference:.2}",
            ranks.join(", ")
        );
    }
    Ok(())
}

/// Early MALE by arm for each strength of confounding.
fn confounding(source: &Source, repeats: u64) -> Result<(), Failure> {
    header("confounders, weight (measured, piece-9): MALE untreated / treated", &names_of_models());
    for count in [1_u8, 4, 9] {
        for weight in [0.0, 1.0, 3.0] {
            let hazard = Hazard::Piece(Piece { covariates: 9, ..Piece::default() });
            // On average as many treated as untreated.
            let probability = 1.0 / (1.0 + (weight * f64::from(count) / 2.0).exp());
            let confounders = (0..usize::from(count)).collect();
            let treatment = TreatmentSettings { probability, confounders, weight, unmeasured: 0.0 };
            let settings = GeneratorSettings { hazard, treatment, ..GeneratorSettings::default() };
            arms(source, repeats, &format!("{count}, {weight}"), &settings)?;
        }
    }
    header("correlation of z, weight (unmeasured, piece-4): MALE untreated / treated", &names_of_models());
    for correlation in [0.0, 0.3] {
        for weight in [0.0, 3.0, 10.0] {
            let hazard = Hazard::Piece(Piece { covariates: 4, ..Piece::default() });
            let probability = 1.0 / (1.0 + (weight / 2.0_f64).exp());
            let treatment = TreatmentSettings { probability, unmeasured: weight, ..TreatmentSettings::default() };
            let unmeasured = UnmeasuredSettings { correlation, hazard: 3.0, censoring: 0.0 };
            let settings = GeneratorSettings { hazard, treatment, unmeasured, ..GeneratorSettings::default() };
            arms(source, repeats, &format!("{correlation}, {weight}"), &settings)?;
        }
    }
    Ok(())
}

fn arms(source: &Source, repeats: u64, name: &str, settings: &GeneratorSettings) -> Result<(), Failure> {
    let found = average(repeats, |seed| {
        let scored = Scored::of_all(source, settings, seed)?;
        Ok(scored.iter().map(|scored| vec![scored.early_of(false, None), scored.early_of(true, None)]).collect())
    })?;
    line(name, found.iter().map(|of| format!("{:.3} / {:.3}", of[0], of[1])));
    Ok(())
}

/// Early MALE by arm and subgroup for means and shares of subgroups.
fn subgroups(source: &Source, repeats: u64) -> Result<(), Failure> {
    header("means, share of s = 1 (piece-1): MALE (a, s) = 00 / 01 / 10 / 11", &names_of_models());
    for means in [[0.45, 0.55], [0.3, 0.7], [0.15, 0.85]] {
        for share in [0.1, 0.5, 0.9] {
            let subgroups = SubgroupSettings {
                shares: vec![1.0 - share, share],
                means: means.to_vec(),
                deviation: 0.1,
                ..SubgroupSettings::default()
            };
            let hazard = Hazard::Piece(Piece { covariates: 1, ..Piece::default() });
            let settings = GeneratorSettings { hazard, subgroups, ..GeneratorSettings::default() };
            let found = average(repeats, |seed| {
                let cells = |scored: &Scored| {
                    [(false, 0), (false, 1), (true, 0), (true, 1)].map(|(a, s)| scored.early_of(a, Some(s))).to_vec()
                };
                Ok(Scored::of_all(source, &settings, seed)?.iter().map(cells).collect())
            })?;
            let cells = |of: &Vec<f64>| of.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(" / ");
            line(&format!("{means:?}, {share}"), found.iter().map(cells));
        }
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
    if drawing.is_some() || outside.is_some() {
        return Ok(());
    }
    confounding(&source, repeats)?;
    subgroups(&source, repeats)
}
