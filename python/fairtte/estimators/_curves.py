"""Outcomes as one array, and curves as functions of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _decimals, _inputs, _labels
from .._errors import MetricError


def surv(time: Any, event: Any) -> NDArray[Any]:
    """Times ``[n]`` and events ``[n]`` as one structured array with the fields ``event`` and ``time``, which
    scikit-learn can divide into folds; the same as scikit-survival's ``Surv.from_arrays``.

    Raises :class:`fairtte.MetricError` if the lengths or the labels of pandas differ, or an event is neither 0 nor 1.

    >>> from fairtte.estimators import surv
    >>> surv([1.5, 2.0], [True, False])
    array([( True, 1.5), (False, 2. )],
          dtype=[('event', '?'), ('time', '<f8')])
    """
    _labels.require_one_order(time=time, event=event)
    observed, events = _inputs.outcomes(time, event)
    if len(observed) != len(events):
        raise MetricError(f"time has {len(observed)} values and event {len(events)}, expected as many")
    found = np.empty(len(observed), dtype=[("event", np.bool_), ("time", np.float64)])
    found["event"], found["time"] = events, observed
    return found


class StepFunction:
    """The survival of one sample: 1 before ``x[0]``, ``y[j]`` from ``x[j]`` on, up to the last time of the fit. Of a cumulative hazard
    it is 0 (``before``) there.

    Attributes
    ----------
    x, y : array [k]
        Times, increasing, and survival in [0, 1] from each of them on.
    domain : (float, float)
        0 and the last time; a value outside is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import StepFunction
    >>> function = StepFunction(np.array([1.0, 2.0]), np.array([0.9, 0.5]))
    >>> function(1.5), function.domain
    (0.9, (0.0, 2.0))
    """

    def __init__(self, x: NDArray[np.float64], y: NDArray[np.float64], before: float = 1.0) -> None:
        self.x = x
        self.y = y
        self._before = before
        self.domain = (0.0, float(x[-1]))

    def __call__(self, time: Any) -> Any:
        """Survival at one time or several.

        >>> import numpy as np
        >>> from fairtte.estimators import StepFunction
        >>> StepFunction(np.array([1.0, 2.0]), np.array([0.9, 0.5]))([0.5, 1.0, 1.9, 2.0])
        array([1. , 0.9, 0.9, 0.5])
        """
        at = np.asarray(_decimals.as_written(_inputs.array(time, "time")), dtype=np.float64)
        outside = np.atleast_1d(at)[~((np.atleast_1d(at) >= 0.0) & (np.atleast_1d(at) <= self.domain[1]))]
        if len(outside):
            raise MetricError(f"time is {outside[0]}, expected times in [0, {self.domain[1]}], those of the fit")
        place = np.searchsorted(self.x, at, side="right")
        found = np.concatenate([[self._before], self.y])[place]
        return float(found) if at.ndim == 0 else found

    def __repr__(self) -> str:
        return f"StepFunction(x={self.x!r}, y={self.y!r})"
