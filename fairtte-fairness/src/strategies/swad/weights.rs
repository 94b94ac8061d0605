//! Arithmetic on all values of a module: parameters and running statistics.
//!
//! Modules are matched by the order of their tensors, since a loaded module has other ids. Running statistics are shared
//! by clones of a module; writes here always go to a copy made by `valid()`, which has its own.

use std::collections::VecDeque;

use burn::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::valley::Averaged;

/// A network in evaluation form, with its own running statistics.
#[derive(Clone, Debug)]
pub(super) struct Weights<M>(M);

impl<M: Module> Weights<M> {
    /// A copy of the present values of `module`.
    pub(super) fn of(module: &M) -> Self {
        Self(module.valid())
    }

    pub(super) fn module(&self) -> &M {
        &self.0
    }

    /// Returns `module`, with its trainability and ids, on its device, with these values.
    pub(super) fn written_into(&self, module: &M) -> M {
        let copy = module.valid();
        copy.map(&mut Combine { others: flat(&self.0), share: None }).train()
    }
}

impl<M: Module> Averaged for Weights<M> {
    fn toward(self, other: &Self, share: f64) -> Self {
        // `valid` again: a clone may share the running statistics.
        Self(self.0.valid().map(&mut Combine { others: flat(&other.0), share: Some(share) }))
    }
}

fn flat<M: Module>(module: &M) -> VecDeque<Tensor<1>> {
    let mut flatten = Flatten(VecDeque::new());
    module.visit(&mut flatten);
    flatten.0
}

struct Flatten(VecDeque<Tensor<1>>);

impl ModuleVisitor for Flatten {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push_back(param.val().reshape([-1]));
    }
}

/// Copies the values of the other module, or moves towards them by a share.
struct Combine {
    others: VecDeque<Tensor<1>>,
    share: Option<f64>,
}

impl ModuleMapper for Combine {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let other = self.others.pop_front().expect("modules of one shape");
        param.map(|tensor| {
            let other = other.reshape(tensor.shape());
            match self.share {
                Some(share) => tensor.clone() + (other - tensor) * share,
                None => other,
            }
        })
    }
}

/// Momentum of burn's batch norm, which all backbones here use.
const MOMENTUM: f64 = 0.1;

/// Statistics of the inputs of batch norms, averaged over samples.
#[derive(Debug)]
pub(super) struct Statistics<M> {
    module: M,
    /// Sum over the samples so far of the mean or variance of their batch; `None` for a tensor that is not a running
    /// statistic, or that belongs to a frozen norm.
    sums: Vec<Option<Tensor<1>>>,
    n: f64,
}

impl<M: Module> Statistics<M> {
    /// Creates empty statistics for `module` in training form.
    pub(super) fn new(module: M) -> Self {
        let mut find = FindStatistics { name: String::new(), is_enabled: false, found: Vec::new() };
        module.visit(&mut find);
        let zeros = flat(&module.valid()).into_iter().zip(find.found);
        let sums = zeros.map(|(tensor, is_one)| is_one.then(|| tensor.zeros_like())).collect();
        Self { module, sums, n: 0.0 }
    }

    /// Whether any norm updates its running statistics.
    pub(super) fn is_empty(&self) -> bool {
        self.sums.iter().all(Option::is_none)
    }

    /// Runs `forward` on a copy of the module in training form, without gradients, and adds the statistics of its batch
    /// of `n` samples.
    ///
    /// # Errors
    /// The errors of `forward`.
    pub(super) fn add<E>(&mut self, n: usize, forward: impl FnOnce(&M) -> Result<(), E>) -> Result<(), E> {
        let copy = self.module.valid();
        // Started at 0, running statistics are momentum x those of the batch after one pass.
        let zeroed = flat(&copy).into_iter().zip(&self.sums);
        let others = zeroed.map(|(own, sum)| if sum.is_some() { own.zeros_like() } else { own }).collect();
        let copy = copy.map(&mut Combine { others, share: None }).train().no_grad();
        forward(&copy)?;
        let weight = n as f64;
        for (sum, after) in self.sums.iter_mut().zip(flat(&copy.valid())) {
            *sum = sum.take().map(|sum| sum + after * (weight / MOMENTUM));
        }
        self.n += weight;
        Ok(())
    }

    /// Returns the module with the means over all samples as its running statistics; unchanged before the first batch.
    pub(super) fn finish(self) -> M {
        if self.n <= 0.0 {
            return self.module;
        }
        let copy = self.module.valid();
        let means = flat(&copy).into_iter().zip(self.sums);
        let others = means.map(|(own, sum)| sum.map_or(own, |sum| sum / self.n)).collect();
        copy.map(&mut Combine { others, share: None }).train()
    }
}

/// Which tensors of a module, in their order, are running statistics that are updated.
struct FindStatistics {
    /// Name of the entry visited last: a tensor is visited within its own name.
    name: String,
    /// Whether the enclosing batch norm is in training; its flag comes before its statistics.
    is_enabled: bool,
    found: Vec<bool>,
}

impl ModuleVisitor for FindStatistics {
    fn enter_module(&mut self, name: &str, _container: &str) {
        name.clone_into(&mut self.name);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.is_enabled = flag.is_enabled();
    }

    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        let is_one = self.name == "running_mean" || self.name == "running_var";
        self.found.push(is_one && self.is_enabled);
    }
}
