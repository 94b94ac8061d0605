//! What one unit of a column multiplies, by every estimator that says so: hazards, incidences, odds or times.
//!
//! Intervals are Wald's of the logarithm, exp(b -/+ z standard errors). A penalised fit of the elastic net or of the logistic hazard has no
//! standard errors, and its ratios have no interval.

use crate::cox::{CoxCoefficient, CoxElasticNetModel, CoxModel, CoxTimeVaryingModel, TimeFunction};
use crate::logistic_hazard::{Interval, LogisticHazard, TimeEffects};
use crate::{Estimate, FittedEstimator};

/// Ratios of one kind, for a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    /// What they are: `hazard ratios`.
    pub what: String,
    /// By term, in the order of the fit.
    pub terms: Vec<Ratio>,
}

/// What one unit of a column multiplies.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Name of the term.
    pub name: String,
    /// The ratio, > 0.
    pub value: f64,
    /// Lower and upper end of its interval; `None` where the fit gives no standard errors.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// The exponential of a coefficient.
    fn new(name: &str, estimate: &Estimate, level: f64) -> Self {
        let interval = estimate.ratio(level).map(|(_, lower, upper)| (lower, upper));
        Self { name: name.to_owned(), value: estimate.value.exp(), interval }
    }
}

impl FittedEstimator {
    /// Ratios per unit of every column with Wald intervals of this level, of the models that have them: hazard ratios of Cox models
    /// (one table per cause, or per time if coefficients change with time), of Fine & Gray's regression those of the subdistribution
    /// hazard, odds ratios of a logistic hazard, and ratios of times. Trees have none. `columns` are the names of the columns `[p]`;
    /// models that keep their own names use these.
    ///
    /// ```
    /// use fairtte_classical::{Estimator, SurvivalEstimator as _};
    /// use fairtte_metrics::Outcomes;
    /// use ndarray::array;
    ///
    /// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, true, true, true])?;
    /// let x = array![[0.0], [1.0], [0.0], [1.0]];
    /// let fitted = Estimator::by_name("aft").ok_or("no such estimator")?.fit(&x, &outcomes)?;
    /// let ratios = fitted.ratios(0.95, &["drug".to_owned()]);
    /// assert_eq!((ratios[0].what.as_str(), ratios[0].terms[0].name.as_str()), ("ratios of times", "drug"));
    /// assert!(ratios[0].terms[0].value > 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ratios(&self, level: f64, columns: &[String]) -> Vec<Ratios> {
        let found = match self {
            Self::Cox(model) => vec![of_cox("hazard ratios".to_owned(), model, level)],
            Self::CoxElasticNet(model) => vec![of_elastic_net(model, level)],
            Self::CoxTimeVarying(model) => of_time_varying(model, level),
            Self::LogisticHazard(model) => of_logistic_hazard(model, level, columns),
            Self::Aft(model) => {
                vec![Ratios { what: "ratios of times".to_owned(), terms: named(&model.coefficients, columns, level) }]
            }
            Self::FineGray(model) => {
                let term = |c: &crate::FineGrayCoefficient| {
                    let (value, lower, upper) = c.hazard_ratio(level)?;
                    Some(Ratio { name: c.name.clone(), value, interval: Some((lower, upper)) })
                };
                vec![Ratios {
                    what: format!("subdistribution hazard ratios of cause {}", model.cause),
                    terms: model.coefficients.iter().filter_map(term).collect(),
                }]
            }
            Self::CauseSpecific(fitted) => {
                let models = fitted.causes.iter().filter_map(|cause| Some((cause, fitted.model(*cause)?)));
                models.map(|(cause, model)| of_cox(format!("hazard ratios of cause {cause}"), model, level)).collect()
            }
            Self::Forest(_) | Self::Boosting(_) => Vec::new(),
        };
        found.into_iter().filter(|ratios| !ratios.terms.is_empty()).collect()
    }
}

fn of_coefficients(coefficients: &[CoxCoefficient], level: f64) -> Vec<Ratio> {
    coefficients.iter().map(|c| Ratio::new(&c.name, &c.estimate(), level)).collect()
}

fn of_cox(what: String, model: &CoxModel, level: f64) -> Ratios {
    Ratios { what, terms: of_coefficients(&model.coefficients, level) }
}

/// Of the columns that were kept.
fn of_elastic_net(model: &CoxElasticNetModel, level: f64) -> Ratios {
    let kept: Vec<CoxCoefficient> = model.coefficients.iter().filter(|term| term.value.abs() > 0.0).cloned().collect();
    let (n, of) = (kept.len(), model.coefficients.len());
    Ratios {
        what: format!("hazard ratios of {n} of {of} columns, the others have none"),
        terms: of_coefficients(&kept, level),
    }
}

/// Before and after every step, of other functions at the quartiles of the event times.
fn of_time_varying(model: &CoxTimeVaryingModel, level: f64) -> Vec<Ratios> {
    let times: Vec<(String, f64)> = match &model.settings().function {
        TimeFunction::Steps(steps) => {
            let first = steps.first().map(|step| (format!("hazard ratios up to {step}"), 0.0));
            // A step acts from the next larger number on.
            first
                .into_iter()
                .chain(steps.iter().map(|step| (format!("hazard ratios after {step}"), step.next_up())))
                .collect()
        }
        TimeFunction::Identity | TimeFunction::Log => {
            // A model of an older version has the different event times alone.
            let of_times = |k: usize| model.times[(model.times.len() - 1) * k / 4];
            let quartiles = model.event_quartiles.unwrap_or_else(|| [1, 2, 3].map(of_times));
            let mut named =
                quartiles.map(|quartile| (format!("hazard ratios at {}", rounded(quartile)), quartile)).to_vec();
            named.dedup_by(|a, b| a.0 == b.0);
            named
        }
    };
    let at = |(what, time): (String, f64)| {
        // A time of the fit is finite and not negative.
        let coefficients = model.coefficients_at(time).unwrap_or_default();
        Ratios { what, terms: of_coefficients(&coefficients, level) }
    };
    times.into_iter().map(at).collect()
}

/// A number of four digits for a sentence.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Of all intervals, or of the first and the last if effects change from one to the next.
fn of_logistic_hazard(model: &LogisticHazard, level: f64, columns: &[String]) -> Vec<Ratios> {
    if model.time_coefficients.is_empty() {
        let what = "odds ratios of the hazard of an interval".to_owned();
        return vec![Ratios { what, terms: named(&model.coefficients, columns, level) }];
    }
    // In an interval without an event nothing is known of the hazard.
    let has_event = |interval: &Interval| interval.n_events > 0;
    let first = model.intervals.iter().position(has_event).map_or(1, |place| place + 1);
    let last = model.intervals.iter().rposition(has_event).map_or(model.intervals.len(), |place| place + 1);
    let in_interval = |(what, number): (&str, usize)| {
        let g = match model.settings.effects {
            TimeEffects::Constant => 0.0,
            TimeEffects::Linear => number as f64,
            TimeEffects::Logarithmic => (number as f64).ln(),
        };
        // The covariance of b and c is not kept.
        let sum = |(b, c): (&Estimate, &Estimate)| Estimate { value: b.value + g * c.value, standard_error: None };
        let sums: Vec<Estimate> = model.coefficients.iter().zip(&model.time_coefficients).map(sum).collect();
        let what = format!("odds ratios of the hazard of the {what} interval with an event");
        Ratios { what, terms: named(&sums, columns, level) }
    };
    let mut ratios = vec![in_interval(("first", first))];
    if last != first {
        ratios.push(in_interval(("last", last)));
    }
    ratios
}

fn named(estimates: &[Estimate], columns: &[String], level: f64) -> Vec<Ratio> {
    let name = |place: usize| columns.get(place).cloned().unwrap_or_else(|| place.to_string());
    estimates.iter().enumerate().map(|(place, of)| Ratio::new(&name(place), of, level)).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use fairtte_metrics::Outcomes;
    use ndarray::Array2;
    use serde_json::Value;

    use super::*;
    use crate::cox::tests::{golden, numbers, of_r};
    use crate::{
        AftSettings, CoxElasticNetSettings, CoxSamples, CoxTimeVaryingSettings, Estimator, LambdaChoice,
        LogisticHazardSettings, SurvivalEstimator as _,
    };

    const Z: f64 = 1.959_963_984_540_054;

    fn assert_ratio(found: &Ratio, coefficient: f64, error: Option<f64>) {
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6 * expected, "{found} {expected}");
        close(found.value, coefficient.exp());
        assert_eq!(found.interval.is_some(), error.is_some(), "{found:?}");
        if let Some(((lower, upper), error)) = found.interval.zip(error) {
            close(lower, (coefficient - Z * error).exp());
            close(upper, (coefficient + Z * error).exp());
        }
    }

    fn recorded(text: &str) -> (Value, Array2<f64>, Outcomes) {
        let golden: Value = serde_json::from_str(text).unwrap();
        let rows: Vec<Vec<f64>> = golden["x"].as_array().unwrap().iter().map(numbers).collect();
        let x = Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| rows[row][column]);
        let event = golden["event"].as_array().unwrap().iter().map(|event| event.as_bool().unwrap()).collect();
        let outcomes = Outcomes::new(numbers(&golden["time"]), event).unwrap();
        (golden, x, outcomes)
    }

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|place| format!("column {place}")).collect()
    }

    /// Coefficients and errors of lifelines 0.30.3, `tests/golden/aft.json`.
    #[test]
    fn ratios_of_times_are_those_of_lifelines() {
        let (golden, x, outcomes) = recorded(include_str!("../tests/golden/aft.json"));
        for of in golden["fits"].as_array().unwrap() {
            let settings: AftSettings = serde_json::from_value(
                serde_json::json!({ "distribution": of["distribution"], "penalty": of["penalty"] }),
            )
            .unwrap();
            let fitted = Estimator::Aft(settings).fit(&x, &outcomes).unwrap();
            let found = fitted.ratios(0.95, &names(x.ncols()));
            assert_eq!((found.len(), found[0].what.as_str()), (1, "ratios of times"));
            assert_eq!(found[0].terms[1].name, "column 1");
            let (coefficients, errors) = (numbers(&of["coefficients"]), numbers(&of["standard-errors"]));
            assert_eq!(found[0].terms.len(), coefficients.len());
            for (place, term) in found[0].terms.iter().enumerate() {
                // The first error is that of the intercept.
                assert_ratio(term, coefficients[place], Some(errors[place + 1]));
            }
        }
    }

    /// Coefficients and errors of statsmodels 0.15.0, with a penalty of scikit-learn 1.9.1, `tests/golden/logistic_hazard.json`.
    #[test]
    fn odds_ratios_are_those_of_statsmodels_and_have_no_interval_with_a_penalty() {
        let (golden, x, outcomes) = recorded(include_str!("../tests/golden/logistic_hazard.json"));
        for of in golden["fits"].as_array().unwrap() {
            let settings: LogisticHazardSettings = serde_json::from_value(serde_json::json!({
                "cut-points": { "given": golden["cuts"] },
                "effects": of["effects"], "censored": of["censored"], "penalty": of["penalty"],
            }))
            .unwrap();
            let fitted = Estimator::LogisticHazard(settings).fit(&x, &outcomes).unwrap();
            let found = fitted.ratios(0.95, &names(x.ncols()));
            let (both, errors) = (numbers(&of["coefficients"]), numbers(&of["standard-errors"]));
            let n_alphas = of["alphas"].as_array().unwrap().len();
            let p = x.ncols();
            if of["effects"] == "constant" {
                for (place, term) in found[0].terms.iter().enumerate() {
                    assert_ratio(term, both[place], errors.get(n_alphas + place).copied());
                }
                assert_eq!((found.len(), found[0].terms.len()), (1, p));
            } else {
                let last = golden["cuts"].as_array().unwrap().len() as f64;
                let g = |number: f64| if of["effects"] == "linear" { number } else { number.ln() };
                for (of_interval, number) in found.iter().zip([1.0, last]) {
                    for (place, term) in of_interval.terms.iter().enumerate() {
                        assert_ratio(term, both[place] + g(number) * both[p + place], None);
                    }
                }
                assert_eq!(found.len(), 2);
                assert!(
                    found[0].what.ends_with("first interval with an event")
                        && found[1].what.ends_with("last interval with an event")
                );
            }
        }
    }

    /// Of a step function the first hazard ratio is the coefficient itself (lifelines 0.30.3), of t the sum of two (R, survival 3.5-3).
    #[test]
    fn hazard_ratios_that_change_with_time_are_those_of_lifelines_and_r() {
        let golden = golden();
        let recorded = &golden.values["time-varying"];
        let fitted = |function: TimeFunction| {
            let settings = CoxTimeVaryingSettings { function, ..CoxTimeVaryingSettings::default() };
            let outcomes = golden.outcomes("tied");
            let samples = CoxSamples::new(&golden.x, &outcomes).named(&golden.names);
            FittedEstimator::CoxTimeVarying(settings.fit_samples(&samples).unwrap())
        };
        let found = fitted(TimeFunction::Steps(numbers(&recorded["knots"]))).ratios(0.95, &[]);
        let whats: Vec<&str> = found.iter().map(|of| of.what.as_str()).collect();
        assert_eq!(whats, ["hazard ratios up to 3", "hazard ratios after 3", "hazard ratios after 6"]);
        let (values, errors) = (numbers(&recorded["steps"]["coefficients"]), numbers(&recorded["steps"]["errors"]));
        for place in 0..4 {
            assert_eq!(found[0].terms[place].name, golden.names[place]);
            assert_ratio(&found[0].terms[place], values[place], Some(errors[place]));
            let [after_3, after_6] = [1, 2].map(|of| found[of].terms[place].value);
            // A change of every covariate after 3, and another after 6.
            let [first, second] = [4 + 2 * place, 5 + 2 * place].map(|term| values[term]);
            assert!((after_3 / (values[place] + first).exp() - 1.0).abs() < 1e-6, "{place}");
            assert!((after_6 / (values[place] + first + second).exp() - 1.0).abs() < 1e-6, "{place}");
        }
        let found = fitted(TimeFunction::Identity).ratios(0.95, &[]);
        let values = numbers(&of_r()["cox"]["varying-identity"]["coefficients"]);
        assert_eq!(found.len(), 3);
        for of in &found {
            let time: f64 = of.what.strip_prefix("hazard ratios at ").unwrap().parse().unwrap();
            for (place, term) in of.terms.iter().enumerate() {
                assert!((term.value / (values[place] + time * values[4 + place]).exp() - 1.0).abs() < 1e-6);
                let (lower, upper) = term.interval.unwrap();
                assert!(lower < term.value && term.value < upper);
            }
        }
    }

    #[test]
    fn an_elastic_net_gives_the_ratios_of_the_columns_that_it_keeps_and_trees_give_none() {
        let golden = golden();
        let outcomes = golden.outcomes("distinct");
        let settings = CoxElasticNetSettings { choice: LambdaChoice::Fixed(0.1), ..CoxElasticNetSettings::default() };
        let model = settings.fit_samples(&CoxSamples::new(&golden.x, &outcomes).named(&golden.names)).unwrap();
        let kept: Vec<(String, f64)> = model
            .coefficients
            .iter()
            .filter(|term| term.value != 0.0)
            .map(|term| (term.name.clone(), term.value))
            .collect();
        assert!(!kept.is_empty() && kept.len() < golden.names.len(), "{kept:?}");
        let found = FittedEstimator::CoxElasticNet(model).ratios(0.95, &[]);
        assert_eq!(found[0].what, format!("hazard ratios of {} of 4 columns, the others have none", kept.len()));
        for (term, (name, value)) in found[0].terms.iter().zip(&kept) {
            assert_eq!(term.name, *name);
            assert_ratio(term, *value, None);
        }
        let forest = Estimator::by_name("boosting").unwrap().fit(&golden.x, &outcomes).unwrap();
        assert_eq!(forest.ratios(0.95, &[]), []);
    }
}
