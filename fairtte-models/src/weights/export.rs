//! Weights on their way out: the tensors of a trained network in the names and shapes that another program reads.
//!
//! The layouts that name the tensors of a file on import name them here, so the two directions cannot diverge: a backbone
//! goes out under the names of the library that its published weights come from ([`Layout::home`]), everything else under
//! the names of this program's modules. A weight of a linear layer is `[out, in]` in a file, as in torch, and `[in, out]`
//! here.

use std::io::Write;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use serde_json::{Map, Value};

use super::fit::transpose;
use super::layouts::{Layout, names};
use super::parameters::{Parameter, Path};
use super::safetensors_file::header;
use crate::{Backbone, ImageEncoder, ModelError};

/// Metadata key of a file with the networks of a run; its value is the name of the backbone.
pub(super) const EXPORT_MARK: &str = "fairtte.export";
/// Metadata key of the layout of the backbone in such a file.
pub(super) const EXPORT_LAYOUT: &str = "fairtte.layout";
/// First parts of the names of the tensors outside the backbone.
const AFTER_BACKBONE: [&str; 3] = ["projection.", "target.", "classifier."];
/// Beginning of the prefix of the tensors of one group, which a number and a dot follow.
const OF_GROUP: &str = "group-";

/// A tensor with its name, as a file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// Name in the file.
    pub name: String,
    /// Sizes of its axes; `[out, in]` for the weight of a linear layer.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub values: Vec<f32>,
}

impl NamedTensor {
    /// The same tensor with `prefix` before its name.
    #[must_use]
    pub fn below(self, prefix: &str) -> Self {
        Self { name: format!("{prefix}{}", self.name), ..self }
    }
}

/// Whether `key`, without the prefix of a group, belongs to the backbone, and the prefix.
pub(super) fn place_in_export(key: &str) -> (bool, &str) {
    let digits = key.strip_prefix(OF_GROUP).and_then(|rest| rest.split_once('.')).map(|(digits, _)| digits);
    let is_number = |digits: &&str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let end = digits.filter(is_number).map_or(0, |digits| OF_GROUP.len() + digits.len() + 1);
    let (prefix, rest) = key.split_at(end);
    (!AFTER_BACKBONE.iter().any(|start| rest.starts_with(start)), prefix)
}

/// The prefix of the tensors of group `index`: `group-0.`.
pub fn of_group(index: usize) -> String {
    format!("{OF_GROUP}{index}.")
}

/// The tensors of `module` under the names of its fields, in their order; running statistics of batch norm are among
/// them.
pub fn tensors<M: Module>(module: &M) -> Vec<NamedTensor> {
    let mut list = List::default();
    module.visit(&mut list);
    list.found.into_iter().map(|(parameter, values)| outwards(parameter.name.clone(), &parameter, values)).collect()
}

/// The tensors of the encoder: those of its backbone in the layout of its [home](Layout::home), then `projection.weight`
/// and `projection.bias` if it has a projection.
///
/// # Errors
/// [`ModelError::NoName`] for a parameter that the layout has no key for.
pub fn encoder_tensors(encoder: &ImageEncoder) -> Result<Vec<NamedTensor>, ModelError> {
    let mut all = backbone_tensors(encoder.backbone())?;
    if let Some(projection) = encoder.projection() {
        all.extend(tensors(projection).into_iter().map(|tensor| tensor.below("projection.")));
    }
    Ok(all)
}

/// The tensors of `backbone` in the layout of its [home](Layout::home), in the order of its fields.
///
/// # Errors
/// [`ModelError::NoName`] for a parameter that the layout has no key for.
pub fn backbone_tensors(backbone: &Backbone) -> Result<Vec<NamedTensor>, ModelError> {
    let kind = backbone.kind();
    let layout = Layout::home(kind);
    let mut list = List::default();
    backbone.visit(&mut list);
    let named = |(parameter, values): (Parameter, Vec<f32>)| {
        let key = names(layout, kind).and_then(|table| (table.key)(kind, &parameter.name));
        let key = key.ok_or_else(|| ModelError::NoName {
            parameter: parameter.name.clone(),
            backbone: kind.name(),
            layout: layout.name(),
        })?;
        Ok(outwards(key, &parameter, values))
    };
    list.found.into_iter().map(named).collect()
}

fn outwards(name: String, parameter: &Parameter, values: Vec<f32>) -> NamedTensor {
    match parameter.shape[..] {
        [inputs, outputs] if parameter.is_linear => {
            NamedTensor { name, shape: vec![outputs, inputs], values: transpose(&values, inputs, outputs) }
        }
        _ => NamedTensor { name, shape: parameter.shape.clone(), values },
    }
}

#[derive(Default)]
struct List {
    path: Path,
    found: Vec<(Parameter, Vec<f32>)>,
}

impl ModuleVisitor for List {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = param.val().into_data().iter::<f32>().collect();
        self.found.push((self.path.parameter(param), values));
    }
}

/// Writes `tensors` as a safetensors file. `backbone` and the layout of its home are put into its metadata, with
/// `metadata` in addition.
///
/// # Errors
/// [`ModelError::WriteWeights`] if `out` fails; an incomplete file has then been written.
pub fn write_export(
    tensors: &[NamedTensor],
    backbone: crate::BackboneKind,
    metadata: &[(&str, String)],
    out: &mut impl Write,
) -> Result<(), ModelError> {
    let own = [(EXPORT_MARK, backbone.name()), (EXPORT_LAYOUT, Layout::home(backbone).name()), ("format", "pt")];
    let own = own.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value)));
    let further = metadata.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
    let metadata: Map<String, Value> = further.chain(own).collect();
    let shapes = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice()));
    let failed = |error: std::io::Error| ModelError::WriteWeights { reason: error.to_string() };
    out.write_all(&header(metadata, shapes)).map_err(failed)?;
    for tensor in tensors {
        let bytes: Vec<u8> = tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        out.write_all(&bytes).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_group_is_told_from_names_that_begin_alike() {
        for (key, expected) in [
            ("conv1.weight", (true, "")),
            ("projection.weight", (false, "")),
            ("group-12.conv1.weight", (true, "group-12.")),
            ("group-0.classifier.output.bias", (false, "group-0.")),
            ("group-.conv1.weight", (true, "")),
            ("group-x.classifier.weight", (true, "")),
            ("group-1", (true, "")),
        ] {
            assert_eq!(place_in_export(key), expected, "{key}");
        }
        assert_eq!(of_group(12), "group-12.");
    }
}
