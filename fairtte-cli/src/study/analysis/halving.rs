//! What successive halving saved, and whether a trial that it stopped would have been chosen.

use std::collections::BTreeSet;

use super::{Section, Study, columns, sheet, strategies};
use crate::CliError;
use crate::plural::counted;
use crate::report::sheet::Cell;
use crate::run_folder::RunFolder;
use crate::study::halving::{Ladder, Next};
use crate::study::points::Points;

/// The section; none without halving.
pub(super) fn section(study: &Study<'_>) -> Result<Option<Section>, CliError> {
    let plan = study.plan;
    let (Some(halving), Some(ladder)) = (&plan.study().halving, &study.points.ladder) else { return Ok(None) };
    let mut rows = Vec::new();
    for cell in 0..plan.cells().len() {
        for decision in ladder.decisions(cell) {
            rows.push(vec![
                Cell::Text(decision.cell.clone()),
                Cell::Count(decision.epochs),
                Cell::Count(decision.entrants.len()),
                Cell::Count(decision.promoted.len()),
                Cell::Count(decision.audited.len()),
            ]);
        }
    }
    let saved = Saved::of(study, ladder)?;
    let n_audited = study.points.audited.len();
    let mut verdict = vec![saved.sentence()];
    verdict.push(if n_audited == 0 {
        "No stopped trial was trained to the end, so nothing is known of what stopping did to the choice.".to_owned()
    } else {
        let (n_chosen, n) = would_be_chosen(study)?;
        format!(
            "{} that had stopped {} trained to the end as an audit, and never chosen: in {n_chosen} of {n} choices, one of them \
             would have been chosen.",
            counted(n_audited, "trial"),
            if n_audited == 1 { "was" } else { "were" }
        )
    });
    let header = columns(&["cell", "epochs", "compared", "continued", "audited"]);
    let note = format!(
        "At every rung the trials of a cell are sorted by the best {} of the validation part so far and by that of the worst group, never by \
         the gap; {} of them continue. Audited: trained to the end although they had stopped ({} % of them).",
        study.labels()[0],
        fraction(halving.keep),
        100.0 * halving.audit
    );
    Ok(Some(Section {
        id: "halving",
        title: "Successive halving".to_owned(),
        question: "What did stopping trials early save, and did it change what is chosen?".to_owned(),
        verdict,
        sheets: vec![sheet("halving", "Trials at every rung.", &header, rows, &[&note])],
        charts: Vec::new(),
    }))
}

/// `a third`, or `0.4`.
fn fraction(keep: f64) -> String {
    if (keep - 1.0 / 3.0).abs() < 1e-9 { "a third".to_owned() } else { format!("a share of {keep}") }
}

/// Epochs that were and were not trained.
struct Saved {
    n_stopped: usize,
    n: usize,
    trained: usize,
    /// What the stopped trainings would have needed: the mean of those that ended.
    not_trained: f64,
}

impl Saved {
    fn of(study: &Study<'_>, ladder: &Ladder) -> Result<Self, CliError> {
        let (mut stopped, mut ended) = (Vec::new(), Vec::new());
        for (_, id) in study.plan.trainings() {
            let folder = study.plan.folder().trial(id);
            let n = RunFolder::new(folder.path()).epochs()?.len();
            if folder.scores().exists() {
                ended.push(n);
            } else if ladder.next(id) == Next::Stopped {
                stopped.push(n);
            }
        }
        let mean = ended.iter().sum::<usize>() as f64 / ended.len().max(1) as f64;
        Ok(Self {
            n_stopped: stopped.len(),
            n: study.plan.trainings().count(),
            trained: ended.iter().chain(&stopped).sum(),
            not_trained: stopped.iter().map(|n| (mean - *n as f64).max(0.0)).sum(),
        })
    }

    fn sentence(&self) -> String {
        let Self { n_stopped, n, trained, not_trained } = self;
        let share = 100.0 * not_trained / (not_trained + *trained as f64).max(1.0);
        format!(
            "{n_stopped} of {} stopped early. {} were trained; about {not_trained:.0} more, {share:.0} % of all, were saved, assuming that the others would have needed \
             as many as those that ended.",
            counted(*n, "training"),
            counted(*trained, "epoch")
        )
    }
}

/// Choices of a model per setting, strategy and metric that would be an audited trial if it were allowed; and all choices.
fn would_be_chosen(study: &Study<'_>) -> Result<(usize, usize), CliError> {
    let audited: BTreeSet<usize> = study.points.audited.iter().map(|trial| trial.place).collect();
    let trials = study.points.trials.iter().chain(&study.points.audited).cloned().collect();
    let all = Points {
        measures: study.points.measures,
        trials,
        audited: Vec::new(),
        levels: study.points.levels.clone(),
        ladder: None,
    };
    let with = Study::new(study.plan, &all);
    let chosen = strategies::choose(&with)?;
    let places: Vec<usize> = chosen.iter().flat_map(strategies::ChosenOf::models).map(|model| model.place).collect();
    Ok((places.iter().filter(|place| audited.contains(place)).count(), places.len()))
}
