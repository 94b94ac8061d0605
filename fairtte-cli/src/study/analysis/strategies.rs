//! Strategies against the base: the models that the paper's rule chooses, their changes, and rank tests of their gaps.

use std::collections::BTreeMap;

use fairtte_metrics::Direction;
use fairtte_metrics::statistics::Alternative;

use super::{N_MEASURES, Section, Study, columns, equity, horizon, score, sheet, value};
use crate::CliError;
use crate::args::Rule;
use crate::method_tests::{self, Goal, MethodTests, Observation, Question};
use crate::report::sheet::{Cell, Sheet};
use crate::study::cells::Block;
use crate::study::choice::{Chosen, best, by_rule};
use crate::study::points::{Setting, Values};

/// The models of a setting by one metric.
pub(super) struct ChosenOf<'a> {
    pub(super) setting: &'a Setting,
    pub(super) metric: usize,
    pub(super) base: Option<Chosen>,
    /// The base by the rule of the others.
    pub(super) control: Option<Chosen>,
    /// `None` = no model is within the tolerated loss of the base. Strategies without a finished trial are absent.
    pub(super) others: Vec<(String, Option<Chosen>)>,
}

impl ChosenOf<'_> {
    /// All chosen models.
    pub(super) fn models(&self) -> impl Iterator<Item = &Chosen> {
        let others = self.others.iter().filter_map(|(_, model)| model.as_ref());
        self.base.iter().chain(&self.control).chain(others)
    }
}

/// Chooses per setting and metric.
pub(super) fn choose<'a>(study: &Study<'a>) -> Result<Vec<ChosenOf<'a>>, CliError> {
    let (of, rule) = (&study.plan.study().strategies, study.plan.study().rule);
    let mut found = Vec::new();
    for setting in study.settings() {
        let pool = |name: &str| study.trials(setting, |cell| study.is_plain(cell) && cell.strategy == name);
        // One place per training: the block of the strategies may hold the base too.
        let base =
            study.trials(setting, |cell| study.is_plain(cell) && cell.strategy == of.base && cell.block == Block::Base);
        for metric in 0..N_MEASURES {
            let best = best(&base, metric)?;
            let utility = best.as_ref().and_then(|chosen| chosen.validation.overall);
            let of_base = utility.map(|utility| (utility, study.plan.study().tolerated_loss));
            let like = |pool: &[_]| by_rule(rule, pool, metric, of_base);
            let control = like(&base)?;
            let chosen = if rule == Rule::Fairest { best } else { control.clone() };
            let mut others = Vec::new();
            for name in study.plan.study().others() {
                let pool = pool(name);
                if !pool.is_empty() {
                    others.push((name.clone(), like(&pool)?));
                }
            }
            found.push(ChosenOf { setting, metric, base: chosen, control, others });
        }
    }
    Ok(found)
}

/// What is ranked over the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranked {
    /// The gaps of the chosen models.
    Gaps,
    /// The same with the base chosen by the rule of the others.
    GapsAgainstControl,
    /// Every metric, and that of the worst group, as MEDFAIR does.
    Metrics,
}

/// A value of a model, of a metric with this direction.
type Value = fn(&Values, Direction) -> Option<f64>;
/// A value that is ranked: its name, its goal, and how a model has it.
type RankedValue = (String, Goal, Value);

impl Ranked {
    fn values(self, label: &str, direction: Direction) -> Vec<RankedValue> {
        let (gap, overall): (Value, Value) = (|values, _| values.gap, |values, _| values.overall);
        if self != Self::Metrics {
            return vec![(label.to_owned(), Goal::Gap, gap)];
        }
        let worst: Value = Values::worst;
        let goal = if direction == Direction::LowerIsBetter { Goal::LowerIsBetter } else { Goal::HigherIsBetter };
        vec![(label.to_owned(), goal, overall), (format!("{label} of the worst group"), goal, worst)]
    }
}

/// Rank tests in the test part over the settings, by metric; `None` with fewer than two methods.
pub(super) fn rank_tests(
    study: &Study<'_>,
    chosen: &[ChosenOf<'_>],
    ranked: Ranked,
) -> Result<Option<MethodTests>, CliError> {
    let base = &study.plan.study().strategies.base;
    let mut observations = Vec::new();
    let mut goals = BTreeMap::new();
    for of in chosen {
        let direction = study.measures().direction(of.metric);
        let setting = study.name(of.setting);
        let first = (base, if ranked == Ranked::GapsAgainstControl { &of.control } else { &of.base });
        for (metric, goal, value) in ranked.values(study.labels()[of.metric], direction) {
            for (method, model) in std::iter::once(first).chain(of.others.iter().map(|(name, model)| (name, model))) {
                if let Some(value) = model.as_ref().and_then(|model| value(&model.test, direction)) {
                    let (metric, setting, method) = (metric.clone(), setting.clone(), method.clone());
                    observations.push(Observation { metric, setting, method, trial: None, value });
                }
            }
            goals.insert(metric, goal);
        }
    }
    // A metric with one method only has nothing to compare.
    let mut methods: BTreeMap<&str, std::collections::BTreeSet<&str>> = BTreeMap::new();
    for observation in &observations {
        methods.entry(&observation.metric).or_default().insert(&observation.method);
    }
    let several: Vec<String> = methods
        .iter()
        .filter(|(_, of)| of.len() > 1 && of.contains(base.as_str()))
        .map(|(metric, _)| (*metric).to_owned())
        .collect();
    let observations: Vec<Observation> =
        observations.into_iter().filter(|observation| several.contains(&observation.metric)).collect();
    if observations.is_empty() {
        return Ok(None);
    }
    let question = Question {
        base: Some(base.clone()),
        level: 0.05,
        alternative: Alternative::TwoSided,
        all_pairs: false,
        family: method_tests::Family::Table,
        goals,
    };
    method_tests::compare(&observations, &question)
        .map(Some)
        .map_err(|error| CliError::Bug(format!("the models of a study cannot be compared: {error}")))
}

/// The tables of the chosen models; none without strategies.
pub(super) fn section(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Option<Section> {
    if chosen.iter().all(|of| of.others.is_empty()) {
        return None;
    }
    let base = &study.plan.study().strategies.base;
    let rule = study.plan.study().rule;
    // Chosen by one rule, the base is its own control.
    let with_control = rule == Rule::Fairest;
    let first_other = 1 + usize::from(with_control);
    let (mut values, mut changes) = (Vec::new(), Vec::new());
    let (mut counts, tolerated) = (Counts::default(), study.plan.study().tolerated_loss);
    for of_setting in chosen.chunks(N_MEASURES) {
        let name = study.name(of_setting[0].setting);
        let model = |metric: usize, row: usize| -> Option<&Chosen> {
            let of = &of_setting[metric];
            match row {
                0 => of.base.as_ref(),
                1 if with_control => of.control.as_ref(),
                _ => of.others[row - first_other].1.as_ref(),
            }
        };
        let mut names = vec![base.clone()];
        names.extend(with_control.then(|| format!("{base} (same rule)")));
        let rows = names.into_iter().chain(of_setting[0].others.iter().map(|(name, _)| name.clone()));
        for (row, strategy) in rows.enumerate() {
            let models: Vec<Option<&Chosen>> = (0..N_MEASURES).map(|metric| model(metric, row)).collect();
            let head = |n: Option<usize>| {
                vec![Cell::Text(name.clone()), Cell::Text(strategy.clone()), n.map_or(Cell::Missing, Cell::Count)]
            };
            let n = models.iter().flatten().map(|model| model.n_trials).max();
            let mut line = head(n);
            line.extend(models.iter().map(|model| score(model.and_then(|model| model.test.overall))));
            line.extend(models.iter().map(|model| score(model.and_then(|model| model.test.gap))));
            line.extend(models.iter().map(|model| score(model.and_then(|model| model.test.equity_scaling))));
            values.push(line);
            if row == 0 {
                continue;
            }
            let change = |metric: usize, of: fn(&Chosen) -> Option<f64>| {
                let (own, base) = (of(models[metric]?)?, of(model(metric, 0)?)?);
                (base != 0.0).then(|| 100.0 * (own - base) / base)
            };
            let utilities: Vec<Option<f64>> = (0..N_MEASURES).map(|m| change(m, |model| model.test.overall)).collect();
            let gaps: Vec<Option<f64>> = (0..N_MEASURES).map(|m| change(m, |model| model.test.gap)).collect();
            if row >= first_other {
                for (metric, chosen) in models.iter().enumerate() {
                    counts.add(
                        study.measures().direction(metric),
                        [model(metric, 0), *chosen],
                        [utilities[metric], gaps[metric]],
                        tolerated,
                    );
                }
            }
            let mut line = head(n);
            line.extend(utilities.into_iter().chain(gaps).map(value));
            changes.push(line);
        }
    }
    let names = || vec![("setting".to_owned(), "setting".to_owned()), ("strategy".to_owned(), "strategy".to_owned())];
    let header = |last: &[&str]| {
        let trials = ("trials".to_owned(), "trials".to_owned());
        let metrics = last.iter().flat_map(|prefix| study.metric_columns(prefix));
        names().into_iter().chain([trials]).chain(metrics).collect::<Vec<_>>()
    };
    let rule = rule_in_words(rule, base, &percent(study));
    let mut notes = vec![rule.as_str()];
    notes.extend(horizon::is_of_times(chosen).then_some(horizon::NOTE));
    let of_changes: Vec<&str> = notes.iter().copied().chain([NEAR_ZERO]).collect();
    let mut sheets = vec![
        sheet(
            "strategies-change",
            &format!("Changes from {base} in %, test part; of the gaps, negative is narrower."),
            &header(&["", "gap"]),
            changes,
            &of_changes,
        ),
        sheet(
            "strategies",
            "Metrics, gaps and equity scaling of the chosen models, test part.",
            &header(&["", "gap", "es"]),
            values,
            &notes,
        ),
    ];
    sheets.extend(places(study, chosen));
    Some(Section {
        id: "strategies",
        title: "Strategies against the base".to_owned(),
        question: format!("Does a strategy narrow the gap of {base} without losing its metric?"),
        verdict: counts.sentences(study.plan.study().rule, base, &percent(study)),
        sheets,
        charts: equity::charts(study, chosen),
    })
}

/// Beside relative changes of gaps.
const NEAR_ZERO: &str = "Relative to a gap near 0 any change is large: compare the gaps themselves, in the next table.";

/// Which trainings were chosen, by their places in the manifest.
fn places(study: &Study<'_>, chosen: &[ChosenOf<'_>]) -> Option<Sheet> {
    let base = &study.plan.study().strategies.base;
    let mut rows = Vec::new();
    for of in chosen {
        let others = of.others.iter().map(|(name, model)| (name, model.as_ref()));
        for (strategy, model) in std::iter::once((base, of.base.as_ref())).chain(others) {
            let Some(model) = model else { continue };
            let all: Vec<String> = study.plan.folds_of(model.place).map(|place| place.to_string()).collect();
            rows.push(vec![
                Cell::Text(study.name(of.setting)),
                Cell::Text(study.measures().names()[of.metric].to_owned()),
                Cell::Text(strategy.clone()),
                Cell::Text(all.join(" ")),
                Cell::Count(model.trial + 1),
                Cell::Count(model.epoch),
                Cell::Text(model.rule.clone()),
            ]);
        }
    }
    let header = columns(&["setting", "metric", "strategy", "index", "trial", "epoch", "rule"]);
    let of = |rows| {
        sheet(
            "chosen",
            "The chosen models: the places of their trainings in manifest.csv, for `study restore`, and which epoch they are.",
            &header,
            rows,
            &[
                "Rule: a rule of the training that kept the epoch, for `predict --epoch`. Of several folds or training seeds all \
           places; the epoch is that of the first, the rule that of all.",
            ],
        )
    };
    (!rows.is_empty()).then(|| of(rows))
}

/// How models were chosen.
fn rule_in_words(rule: Rule, base: &str, tolerated: &str) -> String {
    let of_all =
        |what: &str| format!("Chosen by the validation part, {base} as all others: {what}; a dash: there is none.");
    match rule {
        Rule::Fairest => format!(
            "Chosen by the validation part: {base} by the best metric, the others by the smallest gap among the models that lose at \
             most {tolerated} of {base}'s metric; a dash: there is none. \"Same rule\": {base} chosen as the others are, the control \
             of their changes."
        ),
        Rule::Overall => of_all("the best metric"),
        Rule::Minimax => of_all("the best worst group on the Pareto front of the groups"),
        Rule::Dto => of_all("the smallest relative distance to the best value of every group"),
    }
}

/// The tolerated loss in words: `5 %`.
fn percent(study: &Study<'_>) -> String {
    // Without what 100 x 0.07 leaves behind the fourth digit.
    let percent = (1e6 * study.plan.study().tolerated_loss).round() / 1e4;
    format!("{percent} %")
}

/// How often gaps narrow, over settings, strategies and metrics.
#[derive(Default)]
struct Counts {
    cells: usize,
    /// Cells without a model of the base, whose value the choice of the others needs or their changes.
    without_base: usize,
    /// Cells with one, but without a model of the strategy.
    none: usize,
    narrower: usize,
    worse: usize,
    both: usize,
}

impl Counts {
    fn add(
        &mut self,
        direction: Direction,
        [base, model]: [Option<&Chosen>; 2],
        [utility, gap]: [Option<f64>; 2],
        tolerated_loss: f64,
    ) {
        self.cells += 1;
        self.without_base += usize::from(base.is_none());
        self.none += usize::from(base.is_some() && model.is_none());
        let (Some(utility), Some(gap)) = (utility, gap) else { return };
        let loss = if direction == Direction::LowerIsBetter { utility } else { -utility };
        self.narrower += usize::from(gap < 0.0);
        self.worse += usize::from(loss > 100.0 * tolerated_loss);
        self.both += usize::from(gap < 0.0 && loss <= 0.0);
    }

    fn sentences(&self, rule: Rule, base: &str, tolerated: &str) -> Vec<String> {
        let Self { cells, without_base, none, narrower, worse, both } = self;
        let because = if *worse > 0 { ", because the choice looks at the validation part" } else { "" };
        let mut found = vec![format!(
            "Of {cells} cells (settings x strategies x metrics), the gap in the test part is narrower than that of {base} in \
             {narrower}, in {both} of them at no loss of the metric; the metric is more than {tolerated} worse in {worse}{because}."
        )];
        if *none > 0 {
            found.push(match rule {
                Rule::Fairest => format!("In {none} cells no model is within {tolerated} of {base}."),
                Rule::Overall | Rule::Minimax | Rule::Dto => format!("In {none} cells no model could be chosen."),
            });
        }
        if *without_base > 0 {
            found.push(format!(
                "In {without_base} cells there is no finished model of {base} with this metric to compare with."
            ));
        }
        found.push(
            "These counts are no test: of equal methods, about half would have the narrower gap. The rank tests below say whether \
             more than chance is shown."
                .to_owned(),
        );
        found
    }
}
