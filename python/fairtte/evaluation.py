"""The evaluation of one model: metrics, groups, gaps, intervals, and their report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _fairtte, _inputs
from ._audit import _DIFFERENCE, Audit, Estimate, _difference
from ._errors import MetricError


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
        One sensitive attribute per column; a missing value (None, NaN) belongs to no group.
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
    curves, grid = _inputs.survival_and_times(survival, times)
    if time is None:
        raise MetricError("time is None, expected the observed times")
    observed, events = _inputs.outcomes(time, event)
    of_train = None if train is None else _of_train(train)
    attributes = _inputs.attributes(_inputs.columns(groups, "groups"), cuts, intersections)
    subjects = None if subject is None else [_inputs.text(value) for value in _known(subject, "subject")]
    chosen = {key.replace("_", "-"): value for key, value in settings.items()}
    chosen |= {"replicates": replicates, "seed": seed, "level": level}
    if metrics is not None:
        chosen["metrics"] = [metrics] if isinstance(metrics, str) else list(metrics)
    if horizon is not None:
        chosen["horizon"] = float(horizon)
    if eval_times is not None:
        chosen["times"] = [float(t) for t in _inputs.numbers(eval_times, "eval_times")]
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
            json.dumps(chosen, default=_plain), covariates, show, threads,
        )  # fmt: skip
    kind = _inputs.frame_library(survival, groups, time, event)
    return Evaluation(inner, kind, name, time_unit, train is not None)


def _of_train(train: Any) -> Any:
    """Times and events of ``(time, event)`` or a ``Surv`` array."""
    pair = train if isinstance(train, tuple) else (train, None)
    if len(pair) != 2:
        raise MetricError(f"train has {len(pair)} parts, expected (time, event)")
    return _inputs.outcomes(pair[0], pair[1], "train")


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as those of JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise MetricError(f"a setting is a {type(value).__name__}, expected numbers, text or lists of them")


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
        from ._plots import Plots

        return Plots(self)

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
        notes = [] if self._has_train else [
            "There is no train: the censoring curve is fitted on the evaluated sample itself, and not, as recommended, on "
            "the sample that the model was trained on."
        ]  # fmt: skip
        facts = [("model", self.name), ("fairtte", _fairtte.__version__)]
        return self._inner.to_html(f"Evaluation of {self.name}", self.time_unit, censoring, facts, notes)

    def compare(
        self,
        other: Evaluation,
        names: tuple[str, str] | None = None,
        threads: int | None = None,
        *,
        progress: bool = False,
    ) -> Comparison:
        """This model minus another one on the same samples, with paired intervals from the same bootstrap draws.

        Raises :class:`MetricError` if the two have other samples, groups or settings, or if a matrix of curves that was read
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
        with _inputs.bar("replicates", progress) as show:
            found = self._inner.compare(other._inner, _names(self, other, names), show, threads)
        return Comparison(json.loads(found), self._kind)


def _names(first: Audit, second: Audit, names: tuple[str, str] | None) -> tuple[str, str]:
    """What two models are called in a comparison."""
    if names is not None:
        return names
    return (first.name, second.name) if first.name != second.name else (first.name, f"{second.name} (other)")


class Comparison:
    """One model minus another: :attr:`overall`, :attr:`by_group`, :attr:`gaps` as frames.

    >>> import numpy as np, fairtte
    >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
    >>> sex = np.where(np.arange(40) % 2, "F", "M")
    >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
    ...     replicates=0, permutations=0, metrics=["c-td"])
    >>> itself = found.compare(found)
    >>> float(itself.overall["value"].iloc[0]), list(itself.by_group["level"])
    (0.0, ['F', 'M'])
    """

    def __init__(self, found: dict[str, Any], kind: str) -> None:
        self._pairs: list[dict[str, Any]] = found["pairs"]
        self._kind = kind

    @property
    def overall(self) -> Any:
        """One row per metric: its difference over all samples.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> list(found.compare(found, ("a", "b")).overall["first"])
        ['a']
        """
        rows = [{"metric": p["metric"], "first": p["first"], "second": p["second"], **_difference(p["overall"])} for p in self._pairs]
        return _inputs.to_frame(rows, ("metric", "first", "second", *_DIFFERENCE), self._kind)

    @property
    def by_group(self) -> Any:
        """One row per metric, attribute and level.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> [float(value) for value in found.compare(found).by_group["value"]]
        [0.0, 0.0]
        """
        rows = [
            {"metric": p["metric"], "attribute": a["attribute"], "level": level, **_difference(found)}
            for p in self._pairs
            for a in p["attributes"]
            for level, found in a["groups"]
        ]
        return _inputs.to_frame(rows, ("metric", "attribute", "level", *_DIFFERENCE), self._kind)

    @property
    def gaps(self) -> Any:
        """One row per metric and attribute: the difference of the gaps.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> list(found.compare(found).gaps["attribute"])
        ['sex']
        """
        rows = [
            {"metric": p["metric"], "attribute": a["attribute"], **_difference(a["gap"])}
            for p in self._pairs
            for a in p["attributes"]
        ]
        return _inputs.to_frame(rows, ("metric", "attribute", *_DIFFERENCE), self._kind)


def metric_names() -> dict[str, str]:
    """The metrics by name, each with one sentence on what it is.

    Examples
    --------
    >>> import fairtte
    >>> "ibs" in fairtte.metric_names()
    True
    """
    return dict(_fairtte.metric_names())
