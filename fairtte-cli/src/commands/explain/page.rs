//! The page of an explanation: pictures beside their maps, or the columns of a table.

use fairtte_data::HostBatch;

use super::files::{Record, SampleRecord};
use super::maps::{Maps, Method, Parts};
use super::{Explained, TOLERATED_GAP, View};
use crate::CliError;
use crate::args::Fill;
use crate::report::explain::{Bar, Column, ExplainPage, MapView, Sample, render_explain};
use crate::report::samples::{Plane, outcome};
use crate::samples::picture::{Display, Ranges, Section, axial, middle};

/// Raises the risk, lowers it: vermilion and blue of Okabe & Ito, which the colour-blind can tell apart.
const COLOURS: [[u8; 3]; 2] = [[213, 94, 0], [0, 114, 178]];
/// Share of the colour at the ends of the scale.
const STRONGEST: f64 = 0.9;
/// Side in pixels of the page up to which a small picture is magnified.
const SIDE: usize = 192;
/// Share of the pixels within the ends of the scale: single pixels do not decide how dark a map is.
const WITHIN: f64 = 0.99;

pub(super) fn render(view: &View<'_>, explained: &[Explained], record: &Record) -> Result<String, CliError> {
    let display = view.member.record.intensity.as_ref().map(|scale| Display::new(scale).magnified(SIDE));
    let sample = |(one, record): (&Explained, &SampleRecord)| sample(view, one, record, display.as_ref());
    let samples = explained.iter().zip(&record.samples).map(sample).collect::<Result<Vec<_>, _>>()?;
    let page = ExplainPage {
        title: record.name.clone(),
        subtitle: format!(
            "{}, {} head, weights of epoch {}; {}",
            record.strategy, record.head, record.epoch, record.data
        ),
        question: question(record.columns.is_some(), &format!("{} {}", record.horizon, record.time_unit)),
        is_table: record.columns.is_some(),
        is_volume: explained.first().is_some_and(|one| one.sample.shape.len() == 5),
        has_control: explained.iter().any(|one| !one.controls.is_empty()),
        methods: view.plan.methods.iter().map(|method| (method.title(), sentence(*method, record))).collect(),
        shades: display.as_ref().map(|display| display.words().to_owned()),
        samples,
    };
    Ok(render_explain(&page)?)
}

fn question(is_table: bool, horizon: &str) -> String {
    let input = if is_table { "columns of the table" } else { "parts of the picture" };
    format!("Which {input} does the predicted risk by {horizon} depend on?")
}

/// What the values of a method are.
fn sentence(method: Method, record: &Record) -> String {
    let zero = match (record.fill, record.columns.is_some()) {
        (Fill::ImageMean, _) => "the mean of the image",
        (Fill::Zero, true) => "0: a number at its training mean, a category as none",
        (Fill::Zero, false) => {
            "0 as the network reads it, the training mean of the intensities if they are standardised"
        }
    };
    match (method, record.patch, record.stride) {
        (Method::Occlusion, Some(patch), Some(stride)) => format!(
            "By how much the risk falls if a patch is replaced by {zero}: patches of {patch} pixels a side, {stride} apart. A \
             pixel shows the mean over the patches that cover it (Zeiler & Fergus 2014)."
        ),
        (Method::Occlusion, ..) => {
            format!("By how much the risk falls if a column is replaced by {zero} (Zeiler & Fergus 2014, for columns).")
        }
        (Method::IntegratedGradients, ..) => format!(
            "The gradient of the risk on the straight line from a baseline to the input, in {} steps, times the distance from the \
             baseline, which is {zero}. All values add up to the risk minus the risk of the baseline (Sundararajan et al. 2017).",
            record.steps
        ),
    }
}

fn sample(
    view: &View<'_>,
    one: &Explained,
    record: &SampleRecord,
    display: Option<&Display>,
) -> Result<Sample, CliError> {
    let own = display.map(|display| display.ranges(&one.sample));
    let drawn = display.zip(own.as_ref());
    let all = one.maps.iter().map(|map| (map, false)).chain(one.controls.iter().map(|map| (map, true)));
    let mut maps = Vec::new();
    for (at, (map, is_control)) in all.enumerate() {
        let planes = match drawn {
            Some((display, own)) => overlays(display, own, &one.sample, map)?,
            None => Vec::new(),
        };
        let correlation = record.maps[at].rank_correlation;
        maps.push(MapView {
            name: if is_control {
                format!("{}, random weights", map.method.title())
            } else {
                map.method.title().to_owned()
            },
            end: scale_end(map),
            sum: map.baseline.map(|_| map.values.iter().sum()),
            remarks: remarks(map, correlation, is_control),
            planes,
        });
    }
    let level = view.shown.and_then(|groups| {
        let group = groups.membership()[one.row]?;
        Some(format!("{} {}", groups.attribute(), groups.levels()[group.index()]))
    });
    let time = record.time.zip(record.event);
    let planes = drawn.map(|(display, own)| display.planes(&one.sample, own)).transpose()?;
    Ok(Sample {
        id: record.sample_id.clone(),
        risk: record.risk,
        horizon: format!("{} {}", view.arguments.horizon, view.member.record.time_unit).trim_end().to_owned(),
        outcome: time.map(|(time, event)| outcome(time, event, &view.member.record.time_unit)),
        group: level,
        part: record.part.clone(),
        planes: planes.unwrap_or_default(),
        maps,
        columns: columns(view, one),
    })
}

fn remarks(map: &Maps, correlation: Option<f64>, is_control: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(baseline) = map.baseline {
        let gap = map.gap().unwrap_or_default();
        remarks.push(format!("risk of the baseline {baseline:.4}, completeness to {gap:.1e}"));
        if map.relative_gap().is_some_and(|gap| gap > TOLERATED_GAP) {
            remarks.push("the sum misses the difference of the risks: more steps are needed".to_owned());
        }
    }
    if is_control {
        remarks.push(format!("risk {:.3}", map.risk));
        remarks.push(match correlation {
            Some(correlation) => format!("rank correlation with the trained network {correlation:.2}"),
            None => "no rank correlation: one of the maps is constant".to_owned(),
        });
    }
    remarks
}

/// The absolute value of the strongest colour: that of 99 % of the pixels is at most this.
fn scale_end(map: &Maps) -> f64 {
    let mut sizes: Vec<f64> = map.values.iter().map(|value| value.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let place = (WITHIN * sizes.len() as f64) as usize;
    // A map of which nearly all pixels are 0 is shown by its largest.
    sizes.get(place).copied().filter(|end| *end > 0.0).unwrap_or_else(|| map.largest())
}

/// The picture tinted by a map, or the middle slices of a volume and the axial slice with most of the map, also without it.
fn overlays(display: &Display, own: &Ranges, sample: &HostBatch, map: &Maps) -> Result<Vec<Plane>, CliError> {
    let end = scale_end(map);
    let tint = |place: usize| {
        let share = if end > 0.0 { map.values[place] / end } else { 0.0 };
        (COLOURS[usize::from(share < 0.0)], STRONGEST * share.abs().min(1.0))
    };
    let tinted = |section: &Section| display.tinted(sample, own, section, tint);
    let mut planes = middle(&sample.shape)?.iter().map(tinted).collect::<Result<Vec<_>, _>>()?;
    if let [depth, height, width] = *map.shape.as_slice() {
        let mass =
            |d: &usize| map.values[d * height * width..(d + 1) * height * width].iter().map(|v| v.abs()).sum::<f64>();
        let most = (0..depth).max_by(|a, b| mass(a).total_cmp(&mass(b)).then(b.cmp(a))).unwrap_or(0);
        planes.push(tinted(&axial("axial, most of the map", [depth, height, width], most))?);
        planes.push(display.plane(sample, own, &axial("the same slice", [depth, height, width], most))?);
    }
    Ok(planes)
}

/// The columns of a table with the values of every map, the largest first.
fn columns(view: &View<'_>, one: &Explained) -> Vec<Column> {
    let Parts::Columns(names) = &view.plan.parts else { return Vec::new() };
    let maps: Vec<&Maps> = one.maps.iter().chain(&one.controls).collect();
    let bar = |map: &&Maps, column: usize| {
        let (value, largest) = (map.values[column], map.largest());
        Bar { value, percent: if largest > 0.0 { 50.0 * value.abs() / largest } else { 0.0 } }
    };
    let column = |(at, (name, features)): (usize, &(String, Vec<usize>))| {
        let input: Vec<String> = features.iter().map(|feature| format!("{:.2}", one.sample.pixels[*feature])).collect();
        let bars = maps.iter().map(|map| bar(map, at)).collect();
        Column { name: name.clone(), input: input.join(", "), bars }
    };
    let mut columns: Vec<Column> = names.iter().enumerate().map(column).collect();
    columns.sort_by(|a, b| b.bars[0].value.abs().total_cmp(&a.bars[0].value.abs()));
    columns
}

#[cfg(test)]
mod tests {
    use super::question;

    #[test]
    fn the_question_names_the_inputs_and_the_horizon() {
        assert_eq!(
            question(false, "3 years"),
            "Which parts of the picture does the predicted risk by 3 years depend on?"
        );
        assert_eq!(
            question(true, "58 days"),
            "Which columns of the table does the predicted risk by 58 days depend on?"
        );
    }
}
