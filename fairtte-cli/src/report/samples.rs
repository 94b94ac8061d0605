//! The page of a contact sheet: pictures of what enters a model, by group and part.

use serde::Serialize;

use super::ReportError;
use super::format::{number, short};
use super::template::{environment, fill_in};

const TEMPLATE: &str = include_str!("samples.html");

/// Everything that the page shows.
#[derive(Serialize)]
pub(crate) struct SamplesPage {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) is_augmented: bool,
    pub(crate) is_volume: bool,
    pub(crate) ranges: Vec<RangeRow>,
    pub(crate) attributes: Vec<OfAttribute>,
    /// What black and white are, and what was changed.
    pub(crate) notes: Vec<String>,
}

/// The values of all pictures of a part.
#[derive(Serialize)]
pub(crate) struct RangeRow {
    pub(crate) name: &'static str,
    /// Pictures or volumes, each once.
    pub(crate) n: usize,
    /// As they enter the model.
    pub(crate) model: Numbers,
    /// With the scaling undone; `None` where every picture has a scale of its own.
    pub(crate) unit: Option<Numbers>,
}

/// Smallest value, mean and largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
}

/// The three as text.
impl Serialize for Numbers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.min, self.mean, self.max].map(number).serialize(serializer)
    }
}

#[derive(Serialize)]
pub(crate) struct OfAttribute {
    pub(crate) name: String,
    pub(crate) groups: Vec<OfGroup>,
}

#[derive(Serialize)]
pub(crate) struct OfGroup {
    pub(crate) name: String,
    pub(crate) parts: Vec<OfPart>,
}

#[derive(Serialize)]
pub(crate) struct OfPart {
    pub(crate) name: &'static str,
    /// All samples of the group in the part.
    pub(crate) n: usize,
    pub(crate) samples: Vec<Shown>,
}

/// One sample.
#[derive(Serialize)]
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) outcome: String,
    pub(crate) group: String,
    pub(crate) views: Vec<View>,
}

/// A sample as it enters the model once.
#[derive(Serialize)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) range: Numbers,
    /// A picture, or the slices of a volume.
    pub(crate) planes: Vec<Plane>,
}

/// A picture.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Plane {
    /// Name of the slice; empty for a picture.
    pub(crate) name: &'static str,
    /// Height on the page.
    pub(crate) height: usize,
    /// Width on the page.
    pub(crate) width: usize,
    /// The PNG as a `data:` address.
    pub(crate) uri: String,
}

/// `event at 3.2 years`, `censored at 3.2 years`.
pub(crate) fn outcome(time: f64, event: bool, unit: &str) -> String {
    let what = if event { "event" } else { "censored" };
    format!("{what} at {} {unit}", short(time)).trim_end().to_owned()
}

/// The HTML page: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if the template fails, which no input should cause.
pub(crate) fn render_samples(page: &SamplesPage) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, page)
}
