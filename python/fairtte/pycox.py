"""pycox's ``EvalSurv`` under its name: the same arguments, methods and values.

Differences: the curves must fall and lie in [0, 1]; errors are :class:`fairtte.MetricError`; where pycox divides by a censoring curve of 0
its number depends on the order of the samples, here it is an error. G is the Kaplan-Meier curve of the sample (``censor_surv="km"``);
absent are curves of censoring as a frame (``add_censor_est``), ``max_weight``, and ``censor_durations`` with the scores of administrative
censoring.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _fairtte, _inputs, _labels
from ._errors import FairtteError, MetricError

__all__ = ["EvalSurv"]


class EvalSurv:
    """The metrics of a pandas frame ``surv`` with times as index and one sample per column.

    Parameters
    ----------
    surv : data frame [k, n]
        Probability to be free of the event, in [0, 1], with increasing times as index.
    durations, events : array [n]
        Observed times, and whether the event was observed then.
    censor_surv : None or "km"
        Whether the weights come from the Kaplan-Meier curve of censoring of these samples; None: there are none.
    censor_durations : None
        Times of administrative censoring, which are not supported.
    steps : "post" or "pre"
        Whether a time between two of the index reads the earlier or the later one.

    Raises
    ------
    MetricError
        A ``ValueError`` that names the argument.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairtte.pycox import EvalSurv
    >>> surv = pd.DataFrame({0: [1.0, 0.2], 1: [1.0, 0.6]}, index=[0.0, 1.0])
    >>> EvalSurv(surv, [1.0, 2.0], [1, 1], censor_surv="km").concordance_td()
    1.0
    """

    def __init__(
        self,
        surv: Any,
        durations: Any,
        events: Any,
        censor_surv: str | None = None,
        censor_durations: None = None,
        steps: str = "post",
    ) -> None:
        if censor_durations is not None:
            raise MetricError("censor_durations is given, expected None: scores of administrative censoring are not supported")
        self.surv = surv
        self._survival, self._times = _inputs.curves_of_pycox(surv, "surv")
        _labels.require_one_order(surv__columns=surv.columns, durations=durations, events=events)
        self.durations = _inputs.numbers(durations, "durations")
        self.events = _inputs.flags(events, "events")
        # Times and events of the sample that G is fitted on.
        self._censored: tuple[NDArray[np.float64], NDArray[np.bool_]] | None = None
        self.censor_surv = censor_surv
        self.steps = steps

    @property
    def index_surv(self) -> NDArray[np.float64]:
        """The times of the curves, ``[k]``.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> EvalSurv(pd.DataFrame({0: [1.0, 0.2]}, index=[0.0, 1.0]), [1.0], [1]).index_surv
        array([0., 1.])
        """
        return self._times

    @property
    def steps(self) -> str:
        """``"post"`` or ``"pre"``; another value raises :class:`fairtte.MetricError`.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> found = EvalSurv(pd.DataFrame({0: [1.0, 0.2]}, index=[0.0, 1.0]), [1.0], [1])
        >>> found.steps = "pre"
        >>> found.idx_at_times([0.5])
        array([1])
        """
        return "pre" if self._pre else "post"

    @steps.setter
    def steps(self, steps: str) -> None:
        if steps not in ("post", "pre"):
            raise MetricError(f'steps is "{steps}", expected "post" or "pre"')
        self._pre = steps == "pre"

    @property
    def censor_surv(self) -> str | None:
        """``"km"`` or None; pycox returns an ``EvalSurv`` of the censoring. Another value raises :class:`fairtte.MetricError`.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> EvalSurv(pd.DataFrame({0: [1.0, 0.2]}, index=[0.0, 1.0]), [1.0], [1]).add_km_censor().censor_surv
        'km'
        """
        return None if self._censored is None else "km"

    @censor_surv.setter
    def censor_surv(self, censor_surv: str | None) -> None:
        if not (censor_surv is None or isinstance(censor_surv, str) and censor_surv == "km"):
            raise MetricError('censor_surv is no "km", expected "km" or None')
        self._censored = None if censor_surv is None else (self.durations, self.events)

    def add_km_censor(self, steps: str = "post") -> EvalSurv:
        """Takes weights from the Kaplan-Meier curve of censoring of these samples; returns itself.

        Raises :class:`fairtte.MetricError` for ``steps`` other than ``"post"``.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> surv = pd.DataFrame({0: [1.0, 0.5], 1: [1.0, 0.5]}, index=[0.0, 1.0])
        >>> float(EvalSurv(surv, [1.0, 2.0], [1, 1]).add_km_censor().brier_score([1.0]).iloc[0])
        0.25
        """
        if steps != "post":
            raise MetricError(f'steps is "{steps}", expected "post": G is read as a step function')
        self.censor_surv = "km"
        return self

    def __getitem__(self, index: Any) -> EvalSurv:
        """The samples of a number, a slice, numbers or a mask; G stays that of all samples."""
        place = index if hasattr(index, "__iter__") or isinstance(index, slice) else [index]
        found = type(self)(self.surv.iloc[:, place], self.durations[place], self.events[place], steps=self.steps)
        found._censored = self._censored
        return found

    def idx_at_times(self, times: Any) -> NDArray[np.intp]:
        """The place in the index that each of ``times`` ``[m]`` is read at, ``[m]``.

        Raises :class:`fairtte.MetricError` unless they are numbers.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> EvalSurv(pd.DataFrame({0: [1.0, 0.2]}, index=[0.0, 1.0]), [1.0], [1]).idx_at_times([0.5, 1.0, 9.0])
        array([0, 1, 1])
        """
        at = _inputs.numbers(times, "times")
        place = np.searchsorted(self._times, at) if self._pre else np.searchsorted(self._times, at, side="right") - 1
        return place.clip(0, len(self._times) - 1)

    def surv_at_times(self, times: Any) -> Any:
        """The rows of the frame that ``times`` ``[m]`` are read at, a frame ``[m, n]``.

        Raises :class:`fairtte.MetricError` unless they are numbers.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> EvalSurv(pd.DataFrame({0: [1.0, 0.2]}, index=[0.0, 1.0]), [1.0], [1]).surv_at_times([0.5])[0].tolist()
        [1.0]
        """
        return self.surv.iloc[self.idx_at_times(times)]

    def plot_surv(self, **kwargs: Any) -> Any:
        """Draws at most 50 curves as steps with pandas, which ``kwargs`` are passed to; returns the axes.

        Raises :class:`fairtte.FairtteError` for more curves, and for ``drawstyle``, which ``steps`` sets.

        >>> import matplotlib; matplotlib.use("Agg")
        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> ax = EvalSurv(pd.DataFrame({0: [1.0, 0.2]}, index=[0.0, 1.0]), [1.0], [1]).plot_surv(legend=False)
        >>> ax.lines[0].get_drawstyle()
        'steps-post'
        """
        if len(self.durations) > 50:
            raise FairtteError(f"there are {len(self.durations)} curves, expected at most 50 in a figure: select some, as in ev[:5]")
        if "drawstyle" in kwargs:
            raise FairtteError("drawstyle is given, expected steps of EvalSurv to set it")
        return self.surv.plot(drawstyle=f"steps-{self.steps}", **kwargs)

    def _compute(self, what: str, grid: Any) -> list[float]:
        times = _inputs.numbers(grid, "time_grid")
        return _fairtte.pycox(
            what, self._survival, self._times, self.durations, self.events, times, self._pre, self._censored
        )

    def _needs_censoring(self) -> None:
        if self._censored is None:
            raise MetricError('censor_surv is None, expected "km" for weights')

    def concordance_td(self, method: str = "adj_antolini") -> float:
        """The time-dependent concordance: ``"adj_antolini"`` or ``"antolini"``.

        Raises :class:`fairtte.MetricError` for another method and without comparable pairs.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> surv = pd.DataFrame({0: [1.0, 0.2], 1: [1.0, 0.6]}, index=[0.0, 1.0])
        >>> EvalSurv(surv, [1.0, 2.0], [1, 1]).concordance_td("antolini")
        1.0
        """
        if method not in ("adj_antolini", "antolini"):
            raise MetricError(f'method is "{method}", expected "adj_antolini" or "antolini"')
        return self._compute(method, [0.0])[0]

    def _over(self, what: str, time_grid: Any, name: str) -> Any:
        import pandas

        self._needs_censoring()
        index = pandas.Index(_inputs.array(time_grid, "time_grid"), name="time")
        return pandas.Series(self._compute(what, time_grid), index=index).rename(name)

    def brier_score(self, time_grid: Any) -> Any:
        """The Brier score at each of the times ``[m]``, a series.

        Raises :class:`fairtte.MetricError` without ``censor_surv`` and where a weight does not exist.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> surv = pd.DataFrame({0: [1.0, 0.2], 1: [1.0, 0.6]}, index=[0.0, 1.0])
        >>> float(EvalSurv(surv, [1.0, 2.0], [1, 1], "km").brier_score([1.0]).iloc[0].round(6))   # (0.04 + 0.16) / 2
        0.1
        """
        return self._over("brier", time_grid, "brier_score")

    def nbll(self, time_grid: Any) -> Any:
        """The negative binomial log-likelihood at each of the times ``[m]``, a series.

        Raises :class:`fairtte.MetricError` as :meth:`brier_score`.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> surv = pd.DataFrame({0: [1.0, 0.5], 1: [1.0, 0.5]}, index=[0.0, 1.0])
        >>> float(EvalSurv(surv, [1.0, 2.0], [1, 1], "km").nbll([1.0]).iloc[0].round(6))   # log 2
        0.693147
        """
        return self._over("nbll", time_grid, "nbll")

    def integrated_brier_score(self, time_grid: Any) -> float:
        """The Brier score averaged over the times by Simpson's rule.

        Raises :class:`fairtte.MetricError` as :meth:`brier_score`.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> surv = pd.DataFrame({0: [0.5, 0.5], 1: [0.5, 0.5]}, index=[0.0, 1.0])
        >>> round(EvalSurv(surv, [1.0, 2.0], [1, 1], "km").integrated_brier_score([0.5, 1.0, 1.5]), 9)
        0.25
        """
        self._needs_censoring()
        return self._compute("ibs", time_grid)[0]

    def integrated_nbll(self, time_grid: Any) -> float:
        """The negative binomial log-likelihood averaged over the times by Simpson's rule.

        Raises :class:`fairtte.MetricError` as :meth:`brier_score`.

        >>> import pandas as pd
        >>> from fairtte.pycox import EvalSurv
        >>> surv = pd.DataFrame({0: [0.5, 0.5], 1: [0.5, 0.5]}, index=[0.0, 1.0])
        >>> round(EvalSurv(surv, [1.0, 2.0], [1, 1], "km").integrated_nbll([0.5, 1.0, 1.5]), 6)
        0.693147
        """
        self._needs_censoring()
        return self._compute("inbll", time_grid)[0]
