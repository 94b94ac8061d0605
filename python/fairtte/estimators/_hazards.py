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
        """One coefficient per covariate, ``[p]``.

        >>> import numpy as np
        >>> from fairtte.estimators import AFT, surv
        >>> AFT().fit(np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])).coef_.shape
        (1,)
        """
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

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import LogisticHazard, surv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1))
    >>> y = surv(rng.exponential(np.exp(-X[:, 0])), np.ones(300, bool))
    >>> bool(LogisticHazard(cut_points={"quantile": 5}).fit(X, y).coef_[0] > 0.8)
    True
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

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import AFT, surv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = surv(rng.exponential(np.exp(-X[:, 0])), np.ones(500, bool))
    >>> bool(abs(AFT().fit(X, y).coef_[0] + 1) < 0.1)   # times are exp(-x) as long
    True
    """

    _name = "aft"

    def __init__(self, *, distribution: str = "weibull", penalty: float = 0.0, n_jobs: int | None = None) -> None:
        self.distribution = distribution
        self.penalty = penalty
        self.n_jobs = n_jobs
