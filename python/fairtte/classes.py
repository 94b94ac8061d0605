"""The audit of predicted probabilities of a class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _fairtte, _inputs, _labels, _settings
from ._audit import Audit, _numbers
from ._comparison import Comparison, names_of
from ._errors import MetricError
from .evaluation import _known, _of_train, _warn


class ClassEvaluation(Audit):
    """The result of :func:`evaluate_binary`: frames as those of :class:`fairtte.Evaluation`, :attr:`parity`, :meth:`roc`, page and
    comparison. In the frames an event is a positive sample.

    >>> import fairtte
    >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "M", "F", "M"]}, metrics=["auc"],
    ...     replicates=0, permutations=0, min_events=1)
    >>> found
    Evaluation of model: n = 4, positive = 2
    AUC                    0.75
    """

    _EVENTS = ("n-positive", "positive")

    def __init__(self, inner: _fairtte.EvaluatedClasses, kind: str, name: str, time_unit: str, has_train: bool) -> None:
        self._inner = inner
        self._found: dict[str, Any] = json.loads(inner.to_json())
        self._report: dict[str, Any] = self._found["report"]
        self._kind = kind
        self._has_train = has_train
        self.name = name
        self.time_unit = time_unit

    @property
    def parity(self) -> Any:
        """A data frame with one row per attribute and criterion at the threshold, of the groups that are compared:
        ``equal-opportunity-negative``, ``equal-opportunity-positive`` and ``equalised-odds`` (1 = equal),
        ``demographic-parity-difference`` (0), ``demographic-parity-ratio`` (1), ``underdiagnosis-difference`` (0).

        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "M", "F", "M"]}, replicates=0,
        ...     permutations=0, min_events=1)
        >>> float(found.parity.set_index("criterion").loc["demographic-parity-difference", "value"])
        1.0
        """
        rows = [
            {"attribute": found["attribute"], "criterion": criterion, **_numbers(value)}
            for found in self._report["parity"]
            for criterion, value in found.items()
            if criterion != "attribute"
        ]
        return _inputs.to_frame(rows, ("attribute", "criterion", "value", "lower", "upper", "reason"), self._kind)

    @property
    def at_horizon(self) -> Any:
        """Of a class made from times, a data frame with one row for all samples (attribute None) and per attribute and level: n,
        positive, negative, left_out (censored by the horizon), auc of those with a class, auc_weighted of all samples with weights for
        censoring, and their difference with its interval.

        Raises :class:`fairtte.MetricError` if the class was not made from times.

        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.5, 0.3, 0.4, 0.1], time=[1, 2, 3, 4, 5], event=[1, 0, 1, 0, 1], horizon=3.5,
        ...     replicates=0, permutations=0)
        >>> row = found.at_horizon.iloc[0]
        >>> int(row["positive"]), int(row["left_out"]), float(row["auc"])
        (2, 1, 0.75)
        """
        horizon = self._found["horizon"]
        if horizon is None:
            raise MetricError("the class was not made from times, expected an evaluation with a horizon")
        both = [_of_all_and_groups(horizon[which]) for which in ("naive", "weighted")]
        rows = [
            {
                "attribute": counts["attribute"],
                "level": counts["level"],
                "n": counts["n"],
                "positive": counts["n-positive"],
                "negative": counts["n-negative"],
                "left_out": counts["n-left-out"],
                "auc": naive.get("value"),
                "auc_weighted": weighted.get("value"),
                "difference": difference.get("value"),
                "lower": difference.get("lower"),
                "upper": difference.get("upper"),
            }
            for counts, naive, weighted, difference in zip(horizon["left-out"], *both, horizon["differences"], strict=True)
        ]
        return _inputs.to_frame(rows, _AT_HORIZON, self._kind)

    def roc(self, attribute: str | None = None, level: str | None = None) -> Any:
        """A data frame with the false and the true positive rates of all samples, or of one level of an attribute.

        Raises :class:`fairtte.MetricError` if there is no such group.

        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], replicates=0, permutations=0)
        >>> list(found.roc()["true_positive"])
        [0.0, 0.5, 0.5, 1.0, 1.0]
        """
        for curve in self._found["groups"]["roc"]:
            if (curve["attribute"], curve["level"]) == (attribute, level):
                columns = {"false_positive": curve["false-positive"], "true_positive": curve["true-positive"]}
                return _inputs.to_frame_of_columns(columns, self._kind, of=float)
        raise MetricError(f"there is no group {attribute!r}, {level!r} in this evaluation")

    @property
    def plot(self) -> Any:
        """Figures of matplotlib: ``.forest()``, ``.calibration()``, ``.roc()``.

        Raises :class:`fairtte.FairtteError` without matplotlib and :class:`fairtte.MetricError` for a metric that is not there.

        >>> import matplotlib; matplotlib.use("Agg")
        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "M", "F", "M"]}, metrics=["auc"],
        ...     replicates=0, permutations=0, min_events=1)
        >>> [label.get_text() for label in found.plot.forest("auc").get_yticklabels()]
        ['all', 'sex: F', 'sex: M']
        """
        from ._plots import ClassPlots

        return ClassPlots(self)

    @property
    def threshold(self) -> float:
        """The probability at or above which a sample is called positive.

        >>> import fairtte
        >>> sample = [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1]
        >>> fairtte.evaluate_binary(*sample, validation=sample, replicates=0, permutations=0).threshold   # F1 is 4/5 there
        0.2
        """
        return float(self._report["class"]["threshold"])

    def to_dict(self) -> dict[str, Any]:
        """Everything: ``report`` (metrics, parity, DeLong's variance, settings), ``groups`` (counts, ROC and calibration curves),
        ``horizon`` (None without times) and ``threshold``, how it was chosen.

        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "M", "F", "M"]}, metrics=["auc"],
        ...     replicates=0, permutations=0, min_events=1)
        >>> found.to_dict()["threshold"]
        'default'
        """
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> str:
        """The same as text.

        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "M", "F", "M"]}, metrics=["auc"],
        ...     replicates=0, permutations=0, min_events=1)
        >>> found.to_json()[:1]
        '{'
        """
        return json.dumps(self._found)

    def to_html(self) -> str:
        """The page of the report, that of ``fairtte evaluate --task binary``: one file that needs no other.

        >>> import fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "M", "F", "M"]}, metrics=["auc"],
        ...     replicates=0, permutations=0, min_events=1)
        >>> found.to_html()[:15].lower()
        '<!doctype html>'
        """
        fitted_on = "the training sample" if self._has_train else "the evaluated sample"
        censoring = "" if self._found["horizon"] is None else fitted_on
        facts = [("model", str(self.name)), ("fairtte", _fairtte.__version__)]
        return self._inner.to_html(f"Evaluation of {self.name}", self.time_unit, censoring, facts, self._remarks())

    @property
    def notes(self) -> list[str]:
        """What the page says beside the numbers: warnings that must be read before them (each is a :class:`fairtte.FairtteWarning` as
        well), and of a class made from times that there is no ``train``.

        >>> import fairtte
        >>> fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], replicates=0, permutations=0).notes
        []
        """
        return [*self._inner.warnings, *self._remarks()]

    def _remarks(self) -> list[str]:
        if self._found["horizon"] is None or self._has_train:
            return []
        return [
            "There is no train: the censoring curve of the weighted AUC is fitted on the evaluated sample itself, and not, as "
            "recommended, on the sample that the model was trained on."
        ]

    def __reduce__(self) -> Any:
        arguments = (self._kind, self.name, self.time_unit, self._has_train)
        return _restored_classes, (_fairtte.state_of_classes(self._inner), *arguments)

    def compare(
        self,
        other: ClassEvaluation,
        names: tuple[str, str] | None = None,
        threads: int | None = None,
        *,
        progress: bool = False,
    ) -> Comparison:
        """This model minus another one on the same samples at the same threshold, with paired intervals from the same bootstrap draws.

        Raises :class:`fairtte.MetricError` if the two have other samples, groups, threshold or settings.

        >>> import fairtte
        >>> label = [1, 1, 0, 0]
        >>> first = fairtte.evaluate_binary([0.9, 0.7, 0.6, 0.2], label, metrics=["auc"], replicates=0, permutations=0)
        >>> second = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], label, metrics=["auc"], replicates=0, permutations=0)
        >>> list(first.compare(second).overall["value"])
        [0.25]
        """
        called = names_of(self, other, names)
        with _inputs.bar("replicates", progress) as show:
            found = self._inner.compare(other._inner, called, show, threads)
        return Comparison(json.loads(found), self._kind)


_AT_HORIZON = (
    "attribute", "level", "n", "positive", "negative", "left_out", "auc", "auc_weighted", "difference", "lower", "upper",
)  # fmt: skip


def _of_all_and_groups(metric: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The estimate of all samples, then of every group."""
    return [metric["overall"], *(group["estimate"] for a in metric["attributes"] for group in a["groups"])]


def evaluate_binary(
    probability: Any,
    label: Any = None,
    *,
    time: Any = None,
    event: Any = None,
    horizon: float | None = None,
    train: tuple[Any, Any] | Any = None,
    validation: tuple[Any, ...] | None = None,
    groups: Any = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    subject: Any = None,
    threshold: float | None = None,
    metrics: Sequence[str] | None = None,
    replicates: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    intersections: bool = False,
    tnr: float = 0.8,
    calibration_error: Any = None,
    underdiagnosis: str = "missed-disease",
    name: str = "model",
    time_unit: str = "",
    progress: bool = False,
    threads: int | None = None,
    **settings: Any,
) -> ClassEvaluation:
    """Evaluates predicted probabilities of a class, overall and in groups, as ``fairtte evaluate --task binary`` does.

    Parameters
    ----------
    probability : array [n]
        Predicted probability of the positive class, in [0, 1].
    label : array [n]
        Whether the sample is positive: booleans, or 0 and 1.
    time, event, horizon : array [n], array [n], float > 0
        In place of ``label``: the class is the event by ``horizon``. Who is followed beyond it is negative, who is censored by then has
        no class and is left out of all but the weighted AUC (:attr:`ClassEvaluation.at_horizon`). Without ``event``, ``time`` is a
        ``Surv`` array.
    train : (time, event), or a ``Surv`` array
        Outcomes of the training sample, for the weights of that AUC. Default: the evaluated sample.
    validation : (probability, label), or with a horizon (probability, time, event)
        Other samples, on which the threshold with the highest F1 is chosen (the highest of several).
    groups, cuts, subject, intersections, replicates, seed, level, progress, threads
        As in :func:`fairtte.evaluate`.
    threshold : float in [0, 1]
        The probability at or above which a sample is called positive; the same for all groups. Default: 0.5, or by ``validation``.
    metrics : list of str
        Names as :func:`fairtte.class_metric_names` lists them. Default: all.
    permutations : int
        Of the groups, behind the p value of a gap; 0 gives none.
    tnr : float between 0 and 1
        The true negative rate at which ``tpr-at-tnr`` is read.
    calibration_error : dict
        ``{"bins": .., ...}`` as ``calibration-error`` of the program. Default: 15 bins of equal width.
    underdiagnosis : "missed-disease" or "called-no-finding"
        Whether the underdiagnosis is the false negative rate, or the false positive rate of "no finding".
    **settings
        ``interval``, ``stratify``, ``resample``, ``min_events`` (samples of the rarer class), ``reference``.

    Raises
    ------
    MetricError
        A ``ValueError`` that names the argument, what it is and what was expected.

    Examples
    --------
    >>> import fairtte
    >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], groups={"sex": ["F", "F", "M", "M"]},
    ...     replicates=0, permutations=0, min_events=1)
    >>> found["auc"].value, found["fnr"].value
    (0.75, 0.5)
    >>> list(found.by_group.query("metric == 'selection-rate'")["value"])
    [0.5, 0.5]
    """
    _settings.require_known(settings, _settings.CLASS_EVALUATION, evaluate_binary)
    name, time_unit = _settings.text(name, "name"), _settings.text(time_unit, "time_unit")
    intersections = _settings.flag(intersections, "intersections")
    if threshold is not None and validation is not None:
        raise MetricError(f"threshold is {threshold} and validation is given, expected one of them")
    probabilities, labels, timed = _inputs.numbers(probability, "probability"), None, None
    if horizon is None:
        if label is None or time is not None or event is not None or train is not None:
            raise MetricError("horizon is None, expected label without time, event and train, or a horizon with times")
        labels = _inputs.flags(label, "label")
    else:
        if label is not None or time is None:
            raise MetricError("horizon makes the class from times, expected time and event without label")
        timed = (*_inputs.outcomes(time, event), _settings.number(horizon, "horizon"))
    other = None if validation is None else _of_validation(validation, has_times=timed is not None)
    _labels.require_one_order(probability=probability, label=label, time=time, event=event, groups=groups, subject=subject)
    of_train = None if train is None else _of_train(train)
    attributes = _inputs.attributes(_inputs.columns(groups, "groups"), cuts, intersections)
    subjects = None if subject is None else [_inputs.text(value) for value in _known(subject, "subject")]
    chosen = settings | {"replicates": replicates, "permutations": permutations, "seed": seed, "level": level}
    of_class: dict[str, Any] = {"tnr": tnr, "underdiagnosis": underdiagnosis}
    if threshold is not None:
        of_class["threshold"] = threshold
    if calibration_error is not None:
        of_class["calibration_error"] = _with_hyphens(calibration_error)
    wanted = None if metrics is None else _metrics_of_class(metrics)
    with _inputs.bar("replicates", progress) as show:
        inner = _fairtte.evaluate_binary(
            probabilities, labels, timed, of_train, other, attributes, intersections, subjects, _settings.to_json(of_class),
            threshold is not None, _settings.to_json(chosen), wanted, show, threads,
        )  # fmt: skip
    kind = _inputs.frame_library(probability, groups, label, time, event, subject, train, validation)
    found = ClassEvaluation(inner, kind, name, time_unit, train is not None)
    _warn(inner.warnings)
    return found


def _metrics_of_class(metrics: Any) -> list[str]:
    """The names of metrics, each of them once."""
    names = _settings.names(metrics, "metrics")
    if not names:
        raise MetricError("metrics is [], expected at least one name")
    wrong = next((name for name in names if name not in class_metric_names()), None)
    if wrong is not None:
        raise MetricError(f'metric "{wrong}" does not exist, expected one of: {", ".join(class_metric_names())}')
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MetricError(f"metrics is {names}, expected {twice} once")
    return names


def _restored_classes(state: Any, *arguments: Any) -> ClassEvaluation:
    """The evaluation of a pickle."""
    return ClassEvaluation(_fairtte.restored_classes(*state), *arguments)


def _with_hyphens(value: Any) -> Any:
    """A dict of settings with the names of the run file."""
    return {str(key).replace("_", "-"): item for key, item in value.items()} if isinstance(value, Mapping) else value


def _of_validation(validation: tuple[Any, ...], has_times: bool) -> tuple[Any, Any, Any]:
    """Probabilities, times (None without) and classes or events of the samples that a threshold is chosen on."""
    expected = "(probability, time, event), or a Surv array in place of the last two" if has_times else "(probability, label)"
    if not isinstance(validation, tuple) or len(validation) not in ((2, 3) if has_times else (2,)):
        raise MetricError(f"validation is not {expected}")
    _labels.require_one_order(validation=list(validation))
    probability = _inputs.numbers(validation[0], "probability of validation")
    if not has_times:
        return probability, None, _inputs.flags(validation[1], "label of validation")
    return probability, *_inputs.outcomes(validation[1], validation[2] if len(validation) == 3 else None, "time of validation")


def class_metric_names() -> dict[str, str]:
    """The metrics of :func:`evaluate_binary` by name, each with what it is.

    >>> from fairtte import class_metric_names
    >>> class_metric_names()["auc"]
    'area under the ROC curve, ties count 1/2'
    """
    return dict(_fairtte.class_metric_names())
