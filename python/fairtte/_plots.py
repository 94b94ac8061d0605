"""Figures of an evaluation with matplotlib, which is optional: ``pip install fairtte[plot]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._errors import FairtteError, MetricError

if TYPE_CHECKING:
    from ._audit import Audit
    from .classes import ClassEvaluation
    from .evaluation import Evaluation

Of = TypeVar("Of", bound="Audit")


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise FairtteError("figures need matplotlib: pip install fairtte[plot]") from None
    return plt.subplots()[1] if ax is None else ax


def _group(found: dict[str, Any]) -> str:
    return "all" if found.get("attribute") is None else f"{found['attribute']}: {found['level']}"


def _calibration(curves: list[dict[str, Any]], ax: Any) -> Any:
    ax = _axes(ax)
    ax.axline((0, 0), slope=1, color="0.7", linestyle="--")
    for curve in curves:
        (line,) = ax.plot(curve["predicted"], curve["observed"], label=_group(curve))
        bins = curve["bins"]
        ax.plot([b["predicted"] for b in bins], [b["observed"] for b in bins], "o", color=line.get_color())
    if curves:
        ax.legend()
    return ax


class Plots(Generic[Of]):
    """The figures of any evaluation; each returns the axes that it drew on."""

    def __init__(self, evaluation: Of) -> None:
        self._evaluation = evaluation

    def forest(self, metric: str | None = None, ax: Any = None) -> Any:
        """The value of a metric (default: the first) over all samples and in every group, with intervals."""
        found = self._evaluation._metric(metric)
        if found is None:
            names = ", ".join(found["name"] for found in self._evaluation._metrics())
            raise MetricError(f'metric "{metric}" is not in this evaluation, expected one of: {names}')
        rows = [("all", found["overall"])]
        rows += [(f"{a['attribute']}: {g['level']}", g["estimate"]) for a in found["attributes"] for g in a["groups"]]
        ax = _axes(ax)
        for place, (_, number) in enumerate(rows):
            if number["value"] is None:
                continue
            if number["lower"] is not None:
                ax.plot([number["lower"], number["upper"]], [place, place], color="0.5")
            ax.plot(number["value"], place, "o", color="C0")
        ax.set_yticks(range(len(rows)), [label for label, _ in rows])
        ax.invert_yaxis()
        ax.set_xlabel(found["label"])
        return ax


class SurvivalPlots(Plots["Evaluation"]):
    """The figures of :class:`fairtte.Evaluation`."""

    def calibration(self, ax: Any = None) -> Any:
        """Predicted against observed risk at the horizon, overall and in every group."""
        report = self._evaluation.to_dict()
        ax = _calibration(report.get("calibration", []), ax)
        ax.set_xlabel(f"predicted risk at {report.get('horizon')} {self._evaluation.time_unit}".rstrip())
        ax.set_ylabel("observed risk")
        return ax

    def survival(self, ax: Any = None) -> Any:
        """Kaplan-Meier curve (steps) and mean of the predicted curves (dashes), overall and in every group."""
        ax = _axes(ax)
        for place, curve in enumerate(self._evaluation.to_dict()["curves"]):
            observed, predicted, colour = curve["kaplan-meier"], curve["predicted"], f"C{place % 10}"
            label = _group(curve)
            ax.step(observed["times"], observed["survival"], where="post", color=colour, label=label)
            ax.plot(predicted["times"], predicted["survival"], "--", color=colour)
        ax.set_xlabel(f"time {self._evaluation.time_unit}".rstrip())
        ax.set_ylabel("survival")
        ax.legend()
        return ax


class ClassPlots(Plots["ClassEvaluation"]):
    """The figures of :class:`fairtte.ClassEvaluation`."""

    def calibration(self, ax: Any = None) -> Any:
        """Predicted probability against the share of positive samples, overall and in every group."""
        ax = _calibration(self._evaluation.to_dict()["groups"]["calibration"], ax)
        ax.set_xlabel("predicted probability")
        ax.set_ylabel("share of positive samples")
        return ax

    def roc(self, ax: Any = None) -> Any:
        """True against false positive rates, overall and in every group."""
        ax = _axes(ax)
        ax.axline((0, 0), slope=1, color="0.7", linestyle="--")
        curves = self._evaluation.to_dict()["groups"]["roc"]
        for curve in curves:
            ax.plot(curve["false-positive"], curve["true-positive"], label=_group(curve))
        ax.set_xlabel("false positive rate")
        ax.set_ylabel("true positive rate")
        if curves:
            ax.legend()
        return ax
