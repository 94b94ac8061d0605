//! Errors of treatment effects: curves of everybody without and with treatment, predicted by a model, against the true ones.
//!
//! The hazard ratio is that of the interval with the median event time, survival is compared at its end, and restricted means up to the end
//! of the interval with the upper quartile. Errors of ratios are those of their logarithms.

use fairtte_classical::generator::{Arm, GeneratorSettings};
use fairtte_metrics::effects::{Contrast, ContrastErrors, Contrasts, ErrorSummary, MeanRule, contrast_errors};
use fairtte_metrics::{GroupId, Groups};

use super::scenarios::{confounded, scenarios, subgrouped, unmeasured};
use super::{Failure, Halves, Source, average, header, line, names_of_models, ranks};

const EFFECTS: [&str; 4] =
    ["log hazard ratio", "difference of survival", "difference of restricted means", "log relative risk"];
/// Place of the difference of survival among them.
const SURVIVAL: usize = 1;

/// By scenario the root mean square errors of the four effects, their bias under confounding, and the errors of subgroups.
pub fn tables(source: &Source, repeats: u64) -> Result<(), Failure> {
    let models = names_of_models();
    header(&format!("scenario, mean of the true {}: root mean square errors", EFFECTS.join(" / ")), &models);
    let mut errors: [Vec<Vec<f64>>; 4] = Default::default();
    for (name, kind, settings) in scenarios() {
        let found = averaged(source, repeats, &settings, |of| vec![of.mean_truth, of.root_mean_square])?;
        let truth: Vec<String> = (0..EFFECTS.len()).map(|effect| format!("{:.3}", found[0][2 * effect])).collect();
        line(
            &format!("{name} ({kind}), {}", truth.join(" / ")),
            found.iter().map(|of| joined(of.iter().skip(1).step_by(2), 3)),
        );
        for (effect, rows) in errors.iter_mut().enumerate() {
            rows.push(found.iter().map(|of| of[2 * effect + 1]).collect());
        }
    }
    for (name, values) in EFFECTS.into_iter().zip(errors) {
        ranks(name, values)?;
    }
    for (first, rows) in
        [("confounders, weight (measured)", confounded()), ("correlation, weight (unmeasured)", unmeasured())]
    {
        header(&format!("{first}: bias of the log hazard ratio / difference of survival"), &models);
        for (name, settings) in rows {
            let found = averaged(source, repeats, &settings, |of| vec![of.bias])?;
            line(&name, found.iter().map(|of| joined(of[..=SURVIVAL].iter(), 3)));
        }
    }
    for (effect, what) in EFFECTS.iter().enumerate().take(SURVIVAL + 1) {
        header(&format!("means, share of s = 1: bias, root mean square error of the {what}, s = 0 / s = 1"), &models);
        for (name, settings) in subgrouped() {
            let found = by_subgroup(source, repeats, &settings, effect)?;
            let cell = |of: &Vec<f64>| format!("{:+.3}, {:.3} / {:+.3}, {:.3}", of[0], of[1], of[2], of[3]);
            line(&name, found.iter().map(cell));
        }
    }
    Ok(())
}

fn joined<'a>(values: impl Iterator<Item = &'a f64>, digits: usize) -> String {
    values.map(|value| format!("{value:.digits$}")).collect::<Vec<_>>().join(" / ")
}

/// Of every model, `of` of the errors of each effect in turn, mean over repeats.
fn averaged(
    source: &Source,
    repeats: u64,
    settings: &GeneratorSettings,
    of: impl Fn(&ErrorSummary) -> Vec<f64>,
) -> Result<Vec<Vec<f64>>, Failure> {
    average(repeats, |seed| {
        let of_model = |errors: &[ContrastErrors; 4]| {
            let found: Result<Vec<_>, Failure> =
                errors.iter().map(|errors| Ok(of(&defined(errors.overall)?))).collect();
            Ok(found?.concat())
        };
        errors_of_all(source, settings, seed)?.iter().map(of_model).collect()
    })
}

/// Of every model, bias and root mean square error of an effect in the first, then in the second subgroup, mean over repeats.
fn by_subgroup(
    source: &Source,
    repeats: u64,
    settings: &GeneratorSettings,
    effect: usize,
) -> Result<Vec<Vec<f64>>, Failure> {
    average(repeats, |seed| {
        let of_model = |errors: &[ContrastErrors; 4]| {
            let of_group = |group: &Option<ErrorSummary>| -> Result<[f64; 2], Failure> {
                let group = defined(*group)?;
                Ok([group.bias, group.root_mean_square])
            };
            let found: Result<Vec<_>, Failure> = errors[effect].groups.iter().map(of_group).collect();
            Ok(found?.concat())
        };
        errors_of_all(source, settings, seed)?.iter().map(of_model).collect()
    })
}

fn defined(errors: Option<ErrorSummary>) -> Result<ErrorSummary, Failure> {
    Ok(errors.ok_or("an effect is undefined for everybody")?)
}

/// Errors of the four effects by model.
fn errors_of_all(
    source: &Source,
    settings: &GeneratorSettings,
    seed: u64,
) -> Result<Vec<[ContrastErrors; 4]>, Failure> {
    let halves = Halves::draw(source, settings, seed)?;
    let Halves { cohort, others, grid, median, quartile, .. } = &halves;
    let of = |arm| Ok::<_, Failure>(cohort.survival(arm, grid)?.select(others));
    let truth = Contrasts::new(of(Arm::Untreated)?, of(Arm::Treated)?)?;
    // The interval k ends at the time k + 1 of the grid, which starts at 0.
    let effects = [
        Contrast::HazardRatio { interval: median - 1 },
        Contrast::SurvivalDifference { place: *median },
        Contrast::RestrictedMeanDifference { until: grid[*quartile], rule: MeanRule::Trapezoid },
        Contrast::RelativeRisk { place: *median },
    ];
    let groups = if cohort.subgroup.is_empty() { None } else { Some(subgroups(&halves)?) };
    let both = halves.predictions(&[cohort.inputs_if(false), cohort.inputs_if(true)])?;
    let of_model = |curves: Vec<fairtte_metrics::SurvivalCurves>| {
        let [untreated, treated] = <[_; 2]>::try_from(curves).map_err(|_| "a model did not predict both arms")?;
        let estimate = Contrasts::new(untreated, treated)?;
        let errors = |effect| contrast_errors(&truth, &estimate, effect, groups.as_ref());
        let [ratio, survival, mean, risk] = effects.map(errors);
        Ok([ratio?, survival?, mean?, risk?])
    };
    both.into_iter().map(of_model).collect()
}

fn subgroups(halves: &Halves) -> Result<Groups, Failure> {
    let of = |row: &usize| Ok(Some(GroupId(u32::try_from(halves.cohort.subgroup[*row])?)));
    let membership: Result<Vec<_>, Failure> = halves.others.iter().map(of).collect();
    Ok(Groups::new("s", vec!["0".to_owned(), "1".to_owned()], membership?)?)
}
