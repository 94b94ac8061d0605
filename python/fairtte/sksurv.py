"""The metrics of scikit-survival under their names: the same arguments, values and shapes, computed in O(n log n).

Differences: the sentences of errors (all are :class:`fairtte.MetricError`, a ``ValueError``), ``tied_tol`` is 1e-8 or 0,
and what would be NaN is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _fairtte, _inputs, _labels, _settings
from ._errors import MetricError

__all__ = [
    "NoComparablePairException",
    "brier_score",
    "concordance_index_censored",
    "concordance_index_ipcw",
    "cumulative_dynamic_auc",
    "integrated_brier_score",
]

_Numbers = NDArray[np.float64]
_Flags = NDArray[np.bool_]


class NoComparablePairException(MetricError):
    """No two samples can be compared.

    >>> from fairtte.sksurv import concordance_index_censored
    >>> concordance_index_censored([False, True], [1.0, 2.0], [1.0, 2.0])
    Traceback (most recent call last):
    fairtte.sksurv.NoComparablePairException: no comparable pair (number of samples: 2, of events: 1)
    """


def _surv(value: Any, name: str) -> tuple[_Flags, _Numbers]:
    found = _inputs.array(value, name)
    if found.dtype.names is None or len(found.dtype.names) != 2:
        raise MetricError(f"{name} is no structured array of an event and a time, expected one as Surv makes it")
    event, time = (found[field] for field in found.dtype.names)
    if event.dtype != np.bool_:
        raise MetricError(f"the event of {name} has the type {event.dtype}, expected booleans")
    if not event.any():
        raise MetricError(f"all samples of {name} are censored, expected an event")
    return event, _inputs.numbers(time, f"the time of {name}")


def _exact(tied_tol: float) -> bool:
    if tied_tol not in (0.0, 1e-8):
        raise MetricError(f"tied_tol is {tied_tol}, expected 1e-8 or 0")
    return tied_tol == 0.0


def _estimate(value: Any, n: int) -> _Numbers:
    found = _inputs.numbers(value, "estimate")
    if len(found) != n:
        raise MetricError(f"estimate has {len(found)} values, expected {n}, one for each sample")
    return found


def _no_pairs(error: MetricError) -> MetricError:
    return NoComparablePairException(str(error)) if str(error).startswith("no comparable pair") else error


def concordance_index_censored(
    event_indicator: Any, event_time: Any, estimate: Any, tied_tol: float = 1e-8
) -> tuple[float, int, int, int, int]:
    """Harrell's C: C, concordant, discordant, pairs tied in the estimate, pairs of an event and a
    censoring at the same time.

    ``estimate`` is a risk: higher = the event is expected earlier.

    Raises :class:`fairtte.MetricError` for invalid input; :class:`NoComparablePairException` without comparable pairs.

    >>> from fairtte.sksurv import concordance_index_censored
    >>> concordance_index_censored([True, False, True], [1.0, 2.0, 3.0], [3.0, 1.0, 2.0])
    (1.0, 2, 0, 0, 0)
    """
    _labels.require_one_order(event_indicator=event_indicator, event_time=event_time, estimate=estimate)
    event = _inputs.array(event_indicator, "event_indicator")
    if event.dtype != np.bool_:
        raise MetricError(f"event_indicator has the type {event.dtype}, expected booleans")
    event, time = _inputs.flags(event, "event_indicator"), _inputs.numbers(event_time, "event_time")
    if len(event) != len(time):
        raise MetricError(f"event_indicator has {len(event)} values and event_time {len(time)}, expected as many")
    risk = _estimate(estimate, len(time))
    if len(time) < 2:
        raise MetricError(f"event_time has {len(time)} values, expected at least 2 samples")
    if not event.any():
        raise MetricError("all samples of event_indicator are censored, expected an event")
    try:
        found = _fairtte.harrell(event, time, risk, not _exact(tied_tol))
        return (*found[:4], _tied_times(event, time))
    except MetricError as error:
        raise _no_pairs(error) from None


def _tied_times(event: _Flags, time: _Numbers) -> int:
    """Pairs of an event and a censoring at the same time."""
    place = np.unique(time, return_inverse=True)[1]
    return int(np.dot(np.bincount(place, event), np.bincount(place, ~event)))


def concordance_index_ipcw(
    survival_train: Any, survival_test: Any, estimate: Any, tau: float | None = None, tied_tol: float = 1e-8
) -> tuple[float, int, int, int, int]:
    """Uno's C with weights of the training sample: C, concordant, discordant, pairs tied in the estimate, pairs of an event
    and a censoring at the same time. Only events before ``tau`` enter C; pairs are counted over all events.

    Raises :class:`fairtte.MetricError` for invalid input and where a weight does not exist; :class:`NoComparablePairException`.

    >>> import numpy as np
    >>> from fairtte.sksurv import concordance_index_ipcw
    >>> y = np.array([(True, 1.0), (False, 2.0), (True, 3.0), (False, 4.0)], dtype=[("e", "?"), ("t", "f8")])
    >>> c, *counts = concordance_index_ipcw(y, y, [0.9, 0.1, 0.5, 0.7])
    >>> round(c, 6), counts
    (0.571429, [3, 1, 0, 0])
    """
    event, time = _surv(survival_test, "survival_test")
    train_event, train_time = _surv(survival_train, "survival_train")
    risk = _estimate(estimate, len(time))
    if _exact(tied_tol):
        raise MetricError("tied_tol is 0, expected 1e-8: weighted pairs have this tolerance")
    tau = None if tau is None else _settings.number(tau, "tau")
    try:
        value = _fairtte.uno((train_time, train_event), event, time, risk, tau)[0]
        # Pairs are counted whatever tau is, as scikit-survival does.
        counts = _fairtte.harrell(event, time, risk, True)[1:4]
        return (value, *counts, _tied_times(event, time))
    except MetricError as error:
        raise _no_pairs(error) from None


def sorted_times(times: Any) -> _Numbers:
    """The different times in increasing order."""
    return np.unique(_given_times(times))


def _given_times(times: Any) -> _Numbers:
    found = _inputs.numbers(np.atleast_1d(_inputs.array(times, "times")), "times")
    if len(found) == 0:
        raise MetricError("times is empty, expected at least one time")
    if not np.all(np.isfinite(found)):
        raise MetricError("times has a value that is not finite")
    return found


def _times(times: Any, time: _Numbers, estimate: Any) -> _Numbers:
    """The different times in increasing order. They must be given so where a matrix ``estimate`` has a column for each."""
    given = _given_times(times)
    wrong = np.flatnonzero(np.diff(given) <= 0)
    if len(wrong) and _inputs.array(estimate, "estimate").ndim == 2:
        place = wrong[0] + 1
        raise MetricError(
            f"times[{place}] is {given[place]} after {given[place - 1]}, expected increasing times: estimate has a column for each"
        )
    found = np.unique(given)
    if found.max() >= time.max() or found.min() < time.min():
        raise MetricError(f"times go from {found.min()} to {found.max()}, expected to lie in [{time.min()}, {time.max()})")
    return found


def _columns(estimate: Any, n: int, times: _Numbers) -> NDArray[Any]:
    found = _inputs.array(estimate, "estimate")
    found = found[:, np.newaxis] if found.ndim == 1 else found
    found = _inputs.matrix(found, "estimate")
    if found.shape[0] != n:
        raise MetricError(f"estimate has {found.shape[0]} rows, expected {n}, one for each sample")
    return found


def cumulative_dynamic_auc(
    survival_train: Any, survival_test: Any, estimate: Any, times: Any, tied_tol: float = 1e-8
) -> tuple[_Numbers, float]:
    """The cumulative/dynamic AUC at ``times`` and its mean: ``estimate`` is a risk ``[n]``, or ``[n, k]`` with one column per
    time; the times must then increase.

    Raises :class:`fairtte.MetricError` for invalid input, times outside the observed ones and a time without cases or controls.

    >>> import numpy as np
    >>> from fairtte.sksurv import cumulative_dynamic_auc
    >>> y = np.array([(True, 1.0), (True, 2.0), (True, 3.0)], dtype=[("e", "?"), ("t", "f8")])
    >>> cumulative_dynamic_auc(y, y, [3.0, 1.0, 2.0], [1.0, 2.0])
    (array([1. , 0.5]), 0.75)
    """
    event, time = _surv(survival_test, "survival_test")
    train_event, train_time = _surv(survival_train, "survival_train")
    if _exact(tied_tol):
        raise MetricError("tied_tol is 0, expected 1e-8")
    grid = _times(times, time, estimate)
    risk = _columns(estimate, len(time), grid)
    if _inputs.array(estimate, "estimate").ndim == 2 and risk.shape[1] != len(grid):
        raise MetricError(f"estimate has {risk.shape[1]} columns, expected {len(grid)}, one for each of times")
    values, mean = _fairtte.cumulative_dynamic_auc(
        (train_time, train_event), event, time, np.asarray(risk, dtype=np.float64), grid
    )
    return np.array(values), mean


def brier_score(
    survival_train: Any, survival_test: Any, estimate: Any, times: Any
) -> tuple[_Numbers, _Numbers]:
    """The times and the Brier score at each of them: ``estimate`` ``[n, k]`` is the probability to be free of the event at
    each of k increasing times.

    Raises :class:`fairtte.MetricError` for invalid input, times outside the observed ones and where a weight does not exist.

    >>> import numpy as np
    >>> from fairtte.sksurv import brier_score
    >>> y = np.array([(True, 1.0), (True, 2.0), (True, 3.0)], dtype=[("e", "?"), ("t", "f8")])
    >>> brier_score(y, y, [[0.5], [0.5], [1.0]], [2.0])[1]
    array([0.16666667])
    """
    event, time = _surv(survival_test, "survival_test")
    train_event, train_time = _surv(survival_train, "survival_train")
    grid = _times(times, time, estimate)
    survival = _columns(estimate, len(time), grid)
    if survival.shape[1] != len(grid):
        raise MetricError(f"estimate has {survival.shape[1]} columns, expected {len(grid)}, one for each of times")
    return grid, np.array(_fairtte.brier_score((train_time, train_event), event, time, survival, grid))


def integrated_brier_score(survival_train: Any, survival_test: Any, estimate: Any, times: Any) -> float:
    """The Brier score integrated over ``times`` by trapezoids and divided by their range.

    Raises :class:`fairtte.MetricError` as :func:`brier_score`, and for fewer than two times.

    >>> import numpy as np
    >>> from fairtte.sksurv import integrated_brier_score
    >>> y = np.array([(True, 1.0), (True, 2.0), (True, 3.0)], dtype=[("e", "?"), ("t", "f8")])
    >>> round(integrated_brier_score(y, y, [[0.5, 0.5], [0.8, 0.5], [0.9, 0.9]], [1.0, 2.0]), 6)
    0.135
    """
    grid, scores = brier_score(survival_train, survival_test, estimate, times)
    if len(grid) < 2:
        raise MetricError(f"times has {len(grid)} different values, expected at least 2 to integrate over")
    steps = np.diff(grid)
    return float(np.sum(steps * (scores[1:] + scores[:-1]) / 2) / (grid[-1] - grid[0]))
