//! Cohorts whose groups and censoring are chosen, and models whose errors are.

use fairtte_classical::generator::{
    Arm, CensoringSettings, CovariateSettings, FollowUpSettings, Generated, GeneratorSettings, Hazard, LogLinear,
    Scale, SubgroupSettings, UnmeasuredSettings, generate,
};
use fairtte_metrics::estimators::BeyondLastTime;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId,
    SurvivalCurves, evaluate,
};
use ndarray::Array2;
use rand::RngExt as _;

/// Times of the curves beside 0, and the last evaluation time at most.
const GRID: usize = 30;
pub const LAST: f64 = 3.0;
/// Long enough that no sample is censored at the end.
const FOREVER: f64 = 1e9;

/// What censors.
#[derive(Clone, Copy, PartialEq)]
pub enum Mechanism {
    /// A constant hazard.
    Random,
    /// The end of a follow-up that begins at any time within it.
    Staggered,
    /// The end of a follow-up that is the same for everybody.
    Cut,
    /// A hazard of exp(x), x the covariate of the event.
    Covariate,
    /// A hazard of exp(z), z unmeasured and in the hazard of the event too.
    Unmeasured,
    /// A constant hazard; event and censoring time of a person have Kendall's tau 0.5.
    EventTime,
    /// A constant hazard, this many times as high in the last group as in the others.
    Group(f64),
}

impl Mechanism {
    pub const ALL: [Self; 7] = [
        Self::Random,
        Self::Staggered,
        Self::Cut,
        Self::Covariate,
        Self::Unmeasured,
        Self::EventTime,
        Self::Group(8.0),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Staggered => "administrative, spread entry",
            Self::Cut => "administrative, one end",
            Self::Covariate => "by x",
            Self::Unmeasured => "by z",
            Self::EventTime => "by event time",
            Self::Group(_) => "by group",
        }
    }
}

/// A generator and a model: hazard exp(x + group + z) for x from N(0, 1); the model predicts exp(-H(t) exp(noise e)), e from N(0, 1).
#[derive(Clone)]
pub struct Design {
    pub settings: GeneratorSettings,
    /// Standard deviation of the error of the predicted log hazard, by group.
    pub noise: Vec<f64>,
    /// Evaluation times.
    pub times: Vec<f64>,
}

impl Design {
    /// With a share of censored people, of a cohort of 3,000.
    pub fn new(shares: &[f64], noise: &[f64], mechanism: Mechanism, censored: f64) -> Self {
        let of_x = |rate: f64| Hazard::LogLinear(LogLinear { rate, covariates: vec![1.0], ..LogLinear::default() });
        let censoring = CensoringSettings {
            hazard: match mechanism {
                Mechanism::Staggered | Mechanism::Cut => Hazard::None,
                Mechanism::Covariate => of_x(1.0),
                _ => Hazard::LogLinear(LogLinear::default()),
            },
            factor: 1.0,
            dependence: if mechanism == Mechanism::EventTime { 0.5 } else { 0.0 },
        };
        let is_by_z = mechanism == Mechanism::Unmeasured;
        let mut by_group = vec![0.0; shares.len()];
        if let Mechanism::Group(times) = mechanism {
            by_group[shares.len() - 1] = times.ln();
        }
        let settings = GeneratorSettings {
            covariates: CovariateSettings { count: 1, correlation: 0.0, scale: Scale::None },
            hazard: of_x(1.0),
            censoring,
            unmeasured: UnmeasuredSettings {
                correlation: 0.0,
                hazard: if is_by_z { 1.0 } else { 0.0 },
                censoring: if is_by_z { 1.0 } else { 0.0 },
            },
            subgroups: SubgroupSettings { shares: shares.to_vec(), censoring: by_group, ..SubgroupSettings::default() },
            follow_up: FollowUpSettings { maximum: FOREVER, ..FollowUpSettings::default() },
            ..GeneratorSettings::default()
        };
        let mut design = Self { settings, noise: noise.to_vec(), times: Vec::new() };
        design.censor(mechanism, censored);
        design.settings.n = 20_000;
        design.times = design.quantile_times();
        design
    }

    /// Bisection for the strength of the censoring.
    fn censor(&mut self, mechanism: Mechanism, censored: f64) {
        let (mut low, mut high) = (-6.0_f64, 6.0_f64);
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            self.settings.n = 3_000;
            match mechanism {
                Mechanism::Staggered => {
                    let maximum = (-middle).exp();
                    self.settings.follow_up =
                        FollowUpSettings { maximum, accrual: 0.999 * maximum, ..Default::default() };
                }
                Mechanism::Cut => {
                    self.settings.follow_up = FollowUpSettings { maximum: (-middle).exp(), ..Default::default() };
                }
                _ => self.settings.censoring.factor = middle.exp(),
            }
            let cohort = generate(&self.settings, 1).unwrap();
            let found = 1.0 - cohort.outcomes.n_events() as f64 / 3_000.0;
            if found < censored { low = middle } else { high = middle }
        }
    }

    /// Twenty times from the 10 % to the 80 % quantile of the observed event times, of a cohort of 20,000.
    fn quantile_times(&self) -> Vec<f64> {
        let cohort = generate(&self.settings, 1).unwrap();
        let outcomes = &cohort.outcomes;
        let events = outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event);
        let mut times: Vec<f64> = events.map(|(time, _)| *time).collect();
        times.sort_by(f64::total_cmp);
        let (first, last) = (times[times.len() / 10], times[times.len() * 8 / 10].min(LAST));
        (0..20).map(|k| first + (last - first) * f64::from(k) / 19.0).collect()
    }

    /// The same people without any censoring.
    pub fn uncensored(&self) -> Self {
        let mut settings = self.settings.clone();
        settings.censoring.hazard = Hazard::None;
        settings.censoring.dependence = 0.0;
        settings.follow_up = FollowUpSettings { maximum: FOREVER, ..FollowUpSettings::default() };
        Self { settings, ..self.clone() }
    }

    pub fn draw(&self, n: usize, seed: u64) -> Cohort {
        let generated = generate(&GeneratorSettings { n, ..self.settings.clone() }, seed).unwrap();
        let curves = self.predictions(&generated, seed, "honesty/model");
        let membership = generated.subgroup.iter().map(|group| Some(GroupId(u32::try_from(*group).unwrap()))).collect();
        let levels = (0..self.settings.subgroups.shares.len()).map(|level| level.to_string()).collect();
        let groups = Groups::new("group", levels, membership).unwrap();
        Cohort { outcomes: generated.outcomes.clone(), curves, groups, generated }
    }

    /// Predicted curves; models of another name have other errors.
    pub fn predictions(&self, cohort: &Generated, seed: u64, name: &str) -> SurvivalCurves {
        let last = self.times.last().copied().unwrap_or(LAST) * 1.25;
        let grid: Vec<f64> = (0..=GRID).map(|k| last * k as f64 / GRID as f64).collect();
        let truth = cohort.survival(Arm::Observed, &grid).unwrap();
        let factor = |row: usize| {
            let error = normal(&mut stream(seed, name, &[row as u64]));
            (self.noise[cohort.subgroup[row]] * error).exp()
        };
        let factors: Vec<f64> = (0..truth.n()).map(factor).collect();
        let survival =
            Array2::from_shape_fn(truth.survival().dim(), |(row, k)| truth.survival()[[row, k]].powf(factors[row]));
        SurvivalCurves::new(grid, survival).unwrap()
    }

    /// The censoring curve of another sample, as of a training part; it is held beyond its last time, so that a rare later one of a
    /// very large sample has a weight.
    pub fn training(&self) -> CensoringCurve {
        let curve = CensoringCurve::fit(&self.draw(20_000, 999_983).outcomes, CensoringTies::EventsFirst).unwrap();
        curve.with_beyond(BeyondLastTime::Hold)
    }

    pub fn evaluation(&self, metrics: &[&str]) -> EvaluationSettings {
        EvaluationSettings {
            metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
            times: Some(self.times.clone()),
            horizon: Some(self.times[10]),
            reading: Reading::Linear,
            min_events: 0,
            permutations: 0,
            over_time: 0,
            replicates: 0,
            ..EvaluationSettings::default()
        }
    }
}

/// A number from N(0, 1), by Box and Muller.
pub fn normal(rng: &mut impl rand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

pub struct Cohort {
    pub outcomes: Outcomes,
    pub curves: SurvivalCurves,
    pub groups: Groups,
    pub generated: Generated,
}

impl Cohort {
    pub fn subjects(&self) -> Vec<SubjectId> {
        (0..self.outcomes.n()).map(|row| SubjectId::new(format!("{row:06}"))).collect()
    }

    pub fn report(&self, censoring: &CensoringCurve, settings: &EvaluationSettings) -> Option<EvaluationReport> {
        let groups = std::slice::from_ref(&self.groups);
        evaluate(&self.subjects(), &self.outcomes, &self.curves, censoring, groups, settings).ok()
    }
}
