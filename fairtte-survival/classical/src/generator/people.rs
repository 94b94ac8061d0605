//! Treatment, times and truth of one person.

use fairtte_metrics::seeds::stream;
use rand::RngExt as _;

use super::course::Course;
use super::covariates::{Covariates, standard_normal};
use super::settings::{FollowUpSettings, GeneratorSettings, Through};
use crate::ClassicalError;

/// The hazards of one person: of the event without and with treatment, and of the censoring with the observed treatment.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) event: [Course; 2],
    pub(super) censoring: Course,
}

/// What is drawn of one person.
pub(super) struct Drawn {
    pub(super) covariates: Vec<f64>,
    pub(super) unmeasured: f64,
    pub(super) subgroup: usize,
    pub(super) propensity: f64,
    pub(super) treated: bool,
    pub(super) potential_times: [f64; 2],
    pub(super) censoring_time: f64,
    pub(super) time: f64,
    pub(super) event: bool,
}

/// Draws person `row`; every kind of random number has a stream of its own.
pub(super) fn draw(
    settings: &GeneratorSettings,
    covariates: &Covariates,
    seed: u64,
    row: usize,
) -> Result<(Person, Drawn), ClassicalError> {
    let uniform = |what: &str| stream(seed, what, &[row as u64]).random::<f64>();
    let (mut x, mut z) = covariates.of(seed, row);
    let subgroup = subgroup_at(&settings.subgroups.shares, uniform("generator/subgroup"));
    if let Some(mean) = settings.subgroups.means.get(subgroup) {
        let normal = standard_normal(&mut stream(seed, "generator/of-subgroup", &[row as u64]));
        let value = mean + settings.subgroups.deviation * normal;
        match settings.subgroups.through {
            Through::Covariate => x[0] = value,
            Through::Unmeasured => z = value,
        }
    }
    let propensity = propensity(settings, &x, z);
    if !propensity.is_finite() {
        return Err(ClassicalError::Overflow { what: "probability of treatment", row, value: propensity });
    }
    let treated = uniform("generator/treatment") < propensity;
    let person = hazards(settings, &x, z, subgroup, treated, row)?;
    // 1 - u lies in (0, 1]: its logarithm is finite.
    let survived = 1.0 - uniform("generator/event");
    let potential_times = person.event.map(|course| course.inverse(-survived.ln()));
    let uncensored = dependent(survived, 1.0 - uniform("generator/censoring"), settings.censoring.dependence);
    let FollowUpSettings { maximum, accrual, .. } = settings.follow_up;
    let end = maximum - accrual * uniform("generator/entry");
    let censoring_time = person.censoring.inverse(-uncensored.ln()).min(end);
    let (time, event) = observed(potential_times[usize::from(treated)], censoring_time, &settings.follow_up);
    let drawn = Drawn {
        covariates: x,
        unmeasured: z,
        subgroup,
        propensity,
        treated,
        potential_times,
        censoring_time,
        time,
        event,
    };
    Ok((person, drawn))
}

/// The subgroup of a number in \[0, 1).
fn subgroup_at(shares: &[f64], uniform: f64) -> usize {
    let mut below = 0.0;
    let ends = shares.iter().map(|share| {
        below += share;
        below
    });
    ends.filter(|end| *end <= uniform).count().min(shares.len().saturating_sub(1))
}

/// alpha(x, z).
fn propensity(settings: &GeneratorSettings, x: &[f64], z: f64) -> f64 {
    let of = &settings.treatment;
    let sum: f64 = of.confounders.iter().map(|place| x[*place]).sum();
    let logit = (of.probability / (1.0 - of.probability)).ln() + of.weight * sum + of.unmeasured * z;
    1.0 / (1.0 + (-logit).exp())
}

fn hazards(
    settings: &GeneratorSettings,
    x: &[f64],
    z: f64,
    subgroup: usize,
    treated: bool,
    row: usize,
) -> Result<Person, ClassicalError> {
    let log_ratio = |by_group: &[f64], of_z: f64| by_group.get(subgroup).copied().unwrap_or(0.0) + of_z * z;
    let factor = log_ratio(&settings.subgroups.hazards, settings.unmeasured.hazard).exp();
    let event = [0.0, 1.0].map(|a| settings.hazard.course(a, x).times(factor));
    let factor =
        settings.censoring.factor * log_ratio(&settings.subgroups.censoring, settings.unmeasured.censoring).exp();
    let a = f64::from(u8::from(treated));
    let censoring = settings.censoring.hazard.course(a, x).times(factor);
    let all =
        [("hazard of the event", event[0]), ("hazard of the event", event[1]), ("hazard of the censoring", censoring)];
    for (what, course) in all {
        if let Some(value) = course.numbers().into_iter().find(|number| !number.is_finite()) {
            return Err(ClassicalError::Overflow { what, row, value });
        }
    }
    Ok(Person { event, censoring })
}

/// The probability v of no censoring up to the censoring time, given that u was the probability of no event up to the event time, from
/// an independent `fresh` in (0, 1]: conditional inversion of a Clayton copula, whose theta is 2 tau / (1 - tau) (Clayton 1978,
/// <https://doi.org/10.1093/biomet/65.1.141>). In (0, 1\].
fn dependent(u: f64, fresh: f64, tau: f64) -> f64 {
    if tau.abs() <= 0.0 {
        return fresh;
    }
    let theta = 2.0 * tau.abs() / (1.0 - tau.abs());
    // Negative dependence: the copula joins v with 1 - u.
    let of = if tau > 0.0 { u } else { (1.0 - u).max(f64::MIN_POSITIVE) };
    // v^-theta = 1 + u^-theta (fresh^(-theta / (1 + theta)) - 1), in logarithms, because u^-theta overflows.
    let excess = (-theta / (1.0 + theta) * fresh.ln()).exp_m1();
    let log_term = -theta * of.ln() + excess.ln();
    let log_sum = if log_term > 0.0 { log_term + (-log_term).exp().ln_1p() } else { log_term.exp().ln_1p() };
    (-log_sum / theta).exp().max(f64::MIN_POSITIVE)
}

/// Observed time, and whether the event was observed.
fn observed(event: f64, censoring: f64, settings: &FollowUpSettings) -> (f64, bool) {
    let Some(width) = settings.interval else {
        return (event.min(censoring), event <= censoring);
    };
    // A time in (k - 1, k] widths is recorded as k widths, the last one as the end of the follow-up.
    let recorded = |time: f64| ((time / width).ceil().max(1.0) * width).min(settings.maximum);
    let at_end = event > settings.maximum;
    let (event, censoring) = (if at_end { f64::INFINITY } else { recorded(event) }, recorded(censoring));
    (event.min(censoring), event <= censoring)
}
