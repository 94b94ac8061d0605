//! The parameters of a backbone by name: the path of the module, without the names of the wrappers around the network.
//!
//! Batch norm's running statistics count as parameters here, since a file holds them beside the others.

use burn::module::{Module as _, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};

use crate::{Backbone, ModelError};

/// Name and shape of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    /// A weight of a linear layer, `[in, out]` here and `[out, in]` in torch.
    pub(super) is_linear: bool,
}

/// Path to where a visitor stands.
#[derive(Default)]
struct Path {
    /// Name and type of what it lies in.
    parts: Vec<(String, bool)>,
    in_linear: Vec<bool>,
}

impl Path {
    fn enter(&mut self, name: &str, container: &str) {
        let is_wrapper = container == "Struct:Backbone" || container.starts_with("Enum:");
        self.parts.push((name.to_owned(), is_wrapper));
        self.in_linear.push(container == "Struct:Linear");
    }

    fn exit(&mut self) {
        self.parts.pop();
        self.in_linear.pop();
    }

    fn name(&self) -> String {
        let parts = self.parts.iter().filter(|(_, is_wrapper)| !is_wrapper);
        parts.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }
}

/// The parameters of `backbone` in the order of its fields.
pub(super) fn parameters(backbone: &Backbone) -> Vec<Parameter> {
    let mut list = List::default();
    backbone.visit(&mut list);
    list.found
}

#[derive(Default)]
struct List {
    path: Path,
    found: Vec<Parameter>,
}

impl ModuleVisitor for List {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let is_linear = D == 2 && self.path.in_linear.last().is_some_and(|inside| *inside);
        let shape = param.lazy_shape().to_vec();
        self.found.push(Parameter { name: self.path.name(), shape, is_linear });
    }
}

/// `backbone` with the values that `values` gives for a name and shape; a parameter for which it gives none stays.
pub(super) fn replace(
    backbone: Backbone,
    values: impl FnMut(&str) -> Result<Option<Vec<f32>>, ModelError>,
) -> Result<Backbone, ModelError> {
    let mut mapper = Replace { path: Path::default(), values, failed: None };
    let backbone = backbone.map(&mut mapper);
    mapper.failed.map_or(Ok(backbone), Err)
}

struct Replace<F> {
    path: Path,
    values: F,
    failed: Option<ModelError>,
}

impl<F: FnMut(&str) -> Result<Option<Vec<f32>>, ModelError>> ModuleMapper for Replace<F> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.failed.is_some() {
            return param;
        }
        let values = match (self.values)(&self.path.name()) {
            Ok(Some(values)) => values,
            Ok(None) => return param,
            Err(error) => {
                self.failed = Some(error);
                return param;
            }
        };
        let (id, tensor, mapper) = param.consume();
        let loaded = Tensor::from_data(TensorData::new(values, tensor.shape()), &tensor.device());
        Param::from_mapped_value(id, loaded.set_require_grad(tensor.is_require_grad()), mapper)
    }
}
