"""SurvivalEVAL's ``SurvivalEvaluator`` under its name: the same arguments and values for what it has here.

Differences: all curves share one grid; errors are :class:`fairtte.MetricError`; what would be NaN is an error. Absent are the metrics of
predicted times (``concordance``, ``mae``, ``mse``, ``rmse``, ``log_rank``), ``integrated_calibration_index``, ``ksd_calibration``,
``residuals``, ``auprc``, ``auroc`` as another name of ``auc``, intervals and figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _fairtte, _inputs, _labels, _settings
from ._errors import MetricError

__all__ = ["SurvivalEvaluator"]


class SurvivalEvaluator:
    """The metrics of curves, read by straight lines as SurvivalEVAL does: from (0, 1) to the first time, and beyond the last one
    along the line through (0, 1) and the last point.

    Parameters
    ----------
    pred_survs : array [n, k]
        Probability to be free of the event at ``time_coordinates``, in [0, 1]; copied once.
    time_coordinates : array [k]
    event_times, event_indicators : array [n]
    train_event_times, train_event_indicators : array [m]
        The training sample, for weights.

    Raises
    ------
    MetricError
        A ``ValueError`` that names the argument.

    Examples
    --------
    >>> from fairtte.survival_eval import SurvivalEvaluator
    >>> evaluator = SurvivalEvaluator([[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], [2.0, 4.0], [3.0, 4.0, 1.0], [1, 0, 1])
    >>> evaluator.concordance_time_dependent()
    (1.0, 3.0, 3.0)
    >>> evaluator.predict_multi_probabilities_from_curve([1.0, 3.0])[0].round(6)
    array([0.9, 0.6])
    """

    def __init__(
        self,
        pred_survs: Any,
        time_coordinates: Any,
        event_times: Any,
        event_indicators: Any,
        train_event_times: Any = None,
        train_event_indicators: Any = None,
        *,
        threads: int | None = None,
    ) -> None:
        if (train_event_times is None) != (train_event_indicators is None):
            raise MetricError("train_event_times and train_event_indicators are given one without the other")
        _labels.require_one_order(pred_survs=pred_survs, event_times=event_times, event_indicators=event_indicators)
        _labels.require_one_order(train_event_times=train_event_times, train_event_indicators=train_event_indicators)
        self.event_times = _inputs.numbers(event_times, "event_times")
        self.event_indicators = _inputs.flags(event_indicators, "event_indicators")
        train = None
        self.train_event_times: NDArray[np.float64] | None = None
        if train_event_times is not None:
            self.train_event_times = _inputs.numbers(train_event_times, "train_event_times")
            train = (self.train_event_times, _inputs.flags(train_event_indicators, "train_event_indicators"))
        self.time_coordinates = _inputs.numbers(time_coordinates, "time_coordinates")
        survival = _inputs.matrix(pred_survs, "pred_survs")
        self._inner = _fairtte.SurvivalEvaluator(
            survival, self.time_coordinates, self.event_times, self.event_indicators, train, threads
        )
        self._threads = threads

    @property
    def default_target_time(self) -> float:
        """The median of all observed times, or the last time of the curves if that is earlier.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> evaluator.default_target_time
        3.0
        """
        times = self.event_times
        if self.train_event_times is not None:
            times = np.concatenate([times, self.train_event_times])
        return float(min(np.quantile(times, 0.5), self.time_coordinates[-1]))

    def _target(self, time: float | None) -> float:
        return self.default_target_time if time is None else _settings.number(time, "target_time")

    def _weighted(self, asked: bool) -> bool:
        # Without censoring SurvivalEVAL takes no weights, whatever is asked.
        return _settings.flag(asked, "IPCW_weighted") and not bool(self.event_indicators.all())

    def concordance_time_dependent(self, ties: str = "Risk", method: str = "Antolini") -> tuple[float, float, float]:
        """The time-dependent concordance with its numerator and denominator; ``ties`` is ``"None"``, ``"Risk"``, ``"Time"`` or
        ``"All"``, ``method`` ``"Antolini"`` or its alias ``"Naive"``.

        Raises :class:`fairtte.MetricError` for another word and without comparable pairs.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> evaluator.concordance_time_dependent("None")
        (1.0, 3.0, 3.0)
        """
        if method.lower() not in ("antolini", "naive"):
            raise MetricError(f'method is "{method}", expected "Antolini"')
        return self._inner.concordance_td(ties.lower(), self._threads)

    def auc(self, target_time: float | None = None, method: str = "Naive") -> float:
        """The cumulative/dynamic AUC at a time; ``method`` ``"IPCW"`` (alias ``"Uno"``) weighs cases by the training sample.

        Raises :class:`fairtte.MetricError` without cases, controls or, with weights, a training sample.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> evaluator.auc(2.0)
        1.0
        """
        if method.lower() not in ("naive", "ipcw", "uno"):
            raise MetricError(f'method is "{method}", expected "Naive" or "IPCW"')
        return self._inner.auc(self._target(target_time), method.lower() != "naive", self._threads)

    def brier_score(self, target_time: float | None = None, IPCW_weighted: bool = True) -> float:
        """The Brier score at a time.

        Raises :class:`fairtte.MetricError` where a weight does not exist, and with weights without a training sample.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> round(evaluator.brier_score(2.0, IPCW_weighted=False), 6)   # (0.2**2 + 0.1**2 + 0.6**2) / 3
        0.136667
        """
        return float(self.brier_score_multiple_points([self._target(target_time)], IPCW_weighted)[0])

    def brier_score_multiple_points(self, target_times: Any, IPCW_weighted: bool = True) -> NDArray[np.float64]:
        """The Brier score at each of several increasing times, ``[k]``.

        Raises :class:`fairtte.MetricError` as :meth:`brier_score`.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> evaluator.brier_score_multiple_points([2.0], IPCW_weighted=False).round(6)
        array([0.136667])
        """
        times = _inputs.numbers(target_times, "target_times")
        return np.array(self._inner.brier(times, self._weighted(IPCW_weighted), self._threads))

    def integrated_brier_score(
        self, num_points: int | None = None, target_times: Any = None, IPCW_weighted: bool = True
    ) -> float:
        """The Brier score averaged over time by trapezoids: over ``target_times``, over ``num_points`` times from 0 to the last
        observed one, or over all times of censored samples.

        Raises :class:`fairtte.MetricError` as :meth:`brier_score`, and for fewer than two times.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> 0 < evaluator.integrated_brier_score(target_times=[1.0, 2.0]) < 0.25
        True
        """
        if num_points is not None and target_times is not None:
            raise MetricError("num_points and target_times are both given, expected one of them")
        if target_times is not None:
            times = np.sort(_inputs.numbers(target_times, "target_times"))
        elif num_points is not None:
            if _settings.whole(num_points, "num_points") < 2:
                raise MetricError(f"num_points is {num_points}, expected at least 2")
            train = self.train_event_times
            last = float(max(self.event_times.max(), train.max() if train is not None else 0.0))
            times = np.linspace(0.0, last, num_points)
        else:
            times = np.unique(self.event_times[~self.event_indicators])
        if len(times) < 2:
            raise MetricError(f"there are {len(times)} times, expected at least 2 to average over: give target_times")
        return self._inner.integrated_brier(times, self._weighted(IPCW_weighted), self._threads)

    def d_calibration(self, num_bins: int = 10) -> tuple[float, NDArray[np.float64]]:
        """The p value of D-calibration, and the samples of every bin from the highest probabilities to the lowest.

        Raises :class:`fairtte.MetricError` for the number of bins.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> p, counts = evaluator.d_calibration(2)
        >>> round(float(counts.sum()), 9)
        3.0
        """
        p, mass = self._inner.d_calibration(_settings.whole(num_bins, "num_bins"), self._threads)
        return p, np.array(mass)

    def one_calibration(
        self,
        target_time: float | None = None,
        num_bins: int = 10,
        binning_strategy: str = "C",
        method: str = "DN",
        adjust_variance: bool = True,
    ) -> tuple[float, list[float], list[float]]:
        """The p value of calibration at a time, and the observed and the expected risk of every bin: ``"C"`` has bins of equal size from
        the highest risk down, ``"H"`` of equal width from the lowest up. ``"DN"`` takes the observed risk from the Kaplan-Meier curve
        of the bin, ``"Uncensored"`` leaves out those censored before; ``adjust_variance`` divides by its variance, otherwise by that of
        the expected risk.

        Raises :class:`fairtte.MetricError` for another word, and where the p value does not exist (SurvivalEVAL: NaN), as with
        ``adjust_variance`` of a bin without events.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves = [[0.25], [0.25], [0.75], [0.75]]
        >>> evaluator = SurvivalEvaluator(curves, [2.0], [1.0, 3.0, 1.0, 3.0], [1, 0, 1, 0])
        >>> p, observed, expected = evaluator.one_calibration(2.0, num_bins=2, adjust_variance=False)
        >>> round(p, 4), observed, expected   # chi-square 4/3 with 1 degree of freedom
        (0.2482, [0.5, 0.5], [0.75, 0.25])
        """
        if binning_strategy.lower() not in ("c", "h"):
            raise MetricError(f'binning_strategy is "{binning_strategy}", expected "C" or "H"')
        if method.lower() not in ("dn", "uncensored"):
            raise MetricError(f'method is "{method}", expected "DN" or "Uncensored"')
        # Without censoring SurvivalEVAL leaves no sample out, whatever the argument, and counts degrees of freedom accordingly.
        left_out = method.lower() == "uncensored" or bool(self.event_indicators.all())
        by_width, adjusted = binning_strategy.lower() == "h", _settings.flag(adjust_variance, "adjust_variance")
        return self._inner.one_calibration(
            self._target(target_time), _settings.whole(num_bins, "num_bins"), by_width, left_out, adjusted, self._threads
        )

    def km_calibration(self) -> float:
        """The mean square of the mean predicted curve minus the Kaplan-Meier curve, over time 0 and the event times by trapezoids; 0 =
        equal.

        Raises :class:`fairtte.MetricError` for an event after the last time of the curves, where SurvivalEVAL extends them.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> evaluator = SurvivalEvaluator([[1.0, 0.5], [1.0, 0.5]], [0.0, 2.0], [1.0, 2.0], [1, 0])
        >>> evaluator.km_calibration()   # 0.75 against 0.5 at time 1: (0 + 0.0625) / 2
        0.03125
        """
        return self._inner.km_calibration(self._threads)

    def predict_multi_probabilities_from_curve(self, target_times: Any) -> NDArray[np.float64]:
        """Survival at several increasing times, ``[n, k]``.

        Raises :class:`fairtte.MetricError` for times that do not increase.

        >>> from fairtte.survival_eval import SurvivalEvaluator
        >>> curves, outcome = [[0.8, 0.4], [0.9, 0.7], [0.6, 0.2]], ([3.0, 4.0, 1.0], [1, 0, 1])
        >>> evaluator = SurvivalEvaluator(curves, [2.0, 4.0], *outcome, *outcome)
        >>> evaluator.predict_multi_probabilities_from_curve([2.0])[:, 0]
        array([0.8, 0.9, 0.6])
        """
        return self._inner.probabilities(_inputs.numbers(target_times, "target_times"), self._threads)
