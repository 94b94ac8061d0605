"""Callables ``(estimator, X, y)`` that scikit-learn takes as ``scoring``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _inputs
from .._errors import MetricError
from ..sksurv import concordance_index_censored


def _concordance(estimator: Any, features: Any, outcome: Any, rows: Any = None) -> float:
    time, event = _inputs.outcomes(outcome, None, "y")
    risk = _inputs.numbers(estimator.predict(features), "predictions")
    if rows is not None:
        time, event, risk = time[rows], event[rows], risk[rows]
    return concordance_index_censored(event, time, risk)[0]


class concordance_scorer:
    """Harrell's C of ``estimator.predict(X)``, a risk, for ``y`` of scikit-survival's ``Surv``.

    Raises :class:`fairtte.MetricError` when it is called, if no two samples can be compared.

    >>> from fairtte.sklearn import concordance_scorer
    >>> concordance_scorer()
    concordance_scorer()
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        return _concordance(estimator, X, y)

    def __repr__(self) -> str:
        return "concordance_scorer()"


class gap_scorer:
    """Harrell's C less ``weight`` times its largest difference between the groups of ``X[column]``, a data frame: the
    choice between models weighs order against equality. Levels without a sample are left out; a group without comparable pairs is an error.

    Raises
    ------
    MetricError
        When it is called, if ``X`` has no such column, and for a group without comparable pairs.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fairtte.estimators import CoxPH, surv
    >>> from fairtte.sklearn import gap_scorer
    >>> X = pd.DataFrame({"x": np.arange(6.0), "sex": list("FMFMFM")})
    >>> y = surv([6, 5, 4, 3, 2, 1], np.ones(6, bool))
    >>> class Model:
    ...     def predict(self, X):
    ...         return X["x"]
    >>> gap_scorer("sex")(Model(), X, y)   # C is 1 in both groups
    1.0
    """

    def __init__(self, column: str, weight: float = 1.0) -> None:
        if not weight >= 0:
            raise MetricError(f"weight is {weight}, expected a number >= 0")
        self.column = column
        self.weight = weight

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        if not _inputs.is_frame(X) or self.column not in list(X.columns):
            raise MetricError(f'X has no column "{self.column}", expected a data frame with it')
        names, codes = _inputs.levels(X[self.column], self.column)
        # A categorical may declare levels that no sample has, in a fold for example.
        present = np.unique(codes[codes >= 0])
        if len(present) < 2:
            raise MetricError(f'X["{self.column}"] has {len(present)} levels, expected at least 2')
        of_group = []
        for code in present:
            try:
                of_group.append(_concordance(estimator, X, y, codes == code))
            except MetricError as error:
                raise type(error)(f'group "{names[code]}" of X["{self.column}"]: {error}') from None
        return _concordance(estimator, X, y) - self.weight * (max(of_group) - min(of_group))

    def __repr__(self) -> str:
        return f"gap_scorer({self.column!r}, weight={self.weight})"
