//! The causal graph: attributes, health condition, event time, censoring time and visible severity of the people.
//!
//! Formulas and knobs are stated in the [module header](super). Every subject and every image draws from a separate
//! stream and always the same number of variates, so that a knob changes no other draw: two simulations with the same
//! seed and different knobs are paired.

use fairtte_images::drawn::{Attributes, Race};
use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use rand_distr::{Distribution as _, Exp1, StandardNormal};

use super::config::{BiasedAttribute, SimulationConfig};

/// Log hazard ratio of one standard deviation of Z; gives Harrell's C of 0.74 at 40 % censoring.
pub(super) const BETA: f64 = 1.02;
/// Weibull shape of the event time and of the censoring time.
const SHAPE: f64 = 2.0;
/// Weibull scale in years.
const SCALE_YEARS: f64 = 4.5;
/// Correlation of `X_Z` and Z in group 1 when `mi-time` is 1; gives Harrell's C of 0.56 there.
const CORRELATION_LEFT: f64 = 0.27;
/// Shift of `X_Z` in group 1, in standard deviations, when `image-features` is 1.
const SEVERITY_SHIFT: f64 = 1.0;
/// Rise of the log odds of censoring in group 1 when `censoring-rate` is 1.
const LOG_ODDS_RISE: f64 = 1.5;
/// Fraction of the follow-up over which later images are spread.
const VISIT_SPAN: f64 = 0.8;
/// Group 1 of age is older than this.
const AGE_THRESHOLD: u32 = 60;
/// Smallest time written, in the unit of the run.
const SMALLEST_TIME: f64 = 0.001;

/// One person of the graph; times in years from the first image.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub attributes: Attributes,
    /// Whether the person is in group 1 of the biased attribute.
    pub group_one: bool,
    /// Health condition, standard normal; higher is sicker.
    pub z: f64,
    /// Hazard of the event relative to z = 0 in group 0.
    pub true_risk: f64,
    pub event_time: f64,
    pub censoring_time: f64,
}

/// One image with its observed and hidden values; times in the unit of the run, from this image.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub subject: u64,
    pub visit: u64,
    pub person: Subject,
    /// Severity drawn into the picture.
    pub x_z: f64,
    /// Time from the first image to this one.
    pub elapsed: f64,
    pub event_time: f64,
    pub censoring_time: f64,
    pub time: f64,
    pub event: bool,
}

/// The graph with its knobs.
pub(super) struct CausalModel<'a> {
    config: &'a SimulationConfig,
    seed: u64,
    /// Log of the censoring hazard relative to the event hazard at z = 0, by group.
    log_censoring_hazard: [f64; 2],
}

impl<'a> CausalModel<'a> {
    /// Sets the knobs of a validated config; solves the censoring hazards.
    pub fn new(config: &'a SimulationConfig, seed: u64) -> Self {
        let base = config.censoring_rate_base;
        let rate_one = logistic((base / (1.0 - base)).ln() + LOG_ODDS_RISE * config.bias.censoring_rate);
        let log_censoring_hazard = [
            solve_log_censoring_hazard(BETA, base),
            solve_log_censoring_hazard(BETA - censoring_slope(config, true), rate_one),
        ];
        Self { config, seed, log_censoring_hazard }
    }

    /// Draws person `subject`, independently of all others.
    pub fn subject(&self, subject: u64) -> Subject {
        let mut rng = stream(self.seed, "simulate-subject", &[subject]);
        let mut uniform = || -> f64 { rng.random() };
        let uniforms = [uniform(), uniform(), uniform(), uniform(), uniform()];
        let attributes = draw_attributes(self.config, uniforms);
        let group_one = match self.config.biased_attribute {
            BiasedAttribute::Sex => attributes.female,
            BiasedAttribute::Age => attributes.age > AGE_THRESHOLD,
            BiasedAttribute::Race => attributes.race != Race::White,
        };
        let z: f64 = StandardNormal.sample(&mut rng);
        let event_draw: f64 = Exp1.sample(&mut rng);
        let censoring_draw: f64 = Exp1.sample(&mut rng);

        let halvings = if group_one { self.config.bias.time_distribution } else { 0.0 };
        let scale = SCALE_YEARS * (-halvings).exp2();
        let log_censoring =
            censoring_slope(self.config, group_one) * z + self.log_censoring_hazard[usize::from(group_one)];
        Subject {
            attributes,
            group_one,
            z,
            true_risk: (BETA * z + SHAPE * halvings * std::f64::consts::LN_2).exp(),
            event_time: scale * (event_draw * (-BETA * z).exp()).powf(1.0 / SHAPE),
            censoring_time: scale * (censoring_draw * (-log_censoring).exp()).powf(1.0 / SHAPE),
        }
    }

    /// Draws image `visit` (from 0) of person `subject` (from 0).
    pub fn sample(&self, subject: u64, visit: u64) -> Sample {
        let person = self.subject(subject);
        let mut rng = stream(self.seed, "simulate-visit", &[subject, visit]);
        let noise: f64 = StandardNormal.sample(&mut rng);
        let jitter: f64 = rng.random();

        let bias = &self.config.bias;
        let (lost, shift) =
            if person.group_one { (bias.mi_time, SEVERITY_SHIFT * bias.image_features) } else { (0.0, 0.0) };
        let correlation = self.config.signal * (1.0 - (1.0 - CORRELATION_LEFT) * lost);
        let x_z = correlation * person.z + (1.0 - correlation * correlation).sqrt() * noise + shift;

        let event = person.event_time <= person.censoring_time;
        let follow_up = person.event_time.min(person.censoring_time);
        let elapsed = follow_up * elapsed_share(visit, self.config.images_per_subject, jitter);
        let unit = self.config.time_unit.per_year();
        let in_unit = |years: f64| ((years - elapsed) * unit).max(SMALLEST_TIME);
        Sample {
            subject,
            visit,
            x_z,
            elapsed: elapsed * unit,
            event_time: in_unit(person.event_time),
            censoring_time: in_unit(person.censoring_time),
            time: (in_unit(follow_up) * 1000.0).round() / 1000.0,
            event,
            person,
        }
    }
}

/// The attributes of the body that is drawn for a person: `own`, or, without traces, others of the same distribution.
pub(super) fn drawn_attributes(config: &SimulationConfig, seed: u64, subject: u64, own: Attributes) -> Attributes {
    if config.traces {
        return own;
    }
    let mut rng = stream(seed, "simulate-appearance", &[subject]);
    let mut uniform = || -> f64 { rng.random() };
    draw_attributes(config, [uniform(), uniform(), uniform(), uniform(), uniform()])
}

/// Log hazard ratio of censoring per standard deviation of Z.
fn censoring_slope(config: &SimulationConfig, group_one: bool) -> f64 {
    if group_one { -2.0 * BETA * config.bias.mi_censoring } else { 0.0 }
}

/// Share of the follow-up that has passed at image `visit`: 0 at the first, then increasing, always below `VISIT_SPAN`.
fn elapsed_share(visit: u64, images_per_subject: usize, jitter: f64) -> f64 {
    if visit == 0 {
        return 0.0;
    }
    VISIT_SPAN * ((visit - 1) as f64 + jitter) / (images_per_subject - 1) as f64
}

/// Attributes from five uniforms on [0, 1): sex, side of the age threshold, age, side of race, race.
fn draw_attributes(config: &SimulationConfig, [sex, older, age, not_white, race]: [f64; 5]) -> Attributes {
    let share = |attribute, usual| if config.biased_attribute == attribute { config.group_share } else { usual };
    // The density of age falls from the threshold to both sides.
    let spread = age.powf(1.5);
    let age = if older < share(BiasedAttribute::Age, 0.5) {
        AGE_THRESHOLD + 1 + whole_years(29.0 * spread)
    } else {
        AGE_THRESHOLD - whole_years(40.0 * spread)
    };
    let race = match race {
        _ if not_white >= share(BiasedAttribute::Race, 0.4) => Race::White,
        race if race < 0.5 => Race::Black,
        race if race < 0.8 => Race::Asian,
        _ => Race::Other,
    };
    Attributes { female: sex < share(BiasedAttribute::Sex, 0.5), age, race }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an age between 0 and 100")]
fn whole_years(years: f64) -> u32 {
    years as u32
}

pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Solves E[logistic(slope Z - h)] = 1 - `rate` for h, Z standard normal.
///
/// With two Weibull times of one shape, P(T <= C | Z) = logistic(slope Z - h), slope being the difference of the
/// two log hazard ratios. The left side falls from 1 to 0 in h, so bisection finds the root.
fn solve_log_censoring_hazard(slope: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if event_rate(slope, middle) > 1.0 - rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// E[logistic(slope Z - h)] by the trapezoidal rule on [-8, 8], exact to rounding for so smooth a function.
fn event_rate(slope: f64, h: f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for step in -200..=200 {
        let z = f64::from(step) * 0.04;
        let weight = (-0.5 * z * z).exp();
        sum += weight * logistic(slope * z - h);
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_subjects_are_censored_when_both_hazards_are_equal() {
        // By symmetry of Z, h = 0 gives 1/2 whatever the slope.
        assert!(solve_log_censoring_hazard(1.0, 0.5).abs() < 1e-12);
        assert!(solve_log_censoring_hazard(3.0, 0.5).abs() < 1e-12);
        // Without slope h is the log odds of censoring.
        assert!((solve_log_censoring_hazard(0.0, 0.75) - 3f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn later_images_are_taken_later_and_before_the_end_of_follow_up() {
        let config = SimulationConfig { images_per_subject: 4, ..SimulationConfig::default() };
        let model = CausalModel::new(&config, 3);
        for subject in 0..200 {
            let samples: Vec<_> = (0..4).map(|visit| model.sample(subject, visit)).collect();
            assert!(samples[0].elapsed == 0.0);
            for pair in samples.windows(2) {
                assert!(pair[1].elapsed > pair[0].elapsed && pair[1].time <= pair[0].time && pair[1].time > 0.0);
                assert!((pair[0].elapsed + pair[0].time - pair[1].elapsed - pair[1].time).abs() < 2e-3);
                assert_eq!(pair[0].event, pair[1].event);
                assert!(pair[0].person.z.to_bits() == pair[1].person.z.to_bits());
                assert_eq!(pair[0].person.attributes, pair[1].person.attributes);
            }
        }
    }

    #[test]
    fn a_knob_moves_only_what_it_names_and_only_in_group_one() {
        let unbiased = SimulationConfig::default();
        let mut biased = unbiased.clone();
        biased.bias.mi_time = 1.0;
        biased.bias.image_features = 1.0;
        let (model, biased_model) = (CausalModel::new(&unbiased, 5), CausalModel::new(&biased, 5));
        for subject in 0..100 {
            let (a, b) = (model.sample(subject, 0), biased_model.sample(subject, 0));
            assert!(a.time.to_bits() == b.time.to_bits() && a.event == b.event);
            assert_eq!(a.person.attributes, b.person.attributes);
            assert_eq!(a.x_z.to_bits() == b.x_z.to_bits(), !a.person.group_one);
        }
    }

    #[test]
    fn without_traces_bodies_have_the_attributes_of_others_and_nothing_else_changes() {
        let shown = SimulationConfig::default();
        let not_shown = SimulationConfig { traces: false, ..SimulationConfig::default() };
        let (visible, hidden) = (CausalModel::new(&shown, 5), CausalModel::new(&not_shown, 5));
        let (mut agree, mut female, mut old) = (0, 0, 0);
        for subject in 0..4_000 {
            let (own, other) = (visible.sample(subject, 0), hidden.sample(subject, 0));
            assert_eq!((own.person.attributes, own.event), (other.person.attributes, other.event));
            assert!(own.x_z.to_bits() == other.x_z.to_bits() && own.time.to_bits() == other.time.to_bits());
            let of_person = own.person.attributes;
            assert_eq!(drawn_attributes(&shown, 5, subject, of_person), of_person);
            let body = drawn_attributes(&not_shown, 5, subject, of_person);
            assert_eq!(
                body,
                drawn_attributes(&not_shown, 5, subject, of_person),
                "the same in every film of the person"
            );
            agree += u32::from(body.female == of_person.female);
            female += u32::from(body.female);
            old += u32::from(body.age > AGE_THRESHOLD);
        }
        // Half of 4,000, standard error 32: bodies are as varied, and say nothing about the person.
        for (what, n) in [("same sex", agree), ("female", female), ("old", old)] {
            assert!((1_870..=2_130).contains(&n), "{what}: {n}");
        }
    }

    #[test]
    fn group_share_and_the_biased_attribute_choose_group_one() {
        for (attribute, share) in
            [(BiasedAttribute::Sex, 0.2), (BiasedAttribute::Age, 0.3), (BiasedAttribute::Race, 0.7)]
        {
            let config =
                SimulationConfig { biased_attribute: attribute, group_share: share, ..SimulationConfig::default() };
            let model = CausalModel::new(&config, 11);
            let found = (0..4000).filter(|&subject| model.subject(subject).group_one).count() as f64 / 4000.0;
            assert!((found - share).abs() < 0.025, "{attribute:?}: {found} of {share}");
            assert!((0..500).all(|subject| (20..=90).contains(&model.subject(subject).attributes.age)));
        }
    }
}
