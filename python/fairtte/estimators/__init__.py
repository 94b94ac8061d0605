"""Survival estimators with scikit-learn's contract.

``fit(X, y)``, ``predict`` (a risk: higher = earlier), ``predict_survival_function`` as in scikit-survival, ``score`` (Harrell's C),
parameters, clones and pickles. scikit-learn is optional; with it the classes are its estimators and work in pipelines and
``GridSearchCV``. ``y`` is a structured array as :func:`surv` or scikit-survival's ``Surv`` makes it, or ``(time, event)``.
"""

from ._curves import StepFunction, surv
from ._cox import CoxElasticNet, CoxPH, CoxTimeVarying
from ._hazards import AFT, LogisticHazard
from ._trees import GradientBoostedCox, RandomSurvivalForest

__all__ = [
    "AFT",
    "CoxElasticNet",
    "CoxPH",
    "CoxTimeVarying",
    "GradientBoostedCox",
    "LogisticHazard",
    "RandomSurvivalForest",
    "StepFunction",
    "surv",
]
