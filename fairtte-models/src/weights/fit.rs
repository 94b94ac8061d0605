//! Compares a file of weights with a backbone: which tensor goes where, what is missing, what is left over.
//!
//! The layout names the key of every parameter; a linear layer's weight is transposed, the first convolution may change its
//! number of input channels (`channels.rs`), positions of another grid are resampled (`positions.rs`). A file fits if
//! every parameter is found with its shape, except those that the layout allows a file to lack, and if nothing is left
//! over except what the layout leaves out (classifier, decoder): leftover keys reveal a deeper network of the same
//! family.

use std::collections::HashMap;

use super::channels::{Gray, MOST_CHANNELS, adapt};
use super::export::EXPORT_MARK;
use super::layouts::{Layout, Names, names};
use super::parameters::{Parameter, parameters, replace};
use super::pickle::shown;
use super::select::{NATIVE_MARK, Selected, select};
use super::tensor::{ElementType, StoredTensor};
use super::{WeightFile, positions};
use crate::{Backbone, BackboneKind, ModelError};

/// Differences that the keys do not show.
const SAME_NETWORK: &str = "torchvision's and timm's resnet18 have the same keys and are the same network, but differ in how \
inputs were prepared and in their terms: give the layout if you know it";
const SAME_GROUP: &str =
    "assumed to be MAE or RETFound, whose weights are below \"model\"; those of DeiT are too, under other terms";
const SAME_KEYS: &str = "timm's tf_efficientnet_b0 has the same keys but is another network (batch norm eps 1e-3, padding at \
one side): use only files of efficientnet_b0";

/// How a tensor of the file becomes a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    None,
    Transpose,
    Channels { from: usize, to: usize, rule: Gray },
    Positions { from: usize, to: usize },
}

/// A parameter with the tensor it is read from.
#[derive(Clone, Debug)]
struct Match {
    parameter: Parameter,
    /// Index into the tensors of the file.
    tensor: usize,
    change: Change,
}

/// A key of the file whose tensor has another shape or type than the parameter it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongShape {
    /// Key in the file.
    pub key: String,
    /// Name of the parameter.
    pub name: String,
    /// What the file has.
    pub found: String,
    /// What the parameter needs.
    pub expected: String,
}

/// The comparison of a file of weights with a backbone.
#[derive(Debug)]
pub struct Fit<'a> {
    file: &'a WeightFile,
    backbone: &'static str,
    layout: Layout,
    /// Whether the layout was recognised from the keys.
    is_told: bool,
    /// Whether `fairtte weights export` wrote the file.
    is_export: bool,
    group: Vec<String>,
    matched: Vec<Match>,
    missing: Vec<(String, String, bool)>,
    unexpected: Vec<String>,
    left_out: Vec<String>,
    wrong_shape: Vec<WrongShape>,
    notes: Vec<String>,
}

impl<'a> Fit<'a> {
    /// Compares `file` with `backbone`, whose shapes decide.
    ///
    /// # Errors
    /// [`ModelError::WeightsDoNotFit`] if the layout cannot be recognised, or is not one of this backbone. Missing or
    /// wrong tensors are not an error here, but in [`require`](Self::require).
    pub fn new(file: &'a WeightFile, backbone: &Backbone, layout: Layout, gray: Gray) -> Result<Self, ModelError> {
        let kind = backbone.kind();
        let unfit = |problem: String| ModelError::WeightsDoNotFit {
            path: file.path().to_owned(),
            backbone: kind.name(),
            problem,
        };
        let asked = layout;
        let Selected { layout, group, keys, others, is_export } = select(file, asked).map_err(unfit)?;
        let is_told = asked == Layout::Auto && !is_export;
        if layout == Layout::Native || is_export {
            of_backbone(file, kind).map_err(unfit)?;
        }
        let table = names(layout, kind)
            .ok_or_else(|| unfit(format!("its keys are in the layout {}, which has no such network", layout.name())))?;
        let mut fit = Self {
            file,
            backbone: kind.name(),
            layout,
            is_told,
            is_export,
            group,
            matched: Vec::new(),
            missing: Vec::new(),
            unexpected: Vec::new(),
            left_out: Vec::new(),
            wrong_shape: Vec::new(),
            notes: Vec::new(),
        };
        let mut left: HashMap<&str, usize> = keys.iter().map(|(key, tensor)| (key.as_str(), *tensor)).collect();
        for parameter in parameters(backbone) {
            let Some(key) = (table.key)(kind, &parameter.name) else {
                fit.missing.push((parameter.name, "no key of this layout".to_owned(), false));
                continue;
            };
            if let Some(tensor) = left.remove(key.as_str()) {
                fit.place(key, parameter, tensor, &table, gray);
            } else {
                let allowed = table.may_lack.iter().any(|start| parameter.name.starts_with(start));
                fit.missing.push((parameter.name, key, allowed));
            }
        }
        let left = keys.iter().map(|(key, _)| key).filter(|key| left.contains_key(key.as_str()));
        if is_export {
            fit.sort_out(left, &table);
            fit.left_out.extend(others);
        } else {
            fit.sort_out(others.iter().chain(left), &table);
        }
        let note = match (layout, kind) {
            (Layout::Timm, BackboneKind::EfficientNetB0) => Some(SAME_KEYS),
            (_, BackboneKind::ResNet18) if is_told && layout != Layout::Native => Some(SAME_NETWORK),
            (Layout::Mae, _) if is_told => Some(SAME_GROUP),
            _ => None,
        };
        fit.notes.extend(note.map(str::to_owned));
        Ok(fit)
    }

    fn place(&mut self, key: String, parameter: Parameter, tensor: usize, table: &Names, gray: Gray) {
        let stored = &self.file.tensors()[tensor];
        if let Some(change) = self.change(&parameter, stored, table, gray) {
            match change {
                Change::Channels { from, to, rule } => self.notes.push(rule.sentence(from, to)),
                Change::Positions { from, to } => self.notes.push(format!(
                    "positions: a grid of {from} x {from} in the file, {to} x {to} here; bicubic interpolation"
                )),
                Change::None | Change::Transpose => {}
            }
            self.matched.push(Match { parameter, tensor, change });
            return;
        }
        let mut expected = parameter.shape.clone();
        if parameter.is_linear && self.is_transposed() {
            expected.reverse();
        }
        self.wrong_shape.push(WrongShape {
            key,
            name: parameter.name,
            found: format!("{} {:?}", stored.element.name(), stored.shape),
            expected: format!("{expected:?}"),
        });
    }

    fn change(&self, parameter: &Parameter, stored: &StoredTensor, table: &Names, gray: Gray) -> Option<Change> {
        let (here, there) = (parameter.shape.as_slice(), stored.shape.as_slice());
        if matches!(stored.element, ElementType::Other { .. }) {
            return None;
        }
        if parameter.is_linear && self.is_transposed() {
            return (here.iter().rev().eq(there)).then_some(Change::Transpose);
        }
        if here == there {
            return Some(Change::None);
        }
        if parameter.name == table.first
            && let ([out, to, inner @ ..], [out_there, from, inner_there @ ..]) = (here, there)
            && (out, inner) == (out_there, inner_there)
        {
            let (from, to) = (*from, *to);
            return gray.rule(from, to).map(|rule| Change::Channels { from, to, rule });
        }
        if parameter.name == "positions"
            && let ([1, to, width], [1, from, width_there]) = (here, there)
            && width == width_there
        {
            return Some(Change::Positions { from: positions::grid(*from)?, to: positions::grid(*to)? });
        }
        None
    }

    /// Whether the file has the weights of linear layers as torch does.
    fn is_transposed(&self) -> bool {
        self.layout != Layout::Native || self.is_export
    }

    /// Sorts the leftover keys of the file: counters of batch norm and keys that the layout leaves out, or unexpected
    /// keys.
    fn sort_out<'k>(&mut self, left: impl Iterator<Item = &'k String>, table: &Names) {
        for key in left {
            let is_counter = key.ends_with(".num_batches_tracked");
            if is_counter || table.dropped.iter().any(|start| key.starts_with(start)) {
                self.left_out.push(key.clone());
            } else {
                self.unexpected.push(key.clone());
            }
        }
    }

    /// Number of input channels of the weights in `file` for the backbone `kind`; `None` if its first convolution is not
    /// found.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the number of channels is not 1 to 1024.
    pub fn channels_of(file: &WeightFile, kind: BackboneKind, layout: Layout) -> Result<Option<usize>, ModelError> {
        let unfit = |problem| {
            let path = file.path().to_owned();
            ModelError::WeightsDoNotFit { path, backbone: kind.name(), problem }
        };
        let Selected { layout, keys, .. } = select(file, layout).map_err(unfit)?;
        let Some(table) = names(layout, kind) else { return Ok(None) };
        let first = (table.key)(kind, table.first);
        let found = keys.iter().find(|(key, _)| Some(key) == first.as_ref());
        match found.and_then(|(key, tensor)| Some((key, *file.tensors()[*tensor].shape.get(1)?))) {
            Some((key, n)) if !(1..=MOST_CHANNELS).contains(&n) => {
                Err(unfit(format!("{} has {n} input channels, expected 1 to {MOST_CHANNELS}", shown(key))))
            }
            found => Ok(found.map(|(_, n)| n)),
        }
    }

    /// The layout of the file.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the layout was recognised from the keys, so that the file may be of another program with the same keys.
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether the file has the networks of a run of this program.
    pub(super) fn is_export(&self) -> bool {
        self.is_export
    }

    /// Keys of the dictionaries that the tensors were taken from.
    pub fn group(&self) -> &[String] {
        &self.group
    }

    /// Names of the parameters that the file gives.
    pub fn matched(&self) -> Vec<&str> {
        self.matched.iter().map(|found| found.parameter.name.as_str()).collect()
    }

    /// Parameters that the file lacks: name here, key in the file, and whether the layout allows that.
    pub fn missing(&self) -> &[(String, String, bool)] {
        &self.missing
    }

    /// Keys of the file that belong to no parameter.
    pub fn unexpected(&self) -> &[String] {
        &self.unexpected
    }

    /// Keys of the file that are not needed: classifier, decoder, counters of batch norm.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Keys whose tensors have another shape or type.
    pub fn wrong_shape(&self) -> &[WrongShape] {
        &self.wrong_shape
    }

    /// The changes to the weights, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Checks that nothing is missing, left over or of another shape, except what the layout allows.
    ///
    /// # Errors
    /// [`ModelError::WeightsDoNotFit`] with the number and the first of each.
    pub fn require(&self) -> Result<(), ModelError> {
        let missing: Vec<&String> =
            self.missing.iter().filter(|(_, _, allowed)| !allowed).map(|(_, key, _)| key).collect();
        let mut problems = Vec::new();
        if let Some(key) = missing.first() {
            problems.push(format!("missing keys: {} (first: {})", missing.len(), shown(key)));
        }
        if let Some(key) = self.unexpected.first() {
            problems.push(format!("unexpected keys: {} (first: {})", self.unexpected.len(), shown(key)));
        }
        if let Some(WrongShape { key, found, expected, .. }) = self.wrong_shape.first() {
            let n = self.wrong_shape.len();
            let key = shown(key);
            problems.push(format!("tensors of another shape: {n} (first: {key} with {found} instead of {expected})"));
        }
        if problems.is_empty() {
            return Ok(());
        }
        let hint = self.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
        let problem = format!("in the layout {}, {}{hint}", self.layout.name(), problems.join("; "));
        Err(ModelError::WeightsDoNotFit { path: self.file.path().to_owned(), backbone: self.backbone, problem })
    }

    /// A known reason for keys that do not fit.
    fn hint(&self) -> Option<&'static str> {
        let has = |piece: &str| self.unexpected.iter().any(|key| key.contains(piece));
        if has(".mlp.w12.") {
            return Some("mlp.w12 and mlp.w3 are a SwiGLU layer, which is another network than this one");
        }
        if has(".ls1.") {
            return Some("ls1 and ls2 scale the branches of a block, which is another network than this one");
        }
        None
    }

    /// The values of the parameter `index` of [`matched`](Self::matched), in the layout of this crate.
    fn values(&self, index: usize) -> Result<Vec<f32>, ModelError> {
        let Match { parameter, tensor, change } = &self.matched[index];
        let stored = &self.file.tensors()[*tensor];
        let values = self.file.values(stored)?;
        self.check(&values, stored, parameter)?;
        Ok(match *change {
            Change::None => values,
            Change::Transpose => transpose(&values, parameter.shape[1], parameter.shape[0]),
            Change::Channels { from, to, rule } => {
                adapt(&values, from, parameter.shape[2..].iter().product(), to, rule)
            }
            Change::Positions { from, to } => positions::resample(&values, from, to, parameter.shape[2]),
        })
    }

    /// Checks that every value is finite and that no running variance is negative.
    fn check(&self, values: &[f32], stored: &StoredTensor, parameter: &Parameter) -> Result<(), ModelError> {
        let is_variance = parameter.name.ends_with("running_var");
        let is_wrong = |value: f32| !value.is_finite() || (is_variance && value < 0.0);
        let Some(index) = values.iter().position(|value| is_wrong(*value)) else { return Ok(()) };
        let expected = if is_variance { "a finite variance >= 0" } else { "a finite weight" };
        let wide = if stored.element == ElementType::F64 { " once rounded from f64" } else { "" };
        Err(ModelError::DamagedWeights {
            path: self.file.path().to_owned(),
            place: format!("element {index} of {}", shown(&stored.name())),
            expected: format!("{expected} within f32"),
            found: format!("{}{wide}", values[index]),
        })
    }

    /// `backbone` with the weights of the file; parameters that the file may lack are unchanged. Needs memory for one
    /// tensor at a time.
    ///
    /// # Errors
    /// As [`require`](Self::require), and [`ModelError::DamagedWeights`] if a tensor cannot be read, or contains a
    /// value that is not finite or a negative running variance.
    pub fn load(&self, backbone: Backbone) -> Result<Backbone, ModelError> {
        self.require()?;
        let index: HashMap<&str, usize> =
            self.matched.iter().enumerate().map(|(at, found)| (found.parameter.name.as_str(), at)).collect();
        replace(backbone, |name| index.get(name).map(|at| self.values(*at)).transpose())
    }

    /// Name and shape of every parameter that the file gives.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.matched.iter().map(|found| (found.parameter.name.as_str(), found.parameter.shape.as_slice()))
    }

    /// Their values in the same order.
    pub(super) fn all_values(&self) -> impl Iterator<Item = Result<Vec<f32>, ModelError>> {
        (0..self.matched.len()).map(|at| self.values(at))
    }

    /// The file.
    pub(super) fn file(&self) -> &WeightFile {
        self.file
    }
}

/// Checks that a file of this program was written for the backbone `kind`.
fn of_backbone(file: &WeightFile, kind: BackboneKind) -> Result<(), String> {
    match file.metadata().iter().find(|(key, _)| key == NATIVE_MARK || key == EXPORT_MARK) {
        Some((_, name)) if name != kind.name() => {
            Err(format!("it holds the weights of {}, expected {}", shown(name), kind.name()))
        }
        _ => Ok(()),
    }
}

/// `[rows, columns]` to `[columns, rows]`.
pub(super) fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut transposed = Vec::with_capacity(values.len());
    for column in 0..columns {
        transposed.extend((0..rows).map(|row| values[row * columns + column]));
    }
    transposed
}
