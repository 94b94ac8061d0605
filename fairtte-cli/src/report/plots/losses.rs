//! The values reported after every epoch of the training, with the epoch whose model was kept.

use super::super::format::{count, number, short};
use super::super::{EpochPoint, ReportError};
use super::canvas::{AXIS, Anchor, Axes, BLUE, Figure, GROUP_COLOURS, INK, Ink, MUTED, Point, padded_range, ticks};

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 240.0;

/// The value of an epoch that a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossCurve {
    Train,
    ValidationNll,
    ValidationConcordance,
}

impl LossCurve {
    fn title(self) -> &'static str {
        match self {
            Self::Train => "training loss",
            Self::ValidationNll => "validation NLL",
            Self::ValidationConcordance => "validation C\u{1d57}\u{1d48}",
        }
    }

    fn of(self, epoch: &EpochPoint) -> Option<f64> {
        let value = match self {
            Self::Train => Some(epoch.train_loss),
            Self::ValidationNll => Some(epoch.validation_nll),
            Self::ValidationConcordance => epoch.validation_c_td,
        };
        value.filter(|value| value.is_finite())
    }
}

/// The figure of one curve, or `None` if no epoch has its number.
pub(crate) fn loss_curve(epochs: &[EpochPoint], curve: LossCurve, id: &str) -> Result<Option<String>, ReportError> {
    let values: Vec<(f64, f64)> =
        epochs.iter().filter_map(|epoch| Some((epoch.epoch as f64, curve.of(epoch)?))).collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return Ok(None) };
    let best = epochs.iter().find(|epoch| epoch.best);
    let x = padded_range(epochs.iter().map(|epoch| epoch.epoch as f64), 0.03);
    let y = padded_range(values.iter().map(|value| value.1), 0.08);
    let axes = Axes { left: 56.0, right: WIDTH - 10.0, top: 34.0, bottom: HEIGHT - 44.0, x, y };
    let colour = if curve == LossCurve::Train { BLUE } else { GROUP_COLOURS[1] };
    let (n, from, to) = (count(epochs.len(), "epoch"), number(first.1), number(last.1));
    let kept = best.map_or_else(String::new, |best| {
        let value = curve.of(best).map_or_else(|| "undefined".to_owned(), number);
        format!("; the kept epoch {} has {value}", best.epoch)
    });
    let figure = Figure {
        id,
        title: format!("{} by epoch", curve.title()),
        description: format!("{n}: from {from} to {to}{kept}"),
        width: WIDTH,
        height: HEIGHT,
    };
    let svg = figure.draw(|canvas| {
        canvas.text(curve.title(), (axes.left, 9.0), Anchor::Start, Ink::new(12.0, INK).bold())?;
        axes.draw_y(canvas, &ticks(&axes.y, 5), "")?;
        let whole = |tick: &f64| tick.fract() == 0.0;
        let epoch_ticks: Vec<f64> = ticks(&axes.x, 7).into_iter().filter(whole).collect();
        axes.draw_x(canvas, &epoch_ticks, "epoch")?;
        if let Some(best) = best {
            let x = axes.x_at(best.epoch as f64);
            canvas.dashed(&[(x, axes.top), (x, axes.bottom)], AXIS, 1.2, (3.0, 3.0))?;
            let (anchor, shift) =
                if x > f64::midpoint(axes.left, axes.right) { (Anchor::End, 3.0) } else { (Anchor::Start, -3.0) };
            let label = format!("kept: epoch {}", short(best.epoch as f64));
            canvas.text(&label, (x + shift, axes.top - 7.0), anchor, Ink::new(11.0, MUTED))?;
        }
        // The line breaks where an epoch has no value.
        for run in epochs.chunk_by(|a, b| curve.of(a).is_some() == curve.of(b).is_some()) {
            let points = run.iter().filter_map(|e| Some(axes.at(e.epoch as f64, curve.of(e)?)));
            let points: Vec<Point> = points.collect();
            match points.as_slice() {
                [] => {}
                [alone] => canvas.circle(*alone, 2.0, colour)?,
                several => canvas.line(several, colour, 1.8)?,
            }
        }
        if let Some((epoch, value)) = best.and_then(|best| Some((best.epoch as f64, curve.of(best)?))) {
            canvas.circle(axes.at(epoch, value), 4.0, colour)?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}
