"""pycox's ``EvalSurv`` under its name: the same methods and values.

Differences: the curves must fall and lie in [0, 1]; errors are :class:`fairtte.MetricError`; where pycox divides by a
censoring curve of 0 its number depends on the order of the samples, here it is an error; G comes from ``censor_surv="km"``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _fairtte, _inputs
from ._errors import MetricError

__all__ = ["EvalSurv"]


class EvalSurv:
    """The metrics of a pandas frame ``surv`` with times as index and one sample per column.

    >>> import pandas as pd
    >>> from fairtte.pycox import EvalSurv
    >>> surv = pd.DataFrame({0: [1.0, 0.2], 1: [1.0, 0.6]}, index=[0.0, 1.0])
    >>> EvalSurv(surv, [1.0, 2.0], [1, 1], censor_surv="km").concordance_td()
    1.0
    """

    def __init__(
        self, surv: Any, durations: Any, events: Any, censor_surv: str | None = None, steps: str = "post"
    ) -> None:
        if censor_surv not in (None, "km"):
            raise MetricError('censor_surv is no "km", expected "km" or None')
        if steps not in ("post", "pre"):
            raise MetricError(f'steps is "{steps}", expected "post" or "pre"')
        self._survival, self._times = _inputs.survival_and_times(surv, None)
        self.durations = _inputs.numbers(durations, "durations")
        self.events = _inputs.flags(events, "events")
        self._has_censoring = censor_surv is not None
        self._pre = steps == "pre"

    def _compute(self, what: str, grid: Any) -> list[float]:
        times = _inputs.numbers(grid, "time_grid")
        return _fairtte.pycox(
            what, self._survival, self._times, self.durations, self.events, times, self._pre
        )

    def _needs_censoring(self) -> None:
        if not self._has_censoring:
            raise MetricError('censor_surv is None, expected "km" for weights')

    def concordance_td(self, method: str = "adj_antolini") -> float:
        """The time-dependent concordance: ``"adj_antolini"`` or ``"antolini"``."""
        if method not in ("adj_antolini", "antolini"):
            raise MetricError(f'method is "{method}", expected "adj_antolini" or "antolini"')
        return self._compute(method, [0.0])[0]

    def _over(self, what: str, time_grid: Any, name: str) -> Any:
        import pandas

        self._needs_censoring()
        index = pandas.Index(np.asarray(time_grid), name="time")
        return pandas.Series(self._compute(what, time_grid), index=index).rename(name)

    def brier_score(self, time_grid: Any) -> Any:
        """The Brier score at each time, a series."""
        return self._over("brier", time_grid, "brier_score")

    def nbll(self, time_grid: Any) -> Any:
        """The negative binomial log-likelihood at each time, a series."""
        return self._over("nbll", time_grid, "nbll")

    def integrated_brier_score(self, time_grid: Any) -> float:
        """The Brier score averaged over the times by Simpson's rule."""
        self._needs_censoring()
        return self._compute("ibs", time_grid)[0]

    def integrated_nbll(self, time_grid: Any) -> float:
        """The negative binomial log-likelihood averaged over the times by Simpson's rule."""
        self._needs_censoring()
        return self._compute("inbll", time_grid)[0]
