"""Cox regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _inputs, _settings
from ._base import Estimator

if TYPE_CHECKING:
    from typing_extensions import Self

_ESTIMATE = ("coefficient", "standard_error", "hazard_ratio", "mean")


class _Linear(Estimator):
    """A model with one coefficient per covariate."""

    def _coefficients(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.to_dict()["coefficients"]
        return found

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Log hazard ratios per unit of every covariate, ``[p]``.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> model.coef_.shape
        (1,)
        """
        return np.array([found["value"] for found in self._coefficients()])

    def summary(self, library: str = "pandas") -> Any:
        """A data frame (of ``"pandas"`` or ``"polars"``) with one row per coefficient: name, coefficient, standard_error
        (None where there is none), hazard_ratio and mean of the covariate.

        Raises scikit-learn's ``NotFittedError`` before :meth:`fit`.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> model.summary()["mean"].to_list() == [X.mean()]
        True
        """
        rows = [
            {
                "name": found["name"],
                "coefficient": found["value"],
                "standard_error": found.get("standard-error"),
                "hazard_ratio": float(np.exp(found["value"])),
                "mean": found["mean"],
            }
            for found in self._coefficients()
        ]
        return _inputs.to_frame(rows, ("name", *_ESTIMATE), _settings.library(library))


class CoxPH(_Linear):
    """Cox regression (Cox 1972).

    Parameters
    ----------
    ties : "efron" or "breslow"
        How events at the same time are counted.
    ridge : float >= 0
        Half of it times the sum of the squared coefficients of standardised covariates is taken from the log partial
        likelihood.
    strata : list of str
        Names of columns whose values tell the stratum; of an array, their numbers from "0". Each stratum has its own
        baseline.
    errors : "plain" or "robust"
        Standard errors; robust ones (Lin & Wei 1989) count the samples of a ``subject`` of :meth:`fit` together.
    n_jobs : int
        Threads; None or -1: ``RAYON_NUM_THREADS``, otherwise all processors.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import CoxPH, surv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = surv(rng.exponential(np.exp(-X[:, 0])), np.ones(500, bool))
    >>> model = CoxPH().fit(X, y)
    >>> bool(abs(model.coef_[0] - 1) < 0.2), round(model.score(X, y), 2)
    (True, 0.72)
    """

    _name = "cox"

    def __init__(
        self,
        *,
        ties: str = "efron",
        ridge: float = 0.0,
        strata: Sequence[str] = (),
        errors: str = "plain",
        n_jobs: int | None = None,
    ) -> None:
        self.ties = ties
        self.ridge = ridge
        self.strata = strata
        self.errors = errors
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, subject: Any = None) -> Self:
        """As every :meth:`fit`; ``subject`` ``[n]`` is the person of every sample, for robust errors.

        Raises :class:`fairtte.MetricError` as there.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> CoxPH(errors="robust").fit(X, y, subject=["a", "a", "b", "b", "c", "c"]).n_features_in_
        1
        """
        return self._fit(X, y, subject)


class CoxElasticNet(_Linear):
    """Cox regression with an elastic net (Simon et al. 2011), whose strength cross-validation chooses.

    Parameters
    ----------
    ties : "efron" or "breslow"
    l1_ratio : float in [0, 1]
        Share of the absolute values in the penalty; 1 = lasso.
    lambdas : int
        Strengths on the path.
    smallest : float in (0, 1)
        The smallest strength as a share of the largest. None: 0.0001 for more samples than covariates, else 0.01.
    choice : "lowest-deviance", "one-standard-error" or {"fixed": strength}
    folds : int
        Folds of the cross-validation; samples of a ``subject`` of :meth:`fit` stay together.
    random_state : int
        Of the folds.
    n_jobs : int
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import CoxElasticNet, surv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = surv(rng.exponential(np.exp(-X[:, 0])), np.ones(200, bool))
    >>> model = CoxElasticNet(l1_ratio=1.0, choice="one-standard-error", folds=5).fit(X, y)
    >>> bool(model.coef_[0] > 0.5), int(np.sum(np.abs(model.coef_[1:]) > 0.1))
    (True, 0)
    """

    _name = "cox-elastic-net"

    def __init__(
        self,
        *,
        ties: str = "efron",
        l1_ratio: float = 0.5,
        lambdas: int = 100,
        smallest: float | None = None,
        choice: str | dict[str, float] = "lowest-deviance",
        folds: int = 10,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.ties = ties
        self.l1_ratio = l1_ratio
        self.lambdas = lambdas
        self.smallest = smallest
        self.choice = choice
        self.folds = folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, subject: Any = None) -> Self:
        """As every :meth:`fit`; ``subject`` ``[n]`` is the person of every sample, whom no fold divides.

        Raises :class:`fairtte.MetricError` as there.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxElasticNet, surv
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(40, 2)), surv(rng.exponential(size=40), np.ones(40, bool))
        >>> CoxElasticNet(folds=3, lambdas=5).fit(X, y, subject=np.arange(40) // 2).n_features_in_
        2
        """
        return self._fit(X, y, subject)


class CoxTimeVarying(_Linear):
    """Cox regression with coefficients that change with time (Therneau & Grambsch 2000).

    Parameters
    ----------
    function : "log", "identity" or {"steps": [times]}
        How they change.
    varying : list of str
        Columns whose coefficients change. None: all.
    ties, ridge, n_jobs
        As in :class:`CoxPH`. ``coef_`` has the coefficients of the covariates, then those that change.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import CoxTimeVarying, surv
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(100, 2)), surv(rng.exponential(size=100), np.ones(100, bool))
    >>> CoxTimeVarying(varying=["0"]).fit(X, y).coef_.shape
    (3,)
    """

    _name = "cox-time-varying"

    def __init__(
        self,
        *,
        function: str | dict[str, Sequence[float]] = "log",
        varying: Sequence[str] | None = None,
        ties: str = "efron",
        ridge: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.function = function
        self.varying = varying
        self.ties = ties
        self.ridge = ridge
        self.n_jobs = n_jobs
