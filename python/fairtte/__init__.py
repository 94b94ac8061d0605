"""Exact survival metrics and audits of fairness with intervals, for models of any library.

:func:`evaluate` is the whole audit of one model; :mod:`fairtte.sksurv` and :mod:`fairtte.pycox` have the metrics of
scikit-survival and pycox under their names, :mod:`fairtte.sklearn` scorers for model selection.
"""

from ._errors import FairtteError, InternalError, MetricError
from ._fairtte import __version__
from .evaluation import Comparison, Estimate, Evaluation, evaluate, metric_names

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "FairtteError",
    "InternalError",
    "MetricError",
    "__version__",
    "evaluate",
    "metric_names",
]
