"""Exact survival metrics and audits of fairness with intervals, for models of any library.

:func:`evaluate` is the whole audit of one model, :func:`evaluate_binary` that of probabilities of a class, :func:`bias_sources`
that of the data before it, :func:`select` the choice among runs; :func:`train` and :func:`study` run the program `fairtte`,
:func:`read_run` reads what it wrote. :mod:`fairtte.data` reads cohorts, :mod:`fairtte.estimators` has estimators for
scikit-learn, :mod:`fairtte.stats` tests of several models; :mod:`fairtte.sksurv`, :mod:`fairtte.pycox` and
:mod:`fairtte.survival_eval` have the metrics of scikit-survival, pycox and SurvivalEVAL under their names, :mod:`fairtte.sklearn` scorers for model selection. Submodules are imported when they are first used.
"""

from importlib import import_module
from typing import Any

from ._errors import DataError, FairtteError, FairtteWarning, InternalError, MetricError, RunError
from ._fairtte import __version__
from ._audit import Estimate
from ._comparison import Comparison
from .evaluation import Evaluation, evaluate, metric_names

__all__ = [
    "BiasSources",
    "ClassEvaluation",
    "Comparison",
    "DataError",
    "Estimate",
    "Evaluation",
    "FairtteError",
    "FairtteWarning",
    "InternalError",
    "MetricError",
    "Predictions",
    "Run",
    "RunError",
    "Selection",
    "__version__",
    "bias_sources",
    "class_metric_names",
    "evaluate",
    "evaluate_binary",
    "metric_names",
    "read_run",
    "select",
    "study",
    "train",
]

# What is imported when it is first used, so that `import fairtte` takes no longer than NumPy's import and a few milliseconds.
_LATER = {
    "BiasSources": "bias",
    "ClassEvaluation": "classes",
    "Predictions": "runs",
    "Run": "runs",
    "Selection": "selection",
    "bias_sources": "bias",
    "class_metric_names": "classes",
    "evaluate_binary": "classes",
    "read_run": "runs",
    "select": "selection",
    "study": "program",
    "train": "program",
}
_MODULES = (
    "bias", "classes", "data", "estimators", "program", "pycox", "runs", "selection", "sklearn", "sksurv", "stats", "survival_eval",
    "tests",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER, *_MODULES])
