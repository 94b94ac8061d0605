"""Models of the hazard of intervals and of the logarithm of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._base import Estimator


class _Coefficients(Estimator):
    @property
    def coef_(self) -> NDArray[np.float64]:
        """One coefficient per covariate, ``[p]``."""
        return np.array([found["value"] for found in self.to_dict()["coefficients"]])


class LogisticHazard(_Coefficients):
    """A logistic regression of the event in every interval of time (Brown 1975); exp(``coef_``) are ratios of odds.

    Parameters
    ----------
    cut_points : {"quantile": n}, {"equidistant": n} or {"given": [times]}
        Where the intervals end.
    effects : "constant", "linear" or "logarithmic"
        How effects depend on the number of the interval.
    penalty : "none" or {"l2": {"c": 1.0, "standardise": True, "intervals": False}}
        Whether coefficients are shrunk; ``c`` is scikit-learn's ``C``.
    censored : "left-out" or "at-risk"
        Whether a sample that is censored within an interval was at risk in it.
    reading : str
        How survival is read within an interval.
    n_jobs : int
        Threads.
    """

    _name = "logistic-hazard"

    def __init__(
        self,
        *,
        cut_points: dict[str, int | Sequence[float]] | None = None,
        effects: str = "constant",
        penalty: str | dict[str, dict[str, Any]] | None = None,
        censored: str = "left-out",
        reading: str = "constant-hazard",
        n_jobs: int | None = None,
    ) -> None:
        self.cut_points = cut_points
        self.effects = effects
        self.penalty = penalty
        self.censored = censored
        self.reading = reading
        self.n_jobs = n_jobs


class AFT(_Coefficients):
    """Accelerated failure time: Weibull, log-normal or log-logistic times by maximum likelihood; one unit of a covariate
    multiplies the time by exp(``coef_``).

    Parameters
    ----------
    distribution : "weibull", "log-normal" or "log-logistic"
    penalty : float >= 0
        Of the squared coefficients of standardised covariates, as lifelines' ``penalizer``.
    n_jobs : int
        Threads.
    """

    _name = "aft"

    def __init__(self, *, distribution: str = "weibull", penalty: float = 0.0, n_jobs: int | None = None) -> None:
        self.distribution = distribution
        self.penalty = penalty
        self.n_jobs = n_jobs
