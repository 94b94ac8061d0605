"""The audit of predicted probabilities of a class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _fairtte, _inputs
from ._audit import Audit, _numbers
from ._errors import MetricError
from .evaluation import _known, _plain


class ClassEvaluation(Audit):
    """The result of :func:`evaluate_binary`: frames as those of :class:`fairtte.Evaluation`, :attr:`parity`, :meth:`roc`. In the
    frames an event is a positive sample."""

    _EVENTS = ("n-positive", "positive")

    def __init__(self, found: dict[str, Any], kind: str, name: str) -> None:
        self._report: dict[str, Any] = found["report"]
        self._groups: dict[str, Any] = found["groups"]
        self._kind = kind
        self.name = name

    @property
    def parity(self) -> Any:
        """A data frame with one row per attribute and criterion at the threshold, of the groups that are compared:
        ``equal-opportunity-negative``, ``equal-opportunity-positive`` and ``equalised-odds`` (1 = equal),
        ``demographic-parity-difference`` (0), ``demographic-parity-ratio`` (1), ``underdiagnosis-difference`` (0)."""
        rows = [
            {"attribute": found["attribute"], "criterion": criterion, **_numbers(value)}
            for found in self._report["parity"]
            for criterion, value in found.items()
            if criterion != "attribute"
        ]
        return _inputs.to_frame(rows, ("attribute", "criterion", "value", "lower", "upper", "reason"), self._kind)

    def roc(self, attribute: str | None = None, level: str | None = None) -> Any:
        """A data frame with the false and the true positive rates of all samples, or of one level of an attribute."""
        for curve in self._groups["roc"]:
            if (curve["attribute"], curve["level"]) == (attribute, level):
                columns = {"false_positive": curve["false-positive"], "true_positive": curve["true-positive"]}
                return _inputs.to_frame_of_columns(columns, self._kind)
        raise MetricError(f"there is no group {attribute!r}, {level!r} in this evaluation")

    @property
    def threshold(self) -> float:
        """The probability from which on a sample is called positive."""
        return float(self._report["class"]["threshold"])

    def to_dict(self) -> dict[str, Any]:
        """Everything: ``report`` (metrics, parity, DeLong's variance, settings) and ``groups`` (counts, ROC and calibration
        curves)."""
        return {"report": self._report, "groups": self._groups}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict())


def evaluate_binary(
    probability: Any,
    label: Any,
    *,
    groups: Any = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    subject: Any = None,
    threshold: float = 0.5,
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
    groups, cuts, subject, intersections, replicates, seed, level, threads
        As in :func:`fairtte.evaluate`.
    threshold : float in [0, 1]
        The probability from which on a sample is called positive; the same for all groups.
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
    unknown = set(settings) - {"interval", "stratify", "resample", "min_events", "reference"}
    if unknown:
        raise MetricError(f"{min(unknown)} is no setting of a class, expected one of the arguments of evaluate_binary")
    probabilities, labels = _inputs.numbers(probability, "probability"), _inputs.flags(label, "label")
    attributes = _inputs.attributes(_inputs.columns(groups, "groups"), cuts, intersections)
    subjects = None if subject is None else [_inputs.text(value) for value in _known(subject, "subject")]
    chosen = {key.replace("_", "-"): value for key, value in settings.items()}
    chosen |= {"replicates": replicates, "permutations": permutations, "seed": seed, "level": level}
    of_class: dict[str, Any] = {"threshold": threshold, "tnr": tnr, "underdiagnosis": underdiagnosis}
    if calibration_error is not None:
        of_class["calibration-error"] = calibration_error
    wanted = None if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    wrong = [metric for metric in wanted or [] if metric not in class_metric_names()]
    if wrong:
        raise MetricError(f'metric "{wrong[0]}" does not exist, expected one of: {", ".join(class_metric_names())}')
    found = json.loads(
        _fairtte.evaluate_binary(
            probabilities, labels, attributes, intersections, subjects, json.dumps(of_class, default=_plain),
            json.dumps(chosen, default=_plain), threads,
        )
    )  # fmt: skip
    if wanted is not None:
        of_name = {metric["name"]: metric for metric in found["report"]["metrics"]}
        found["report"]["metrics"] = [of_name[metric] for metric in wanted]
    return ClassEvaluation(found, _inputs.frame_library(probability, groups, label), name)


def class_metric_names() -> dict[str, str]:
    """The metrics of :func:`evaluate_binary` by name, each with what it is.

    >>> from fairtte import class_metric_names
    >>> class_metric_names()["auc"]
    'area under the ROC curve, ties count 1/2'
    """
    return dict(_fairtte.class_metric_names())
