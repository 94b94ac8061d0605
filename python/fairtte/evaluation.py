"""The evaluation of one model: metrics, groups, gaps, intervals, and their report."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from . import _fairtte, _inputs, _labels, _settings
from ._audit import Audit
from ._comparison import Comparison, names_of
from ._errors import FairtteWarning, MetricError


def evaluate(
    survival: Any,
    times: Any = None,
    time: Any = None,
    event: Any = None,
    *,
    groups: Any = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    subject: Any = None,
    train: tuple[Any, Any] | Any = None,
    metrics: Sequence[str] | None = None,
    baseline: Any = None,
    baseline_train: Any = None,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    intersections: bool = False,
    horizon: float | None = None,
    eval_times: Any = None,
    name: str = "model",
    time_unit: str = "",
    progress: bool = False,
    threads: int | None = None,
    **settings: Any,
) -> Evaluation:
    """Evaluates predicted survival curves against observed outcomes, overall and in groups.

    Parameters
    ----------
    survival : array [n, k] of float32 or float64
        Probability that sample i is free of the event at ``times[j]``, in [0, 1], never rising along a row. A NumPy array
        in any order, a tensor, a data frame with one row per sample, or, without ``times``, a pandas frame with the times
        as index and one column per sample (pycox). A NumPy array of float64 in C order is read where it lies and may not be
        written to during the evaluation or before a comparison, which are refused then; anything else is copied once.
    times : array [k]
        Times of the columns, increasing, in the unit of ``time``.
    time, event : array [n]
        Observed time (>= 0) and whether the event was observed then (booleans, or 0 and 1). Without ``event``, ``time`` is a
        structured array of scikit-survival's ``Surv``.
    groups : data frame, dict or list of named columns
        One sensitive attribute per column; a missing value (None, NaN, masked) belongs to no group. At most 20 different values; a
        categorical of pandas or an ``Enum`` of polars has up to 100 levels, in their order.
    cuts : dict
        Where numeric attributes are cut: ``{"age": [60]}`` gives ``<= 60`` and ``> 60``.
    subject : array [n]
        The person of every sample, which the bootstrap draws as a whole. Default: every sample is another person.
    train : (time, event), or a ``Surv`` array
        Outcomes of the training sample, on which the censoring curve is fitted. Default: the evaluated sample.
    metrics : list of str
        Names as :func:`fairtte.metric_names` lists them. Default: seven metrics of order, accuracy and calibration.
    baseline : data frame or dict of covariates [n]
        Adds a Cox model of these and the Kaplan-Meier curve beside the model, each sample predicted by fits of the other
        folds; with ``baseline_train``, the same covariates of the training sample, fitted on ``train``.
    replicates : int
        Bootstrap replicates; 0 gives no intervals.
    seed, level : int, float
        Of the intervals.
    intersections : bool
        Whether every two attributes are crossed as well.
    horizon : float
        Time of metrics about one time. Default: the median of the event times.
    eval_times : array
        Times of AUC and Brier score. Default: 100 between quantiles of the event times.
    name, time_unit : str
        Of the model and of ``time``, for the page.
    progress : bool
        Whether to show a bar of tqdm, which must be installed: blocks of 32 replicates or permutations, of the metrics that have
        begun.
    threads : int
        Default: ``RAYON_NUM_THREADS``, otherwise all processors.
    **settings
        Any other key of ``[evaluation]`` in a run file, with underscores: ``permutations``, ``interval``, ``stratify``,
        ``reading``, ``min_events``, ``thresholds``, ``reference``, ...

    Returns
    -------
    Evaluation

    Raises
    ------
    MetricError
        A ``ValueError`` that names the argument, what it is and what was expected.

    Examples
    --------
    >>> import numpy as np, fairtte
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.normal(size=200)
    >>> time = rng.exponential(np.exp(-risk))
    >>> times = np.linspace(0.1, 3.0, 20)
    >>> survival = np.exp(-np.outer(np.exp(risk), times))
    >>> found = fairtte.evaluate(survival, times, time, np.ones(200, bool), replicates=0,
    ...     groups={"sex": np.where(np.arange(200) % 2, "F", "M")}, metrics=["c-td"])
    >>> round(found["c_td"].value, 3)
    0.704
    >>> list(found.by_group["level"])
    ['F', 'M']
    """
    _settings.require_known(settings, _settings.EVALUATION, evaluate)
    name, time_unit = _settings.text(name, "name"), _settings.text(time_unit, "time_unit")
    intersections = _settings.flag(intersections, "intersections")
    curves, grid = _inputs.survival_and_times(survival, times)
    if time is None:
        raise MetricError("time is None, expected the observed times")
    observed, events = _inputs.outcomes(time, event)
    of_pycox = {"survival__columns": survival.columns} if times is None else {"survival": survival}
    _labels.require_one_order(**of_pycox, time=time, event=event, groups=groups, subject=subject, baseline=baseline)
    of_train = None if train is None else _of_train(train, baseline_train)
    attributes = _inputs.attributes(_inputs.columns(groups, "groups"), cuts, intersections)
    subjects = None if subject is None else [_inputs.text(value) for value in _known(subject, "subject")]
    chosen = settings | {"replicates": replicates, "seed": seed, "level": level}
    if metrics is not None:
        chosen["metrics"] = _settings.names(metrics, "metrics")
    if horizon is not None:
        chosen["horizon"] = _settings.number(horizon, "horizon")
    if eval_times is not None:
        chosen["eval_times"] = [float(t) for t in _inputs.numbers(eval_times, "eval_times")]
    covariates = None
    if baseline is not None:
        if baseline_train is not None and train is None:
            raise MetricError("baseline_train is given without train, expected the outcomes of the same samples")
        of_fit = None
        if baseline_train is not None:
            of_fit = _covariates(baseline_train, "baseline_train", len(of_train[0]) if of_train else 0)
        covariates = (_covariates(baseline, "baseline", len(observed)), of_fit)
        if of_fit is not None and [key for key, _ in of_fit] != [key for key, _ in covariates[0]]:
            raise MetricError("baseline_train has other columns than baseline, expected the same in the same order")
    elif baseline_train is not None:
        raise MetricError("baseline_train is given without baseline")
    with _inputs.bar("replicates", progress) as show:
        inner = _fairtte.evaluate(
            curves, grid, observed, events, attributes, intersections, subjects, of_train,
            _settings.to_json(chosen), covariates, show, threads,
        )  # fmt: skip
    kind = _inputs.frame_library(survival, times, groups, time, event, subject, train, baseline, baseline_train)
    found = Evaluation(inner, kind, name, time_unit, train is not None)
    _warn(inner.said[0])
    return found


def _warn(sentences: Sequence[str]) -> None:
    """Warnings of the call of `evaluate` or `evaluate_binary`."""
    for sentence in sentences:
        warnings.warn(sentence, FairtteWarning, stacklevel=3)


def _of_train(train: Any, baseline: Any = None) -> Any:
    """Times and events of ``(time, event)`` or a ``Surv`` array; ``baseline`` has covariates of the same samples."""
    if _inputs.is_frame(train):
        raise MetricError('train is a DataFrame, expected (time, event), such as (train["time"], train["event"]), or a Surv array')
    pair = train if isinstance(train, tuple | list) else (train, None)
    if len(pair) != 2:
        raise MetricError(f"train has {len(pair)} parts, expected (time, event)")
    _labels.require_one_order(train=list(pair), baseline_train=baseline)
    return _inputs.outcomes(pair[0], pair[1], "train")


def _known(column: Any, name: str) -> list[Any]:
    values = _inputs.values_of(column, name)
    if None in values:
        raise MetricError(f"{name}[{values.index(None)}] is missing")
    return values


def _covariates(value: Any, name: str, n: int) -> list[tuple[str, list[str | None]]]:
    found = []
    for key, column in _inputs.columns(value, name).items():
        values = _inputs.values_of(column, f'{name}["{key}"]')
        if len(values) != n:
            raise MetricError(f'{name}["{key}"] has {len(values)} values, expected {n}')
        found.append((key, [None if item is None else _inputs.text(item) for item in values]))
    return found


class Evaluation(Audit):
    """The result of :func:`evaluate`: frames, page, plots, comparison. It keeps the curves, for :meth:`compare`.

    Frames are of polars if an argument was, otherwise of pandas. ``[name]`` is the :class:`Estimate` of a metric over all
    samples.

    >>> import numpy as np, fairtte
    >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
    >>> sex = np.where(np.arange(40) % 2, "F", "M")
    >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
    ...     replicates=0, permutations=0, metrics=["c-td"])
    >>> found
    Evaluation of model: n = 40, events = 40
    C^td                   1
    """

    def __init__(self, inner: _fairtte.Evaluated, kind: str, name: str, time_unit: str, has_train: bool) -> None:
        self._inner = inner
        self._kind = kind
        self._has_train = has_train
        self.name = name
        self.time_unit = time_unit
        self._report: dict[str, Any] = json.loads(inner.to_json())

    @property
    def notes(self) -> list[str]:
        """What the page says beside the numbers: warnings that must be read before them (all curves equal, a ranking no better than
        guessing, groups that are censored differently; each is a :class:`fairtte.FairtteWarning` as well), that there is no ``train``,
        and how many samples lie outside the times of the curves.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> found.notes[0][:21]
        'There is no train: th'
        """
        return [*self._inner.said[0], *self._remarks()]

    def _remarks(self) -> list[str]:
        without = [] if self._has_train else [
            "There is no train: the censoring curve is fitted on the evaluated sample itself, and not, as recommended, on "
            "the sample that the model was trained on."
        ]  # fmt: skip
        return [*without, *self._inner.said[1]]

    @property
    def plot(self) -> Any:
        """Figures of matplotlib: ``.forest()``, ``.calibration()``, ``.survival()``.

        Raises :class:`fairtte.FairtteError` without matplotlib and :class:`fairtte.MetricError` for a metric that is not there.

        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> [label.get_text() for label in found.plot.forest("c-td").get_yticklabels()]
        ['all', 'sex: F', 'sex: M']
        """
        from ._plots import SurvivalPlots

        return SurvivalPlots(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as the ``evaluation.json`` of the command has it.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> found.to_dict()["n"]
        40
        """
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> str:
        """The same as text.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> found.to_json()[:1]
        '{'
        """
        return self._inner.to_json()

    def to_html(self) -> str:
        """The page of the report, the same as that of the command ``fairtte evaluate``: one file that needs no other.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> "<script" in found.to_html()
        False
        """
        censoring = "the training sample" if self._has_train else "the evaluated sample"
        facts = [("model", str(self.name)), ("fairtte", _fairtte.__version__)]
        return self._inner.to_html(f"Evaluation of {self.name}", self.time_unit, censoring, facts, self._remarks())

    def __reduce__(self) -> Any:
        # The curves are copied. A baseline cannot be read back from its text.
        arguments = (self._kind, self.name, self.time_unit, self._has_train)
        return _restored, (_fairtte.state(self._inner), *arguments)

    def compare(
        self,
        other: Evaluation,
        names: tuple[str, str] | None = None,
        threads: int | None = None,
        *,
        progress: bool = False,
    ) -> Comparison:
        """This model minus another one on the same samples, with paired intervals from the same bootstrap draws.

        Raises :class:`MetricError` if the two have other samples, groups, ``train`` or settings, or if a matrix of curves that was read
        without a copy was written to since.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 50)
        >>> time, event = 1 / hazard, np.ones(50, bool)
        >>> survival = np.exp(-np.outer(hazard, times))
        >>> good = fairtte.evaluate(survival, times, time, event, replicates=0, metrics=["c-td"], name="good")
        >>> bad = fairtte.evaluate(survival[::-1], times, time, event, replicates=0, metrics=["c-td"], name="bad")
        >>> float(good.compare(bad).overall["value"].iloc[0])
        1.0
        """
        called = names_of(self, other, names)
        with _inputs.bar("replicates", progress) as show:
            found = self._inner.compare(other._inner, called, show, threads)
        return Comparison(json.loads(found), self._kind)


def _restored(state: Any, *arguments: Any) -> Evaluation:
    """The evaluation of a pickle."""
    return Evaluation(_fairtte.restored(*state), *arguments)


def metric_names() -> dict[str, str]:
    """The metrics by name, each with one sentence on what it is.

    Examples
    --------
    >>> import fairtte
    >>> "ibs" in fairtte.metric_names()
    True
    """
    return dict(_fairtte.metric_names())
