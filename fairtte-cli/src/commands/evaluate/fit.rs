//! What a page says about a fitted estimator: the ratios of its columns, and what the samples of the fit say about it.

use fairtte_classical::{
    CauseSpecificSettings, CoxErrors, Estimator, FitChecks, FittedEstimator, Importance, ProportionalityTest, Ratio,
    Ratios,
};

use crate::CliError;
use crate::report::{number, p_relation};
use crate::run_folder::{OpenRun, read_json};

/// Columns of the permutation importance that are shown, the most important ones.
const MOST_COLUMNS: usize = 20;

/// Why intervals are too narrow where subjects have several samples, and the setting that mends it; none of standard errors that count
/// subjects. With every person twice, the others contain the truth in 81 to 84 of 100 cohorts (`docs/src/honesty.md`).
fn of_repeated(estimator: &Estimator) -> Option<String> {
    let other = match estimator {
        Estimator::Cox(settings) | Estimator::CauseSpecific(CauseSpecificSettings(settings)) => match settings.errors {
            CoxErrors::Robust => return None,
            CoxErrors::Plain => format!("estimator.{}.errors = \"robust\" counts subjects", estimator.name()),
        },
        _ => format!("{} has no errors of subjects", estimator.name()),
    };
    Some(format!("too narrow, because several samples of a subject count as independent ({other})"))
}

/// Name and text of each fact; none of a run that trained a network.
pub(super) fn facts_of_fit(open: &OpenRun, level: f64) -> Result<Vec<(String, String)>, CliError> {
    let Some(estimator) = &open.file.estimator else { return Ok(Vec::new()) };
    let path = open.folder.fit_checks();
    // A run of an older version has no checks.
    let checks = if path.exists() { read_json(&path)? } else { FitChecks::default() };
    let mut facts = Vec::new();
    let path = open.folder.only_estimator();
    // The file of a forest is large, and trees have no ratios.
    if !matches!(estimator, Estimator::Forest(_) | Estimator::Boosting(_)) && path.exists() {
        let fitted: FittedEstimator = read_json(&path)?;
        let repeated = of_repeated(estimator).filter(|_| checks.n_subjects < checks.n);
        let fact = |ratios| of_ratios(ratios, level, repeated.as_deref());
        facts.extend(fitted.ratios(level, &checks.columns).into_iter().map(fact));
    }
    facts.extend(of_checks(&checks));
    Ok(facts)
}

fn of_ratios(ratios: Ratios, level: f64, caution: Option<&str>) -> (String, String) {
    let term = |Ratio { name, value, interval }: &Ratio| match interval {
        Some((lower, upper)) => format!("{name} {} ({} to {})", number(*value), number(*lower), number(*upper)),
        None => format!("{name} {}", number(*value)),
    };
    let terms = ratios.terms.iter().map(term).collect::<Vec<_>>().join(", ");
    let intervals = if ratios.terms.iter().any(|term| term.interval.is_some()) {
        let caution = caution.map_or_else(String::new, |caution| format!(", {caution}"));
        format!("intervals at level {level}{caution}")
    } else {
        "no intervals, because the fit has no standard errors of them".to_owned()
    };
    (ratios.what, format!("{terms}; of a number per standard deviation, {intervals}"))
}

fn of_checks(checks: &FitChecks) -> Vec<(String, String)> {
    let fact = |name: &str, text: String| (name.to_owned(), text);
    let repeated = if checks.n_subjects < checks.n {
        ". Too small, because several samples of a subject count as independent"
    } else {
        ""
    };
    let proportional = checks
        .proportionality
        .as_ref()
        .map(|test| fact("proportional hazards", format!("{}{repeated}", of_proportionality(test))));
    let variation = checks.time_variation.map(|test| {
        fact(
            "change of coefficients",
            format!("p {} of Wald's test that none changes with time{repeated}", p_relation(test.p_value)),
        )
    });
    let error = checks.out_of_bag_error.map(|error| {
        fact("out-of-bag error", format!("{}, 1 - C of samples by the trees grown without them", number(error)))
    });
    let importance =
        checks.importance.as_ref().map(|found| fact("permutation importance", of_importance(found, &checks.columns)));
    let undefined = checks.undefined.iter().map(|reason| fact("not computed", reason.clone()));
    proportional.into_iter().chain(variation).chain(error).chain(importance).chain(undefined).collect()
}

fn of_proportionality(test: &ProportionalityTest) -> String {
    let of_column = |of: &fairtte_classical::CovariateProportionality| {
        format!("{} {}", of.name, p_relation(of.test.p_value).trim_start_matches("= "))
    };
    let columns = test.covariates.iter().map(of_column).collect::<Vec<_>>().join(", ");
    format!(
        "p {} of all columns together, by column {columns}: test of scaled Schoenfeld residuals. Where p is small, the effect changes \
         with time, and its ratio is a mean over the follow-up",
        p_relation(test.global.p_value)
    )
}

fn of_importance(importance: &Importance, names: &[String]) -> String {
    let mut columns: Vec<(usize, f64, f64)> =
        importance.columns.iter().enumerate().map(|(place, of)| (place, of.value, of.standard_error)).collect();
    columns.sort_by(|a, b| b.1.total_cmp(&a.1));
    let n_more = columns.len().saturating_sub(MOST_COLUMNS);
    let of_column = |(place, value, error): &(usize, f64, f64)| {
        let name = names.get(*place).map_or_else(|| place.to_string(), Clone::clone);
        format!("{name} {} ({})", number(*value), number(*error))
    };
    let shown = columns.iter().take(MOST_COLUMNS).map(of_column).collect::<Vec<_>>().join(", ");
    let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
    let is_idle = columns.iter().all(|(_, value, error)| value.abs() <= 0.0 && error.abs() <= 0.0);
    let idle = if is_idle {
        ". All are exactly 0: no tree splits on a column, so that the forest predicts the same for all; its nodes need fewer samples or \
         events (estimator.forest)"
    } else {
        ""
    };
    format!(
        "{shown}{more}: how far C of the samples that a tree was grown without falls (standard error over trees){idle}"
    )
}

#[cfg(test)]
mod tests {
    use fairtte_classical::{ColumnImportance, CoxSettings};

    use super::*;

    #[test]
    fn ratios_have_their_intervals_and_say_where_there_are_none() {
        let term = |interval| Ratio { name: "age".to_owned(), value: 1.5, interval };
        let of =
            |interval| of_ratios(Ratios { what: "odds ratios".to_owned(), terms: vec![term(interval)] }, 0.9, None);
        assert_eq!(
            of(Some((1.25, 2.0))),
            (
                "odds ratios".to_owned(),
                "age 1.500 (1.250 to 2.000); of a number per standard deviation, intervals at level 0.9".to_owned()
            )
        );
        assert!(of(None).1.starts_with("age 1.500; of a number per standard deviation, no intervals"));
        let ratios = Ratios { what: "hazard ratios".to_owned(), terms: vec![term(Some((1.25, 2.0)))] };
        let repeated = |name| of_repeated(&Estimator::by_name(name).expect("an estimator"));
        let text = of_ratios(ratios, 0.9, repeated("cox").as_deref()).1;
        assert!(text.contains("at level 0.9, too narrow, because several samples"), "{text}");
        assert!(text.contains("(estimator.cox.errors = \"robust\" counts subjects)"), "{text}");
        assert!(repeated("cause-specific").is_some_and(|text| text.contains("estimator.cause-specific.errors = ")));
        assert!(repeated("aft").is_some_and(|text| text.ends_with("(aft has no errors of subjects)")));
        let robust = CoxSettings { errors: CoxErrors::Robust, ..CoxSettings::default() };
        assert_eq!(of_repeated(&Estimator::Cox(robust)), None);
    }

    #[test]
    fn the_most_important_columns_come_first_and_the_rest_is_counted() {
        let column = |value: f64| ColumnImportance { value, standard_error: 0.001 };
        let importance = Importance { columns: (0..22).map(|k| column(f64::from(k) / 100.0)).collect(), n_trees: 9 };
        let names: Vec<String> = (0..22).map(|k| format!("x{k}")).collect();
        let text = of_importance(&importance, &names);
        assert!(text.starts_with("x21 0.210 (0.001), x20 0.200 (0.001), "), "{text}");
        assert!(text.contains("x2 0.020 (0.001), and 2 more: how far C"), "{text}");
        assert!(!text.contains("exactly 0"), "{text}");
        let idle = ColumnImportance { value: 0.0, standard_error: 0.0 };
        let text = of_importance(&Importance { columns: vec![idle; 2], n_trees: 9 }, &names);
        assert!(text.contains("All are exactly 0: no tree splits on a column"), "{text}");
    }

    #[test]
    fn what_is_not_there_makes_no_fact_and_what_could_not_be_computed_says_why() {
        assert_eq!(of_checks(&FitChecks::default()), []);
        let checks = FitChecks {
            out_of_bag_error: Some(0.25),
            undefined: vec!["permutation importance: no tree".to_owned()],
            ..FitChecks::default()
        };
        let facts = of_checks(&checks);
        assert_eq!(facts[0].0, "out-of-bag error");
        assert!(facts[0].1.starts_with("0.250, 1 - C"));
        assert_eq!(facts[1], ("not computed".to_owned(), "permutation importance: no tree".to_owned()));
    }
}
