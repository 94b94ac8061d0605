"""Estimators whose ``score`` needs the outcomes that they were fitted on, as scikit-survival's ``as_*_scorer``."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import sksurv
from ..estimators._base import Parameters

if TYPE_CHECKING:
    from typing_extensions import Self


def _copy(estimator: Any) -> Any:
    """Without what it has learned."""
    try:
        from sklearn.base import clone
    except ImportError:
        return deepcopy(estimator)
    return clone(estimator)


class _Scored(Parameters):  # type: ignore[misc, unused-ignore]
    """An estimator with another ``score``, for ``GridSearchCV`` and ``cross_validate``; parameters of ``estimator`` are named
    ``estimator__NAME``."""

    estimator: Any

    def fit(self, X: Any, y: Any, **arguments: Any) -> Self:
        """Fits a copy of ``estimator`` (``estimator_``) and keeps ``y``, a ``Surv`` array, for weights.

        Raises what ``estimator`` raises.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> from fairtte.sklearn import as_concordance_index_ipcw_scorer
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> as_concordance_index_ipcw_scorer(CoxPH(ridge=1.0)).fit(X, y).estimator_.n_features_in_
        1
        """
        self.estimator_ = _copy(self.estimator).fit(X, y, **arguments)
        self._train = y
        return self

    def predict(self, X: Any) -> Any:
        """The risks ``[n]`` of ``estimator_``.

        Raises what ``estimator_`` raises.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> from fairtte.sklearn import as_concordance_index_ipcw_scorer
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> as_concordance_index_ipcw_scorer(CoxPH(ridge=1.0)).fit(X, y).predict(X[:2]).shape
        (2,)
        """
        return self.estimator_.predict(X)

    def predict_survival_function(self, X: Any, **arguments: Any) -> Any:
        """The functions ``[n]`` of ``estimator_``.

        Raises what ``estimator_`` raises.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> from fairtte.sklearn import as_concordance_index_ipcw_scorer
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> float(as_concordance_index_ipcw_scorer(CoxPH(ridge=1.0)).fit(X, y).predict_survival_function(X[:1])[0](0.5))
        1.0
        """
        return self.estimator_.predict_survival_function(X, **arguments)

    def score(self, X: Any, y: Any) -> float:
        """The score of ``X`` for the outcomes ``y``, a ``Surv`` array; higher is better.

        Raises :class:`fairtte.MetricError` where it does not exist, for example of times outside those of ``y``.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> from fairtte.sklearn import as_integrated_brier_score_scorer
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> -1 < as_integrated_brier_score_scorer(CoxPH(ridge=1.0), times=[2.0, 3.0]).fit(X, y).score(X, y) < 0
        True
        """
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


class as_concordance_index_ipcw_scorer(_Scored):
    """Uno's C of the risks, weighted by the outcomes that ``estimator`` was fitted on.

    Parameters
    ----------
    estimator : estimator with ``fit(X, y)`` and ``predict``
    tau : float
        Only events before it count. Default: all.

    Raises
    ------
    MetricError
        In ``score``, where C does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import CoxPH, surv
    >>> from fairtte.sklearn import as_concordance_index_ipcw_scorer
    >>> X, y = np.arange(6.0)[:, None], surv([6, 5, 4, 3, 2, 1], [1, 1, 1, 0, 1, 1])
    >>> as_concordance_index_ipcw_scorer(CoxPH(ridge=1.0)).fit(X, y).score(X, y)
    1.0
    """

    def __init__(self, estimator: Any, tau: float | None = None) -> None:
        self.estimator = estimator
        self.tau = tau

    def score(self, X: Any, y: Any) -> float:
        return sksurv.concordance_index_ipcw(self._train, y, self.predict(X), tau=self.tau)[0]


class _ScoredOverTimes(_Scored):
    def __init__(self, estimator: Any, times: Any) -> None:
        self.estimator = estimator
        self.times = times


class as_cumulative_dynamic_auc_scorer(_ScoredOverTimes):
    """The mean cumulative/dynamic AUC of the risks over ``times``, weighted by the outcomes that ``estimator`` was fitted on.

    Parameters
    ----------
    estimator : estimator with ``fit(X, y)`` and ``predict``
    times : array [k]
        In any order, within the observed times of every sample that is scored.

    Raises
    ------
    MetricError
        In ``score``, where the AUC does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import CoxPH, surv
    >>> from fairtte.sklearn import as_cumulative_dynamic_auc_scorer
    >>> X, y = np.arange(6.0)[:, None], surv([6, 5, 4, 3, 2, 1], [1, 1, 1, 0, 1, 1])
    >>> as_cumulative_dynamic_auc_scorer(CoxPH(ridge=1.0), times=[2.0, 4.0]).fit(X, y).score(X, y)
    1.0
    """

    def score(self, X: Any, y: Any) -> float:
        return float(sksurv.cumulative_dynamic_auc(self._train, y, self.predict(X), sksurv.sorted_times(self.times))[1])


class as_integrated_brier_score_scorer(_ScoredOverTimes):
    """The negative integrated Brier score over ``times``, weighted by the outcomes that ``estimator`` was fitted on.

    Parameters
    ----------
    estimator : estimator with ``fit(X, y)`` and ``predict_survival_function``
    times : array [k]
        At least two in any order, within the observed times of every sample that is scored.

    Raises
    ------
    MetricError
        In ``score``, where the score does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import CoxPH, surv
    >>> from fairtte.sklearn import as_integrated_brier_score_scorer
    >>> X, y = np.arange(6.0)[:, None], surv([6, 5, 4, 3, 2, 1], [1, 1, 1, 0, 1, 1])
    >>> -1 < as_integrated_brier_score_scorer(CoxPH(ridge=1.0), times=[2.0, 4.0]).fit(X, y).score(X, y) < 0
    True
    """

    def score(self, X: Any, y: Any) -> float:
        # The columns of the estimate have the order of the times.
        times = sksurv.sorted_times(self.times)
        functions: list[Callable[[Any], Any]] = list(self.predict_survival_function(X))
        estimate = np.array([function(times) for function in functions])
        return -sksurv.integrated_brier_score(self._train, y, estimate, times)
