//! The parameters of a backbone by name: the path of the module, without the names of the wrappers around the network.
//!
//! Batch norm's running statistics count as parameters here, since a file contains them with the others.

use std::collections::HashSet;

use burn::module::{Flag, Module as _, ModuleMapper, ModuleVisitor, Param, ParamGroup, ParamId};
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

/// Path to the current module of a visitor.
#[derive(Default)]
pub(super) struct Path {
    /// Names of the enclosing modules, and whether each is a wrapper around the network.
    parts: Vec<(String, bool)>,
    /// Types of the enclosing modules.
    containers: Vec<String>,
}

impl Path {
    pub(super) fn enter(&mut self, name: &str, container: &str) {
        let is_wrapper = container == "Struct:Backbone" || container.starts_with("Enum:");
        self.parts.push((name.to_owned(), is_wrapper));
        self.containers.push(container.to_owned());
    }

    pub(super) fn exit(&mut self) {
        self.parts.pop();
        self.containers.pop();
    }

    fn is_in(&self, container: &str) -> bool {
        self.containers.last().is_some_and(|last| last == container)
    }

    fn name(&self) -> String {
        let parts = self.parts.iter().filter(|(_, is_wrapper)| !is_wrapper);
        parts.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }

    /// The parameter that is visited.
    pub(super) fn parameter<const D: usize>(&self, param: &Param<Tensor<D>>) -> Parameter {
        let is_linear = D == 2 && self.is_in("Struct:Linear");
        Parameter { name: self.name(), shape: param.lazy_shape().to_vec(), is_linear }
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
        self.found.push(self.path.parameter(param));
    }
}

impl Backbone {
    /// Identities of the parameters with one of `names`.
    pub fn parameter_ids(&self, names: &HashSet<String>) -> HashSet<ParamId> {
        let mut ids = Ids::default();
        self.visit(&mut ids);
        ids.all.into_iter().filter(|(name, _)| names.contains(name)).map(|(_, id)| id).collect()
    }

    /// Whether the network has a batch norm.
    pub fn has_batch_norm(&self) -> bool {
        let mut ids = Ids::default();
        self.visit(&mut ids);
        !ids.of_batch_norm.is_empty()
    }

    /// Returns the network with the parameters in `names` cut off from gradients, and with batch norm by its running
    /// statistics.
    #[must_use]
    pub fn frozen(self, names: &HashSet<String>) -> Self {
        let mut ids = Ids::default();
        self.visit(&mut ids);
        let trained = ids.all.into_iter().filter(|(name, _)| !names.contains(name)).map(|(_, id)| id).collect();
        self.freeze().set_require_grad_group(ParamGroup::from_ids(trained), true)
    }

    /// Returns the network with the scale, shift and running statistics of its batch norms frozen.
    #[must_use]
    pub fn with_frozen_batch_norm(self) -> Self {
        let mut ids = Ids::default();
        self.visit(&mut ids);
        self.freeze_group(ParamGroup::from_ids(ids.of_batch_norm))
    }
}

#[derive(Default)]
struct Ids {
    path: Path,
    all: Vec<(String, ParamId)>,
    of_batch_norm: Vec<ParamId>,
}

impl ModuleVisitor for Ids {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.all.push((self.path.name(), param.id));
        if self.path.is_in("Struct:BatchNorm") {
            self.of_batch_norm.push(param.id);
        }
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        if self.path.is_in("Struct:BatchNorm") {
            self.of_batch_norm.push(flag.id);
        }
    }
}

/// `backbone` with the values that `values` gives for a name and shape; a parameter for which it gives none is
/// unchanged.
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
