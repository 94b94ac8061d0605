//! The causes of gaps for the report of a study: the sources of bias in the data, and the terms of Theorem 1. Both need trained
//! networks, which predict again in the folder `chosen/` of the study.

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_data::predictions::{CurveRepairs, PredictionTable};
use fairtte_data::{Cohort, read_cohort};
use fairtte_metrics::bias::{BiasSettings, GapBoundSettings, curve_distances, gap_bound};
use fairtte_metrics::{GroupId, Groups, SurvivalCurves};
use ndarray::{Array2, Axis};

use super::intervals::{Curves, run_folder, test_part};
use crate::CliError;
use crate::args::{BIAS_COMPONENTS, FeatureLayer, FeaturePart};
use crate::commands::bias::{OfRun, measure_run};
use crate::commands::features::own;
use crate::commands::predict::member::Member;
use crate::error::sentence;
use crate::pooled::{at_times, common_times};
use crate::progress::Files;
use crate::report::bias::SourceSummary;
use crate::run_folder::{OpenRun, read_json, write_json};
use crate::scored::Scored;
use crate::study::{Bound, Causes, Members, Model, Plan, Setting, Study};

/// What the study file asks for; nothing without `[bias]`. A setting that cannot be measured has the reason.
///
/// # Errors
/// [`CliError`] if a file of the study cannot be read or written.
pub(super) fn measure(plan: &Plan, study: &Study<'_>) -> Result<Causes, CliError> {
    let Some(block) = plan.study().bias else { return Ok(Causes::default()) };
    let mut causes = Causes::default();
    let models = study.base_models()?;
    let bar = Files::new("measuring sources of bias");
    for (done, (setting, model)) in models.iter().enumerate() {
        bar.update(done, models.len());
        let found = match model {
            Some(model) => sources(plan, setting, *model, block.features),
            None => Ok(Err("C^td is undefined in all its base models".to_owned())),
        };
        causes.sources.insert(setting.clone(), found.unwrap_or_else(|error| Err(sentence(&error))));
    }
    bar.update(models.len(), models.len());
    if !block.bound {
        return Ok(causes);
    }
    if plan.study().trainings_per_trial() > 1 {
        let reason = "with folds or repeats a trial is several models";
        causes.bounds = models.into_iter().map(|(setting, _)| (setting, Err(reason.to_owned()))).collect();
        return Ok(causes);
    }
    let bar = Files::new("comparing all models");
    for (done, (setting, _)) in models.iter().enumerate() {
        bar.update(done, models.len());
        let found = match study.members(setting)? {
            Ok(members) => bound(plan, setting, &members).unwrap_or_else(|error| Err(sentence(&error))),
            Err(reason) => Err(reason),
        };
        causes.bounds.insert(setting.clone(), found);
    }
    bar.update(models.len(), models.len());
    Ok(causes)
}

/// Why a training takes no part.
const NO_MODEL: &str = "a training that is needed kept no model (execute.keep, or `study clean`)";

/// The sources of an attribute; kept beside the run, because a report is written again and again.
fn sources(
    plan: &Plan,
    setting: &Setting,
    model: Model,
    layer: FeatureLayer,
) -> Result<Result<SourceSummary, String>, CliError> {
    let Some(run) = run_folder(plan, model.place)? else { return Ok(Err(NO_MODEL.to_owned())) };
    let path = run.join(format!("sources-{}.json", layer.name()));
    let all: Vec<SourceSummary> = if path.exists() {
        read_json(&path)?
    } else {
        let what = OfRun { layer, part: FeaturePart::All, components: BIAS_COMPONENTS };
        // Intervals are not shown.
        let settings = BiasSettings { n_replicates: 0, seed: plan.study().seed, ..BiasSettings::default() };
        let all = measure_run(&run, what, settings)?.summaries();
        write_json(&path, &all)?;
        all
    };
    let of = all.into_iter().find(|summary| summary.attribute == setting.attribute);
    Ok(of.ok_or_else(|| format!("the run has no attribute \"{}\"", setting.attribute)))
}

/// The terms of Theorem 1 for the models of a setting.
fn bound(plan: &Plan, setting: &Setting, members: &Members) -> Result<Result<Bound, String>, CliError> {
    let mut fitted = Vec::new();
    for model in &members.fitted {
        let Some(run) = run_folder(plan, model.place)? else { return Ok(Err(NO_MODEL.to_owned())) };
        match by_own_group(&run, &setting.attribute)? {
            Ok(scored) => fitted.push(scored),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    let (mut scored, mut base, mut n_by_group) = (Vec::new(), None, 0);
    for model in &members.models {
        let Some(run) = run_folder(plan, model.place)? else { return Ok(Err(NO_MODEL.to_owned())) };
        let member = Member::open(&run, None, None)?;
        if member.needs_group() {
            n_by_group += 1;
            continue;
        }
        if *model == members.base {
            base = Some(scored.len());
        }
        scored.push(test_part(&run, Curves::Kept(model.epoch))?);
    }
    let Some(base) = base else { return Ok(Err("the base strategy predicts by the group of a sample".to_owned())) };
    let first = &fitted[0];
    let samples = |scored: &Scored| scored.cohort.sample_ids(&scored.rows);
    if scored.iter().chain(&fitted).any(|other| samples(other) != samples(first)) {
        return Ok(Err("its models have other test samples".to_owned()));
    }
    let grid = common_times(scored.iter().chain(&fitted).map(|scored| scored.curves.grid()));
    let reading = plan.resolve(members.base.place)?.run.evaluation.reading;
    let on_grid = |scored: &Scored| -> Result<SurvivalCurves, CliError> {
        let curves = &scored.curves;
        let block = at_times(curves.grid(), curves.survival().to_owned(), &grid, reading)?;
        Ok(SurvivalCurves::new(grid.clone(), block)?)
    };
    let models = scored.iter().map(on_grid).collect::<Result<Vec<_>, _>>()?;
    let fits = fitted.iter().map(on_grid).collect::<Result<Vec<_>, _>>()?;
    let groups = first.groups.iter().find(|groups| groups.attribute() == setting.attribute);
    let Some(groups) = groups else { return Ok(Err(format!("no run has the attribute \"{}\"", setting.attribute))) };
    let settings = GapBoundSettings { seed: plan.study().seed, ..GapBoundSettings::default() };
    let subjects = first.cohort.subjects(&first.rows);
    let terms = match gap_bound(&models, &fits[0], groups, &subjects, &settings) {
        Ok(terms) => terms,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let floor = match fits.get(1) {
        Some(second) => Some(means(&curve_distances(&fits[0], second)?, groups)),
        None => None,
    };
    Ok(Ok(Bound { levels: groups.levels().to_vec(), terms, base, n_by_group, floor }))
}

/// The mean of a value in every group.
fn means(values: &[f64], groups: &Groups) -> Vec<f64> {
    let mean = |group: GroupId| {
        let rows = groups.rows(group);
        rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64
    };
    groups.ids().map(mean).collect()
}

/// The curves of every test sample by the network that was trained on its own group; the reason if a group has none.
fn by_own_group(run: &Path, attribute: &str) -> Result<Result<Scored, String>, CliError> {
    let member = Member::open(run, None, None)?;
    let (data, rows) = own(&member, run, FeaturePart::Test)?;
    let rows = rows.unwrap_or_else(|| data.cohort.all_rows());
    let levels = levels_of(run, &data.cohort, &rows, attribute)?;
    let loader = member.loader(&data.inputs, &data.cohort, vec![None; data.cohort.n()])?;
    let mut by_level: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    // A sample without the attribute takes no part, but needs a curve: that of any network.
    let known = levels.iter().flatten().next();
    for (position, level) in levels.iter().enumerate() {
        by_level.entry(level.as_ref().or(known).ok_or_else(no_group)?).or_default().push(position);
    }
    let trained = &member.record.network(run)?.cells.levels;
    let times = member.times();
    let mut survival = Array2::zeros((rows.len(), times.len()));
    for (level, positions) in by_level {
        let network = trained.iter().position(|known| known == level).and_then(|place| u32::try_from(place).ok());
        let of_level: Vec<usize> = positions.iter().map(|position| rows[*position]).collect();
        let curves = match network {
            Some(group) => member.network()?.survival_by(GroupId(group), &loader, &of_level)?,
            None => None,
        };
        let Some(curves) = curves else { return Ok(Err(format!("no network was trained on the group {level}"))) };
        for (position, curve) in positions.iter().zip(curves.axis_iter(Axis(0))) {
            survival.row_mut(*position).assign(&curve);
        }
    }
    let samples = data.cohort.sample_ids(&rows);
    let table = PredictionTable { samples, grid: times.to_vec(), survival, repairs: CurveRepairs::default() };
    test_part(run, Curves::Given(table)).map(Ok)
}

fn no_group() -> CliError {
    CliError::Bug("a setting without groups".to_owned())
}

/// The level of these rows; `None` where the attribute is missing.
fn levels_of(run: &Path, cohort: &Cohort, rows: &[usize], attribute: &str) -> Result<Vec<Option<String>>, CliError> {
    let (known, groups) = read_cohort(&OpenRun::read(run)?.folder.cohort())?;
    let groups = groups.into_iter().find(|groups| groups.attribute() == attribute).ok_or_else(no_group)?;
    let level = |group: &Option<GroupId>| group.map(|group| groups.levels()[group.index()].clone());
    let of: BTreeMap<_, _> = known
        .samples
        .iter()
        .zip(groups.membership())
        .map(|(sample, group)| (&sample.sample_id, level(group)))
        .collect();
    Ok(rows.iter().map(|row| of.get(&cohort.samples[*row].sample_id).cloned().flatten()).collect())
}
