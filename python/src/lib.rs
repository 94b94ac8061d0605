//! `fairtte._fairtte`: what the Python package `fairtte` computes in Rust.
//!
//! The functions take arrays of `NumPy` of fixed types; the package makes these from whatever the caller has, and documents
//! the functions. Each call computes on a pool of threads that belongs to this process (`pool.rs`) without the GIL.

mod arrays;
mod bias;
mod classes;
mod data;
mod errors;
mod estimators;
mod evaluate;
mod lent;
mod pool;
mod sent;
mod settings;
mod sksurv;
mod statistics;
mod survival_eval;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule(gil_used = false)]
mod _fairtte {
    #[pymodule_export]
    use crate::bias::bias_sources;
    #[pymodule_export]
    use crate::classes::{EvaluatedClasses, class_metric_names, evaluate_binary};
    #[pymodule_export]
    use crate::data::{Cohort, Store, read_curves, read_data, read_run};
    #[pymodule_export]
    use crate::estimators::{Fitted, estimator_names, estimator_settings, fit_estimator};
    #[pymodule_export]
    use crate::evaluate::{Evaluated, evaluate, metric_names};
    #[pymodule_export]
    use crate::pool::self_test;
    #[pymodule_export]
    use crate::sent::{restored, restored_classes, state, state_of_classes};
    #[pymodule_export]
    use crate::sksurv::{brier_score, cumulative_dynamic_auc, harrell, pycox, uno};
    #[pymodule_export]
    use crate::statistics::{adjust, friedman, nemenyi, rank_groups, select, wilcoxon};
    #[pymodule_export]
    use crate::survival_eval::SurvivalEvaluator;

    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
