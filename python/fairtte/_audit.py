"""What every audit shows: its metrics overall and in groups, as data frames."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _inputs

if TYPE_CHECKING:
    from typing_extensions import Self


class Estimate:
    """A number with its interval: ``value``, ``lower``, ``upper`` (None where they do not exist), ``reason``, ``n``,
    ``n_events``.

    >>> import numpy as np, fairtte
    >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
    >>> sex = np.where(np.arange(40) % 2, "F", "M")
    >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
    ...     replicates=0, permutations=0, metrics=["c-td"])
    >>> found["c-td"]
    1
    >>> found["c-td"].n, found["c-td"].lower is None
    (40, True)
    """

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.value: float | None = found.get("value")
        self.lower: float | None = found.get("lower")
        self.upper: float | None = found.get("upper")
        self.reason: str | None = found.get("undefined") or found.get("interval-undefined") or found.get("caution")
        self.n: int = found.get("n", 0)
        self.n_events: int = found.get("n-events", 0)

    def __repr__(self) -> str:
        if self.value is None:
            return f"undefined: {self.reason}"
        interval = "" if self.lower is None or self.upper is None else f" ({self.lower:.4g} to {self.upper:.4g})"
        return f"{self.value:.4g}{interval}"


_SHORT = {"c_td": "c_td_antolini_strict", "c-td": "c_td_antolini_strict", "c-td-half": "c_td_half", "auc-td": "auc_td"}
_COMPARISONS = ["gap", "worst", "gap-to-overall", "ratio", "ratio-to-overall", "equity-scaling"]


class Audit:
    """Metrics with groups, differences and gaps. Frames are of polars if an argument was, otherwise of pandas. ``[name]`` is the
    :class:`Estimate` of a metric over all samples."""

    name: str
    _kind: str
    _report: dict[str, Any]
    # The key of the report that counts events, and what they are called.
    _EVENTS = ("n-events", "events")

    def _metrics(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._report["metrics"]
        return found

    def _metric(self, metric: str | None) -> dict[str, Any] | None:
        """The metric of this name; the first for None."""
        wanted = self._metrics()[0]["name"] if metric is None else _SHORT.get(metric, metric)
        return next((found for found in self._metrics() if found["name"] == wanted), None)

    def __getitem__(self, metric: str) -> Estimate:
        found = self._metric(metric) if isinstance(metric, str) else None
        if found is None:
            names = [found["name"] for found in self._metrics()]
            # One of decisions or about a time comes once for each threshold or time.
            near = [name for name in names if name.startswith((f"{metric}:", f"{metric}@"))]
            near = near or get_close_matches(str(metric), names, 3, 0.6) or names
            raise KeyError(f"{metric} is not a metric of this evaluation, expected one of: {', '.join(near)}")
        return Estimate(found["overall"])

    def __iter__(self) -> Iterator[str]:
        return (found["name"] for found in self._metrics())

    def __contains__(self, metric: object) -> bool:
        return isinstance(metric, str) and self._metric(metric) is not None

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Nothing of an evaluation changes but its attributes.
        found = type(self).__new__(type(self))
        found.__dict__ |= self.__dict__
        return found

    _NUMBERS = ("value", "lower", "upper", "n", "events", "reason")

    @property
    def overall(self) -> Any:
        """One row per metric: metric, label, value, lower, upper, n, events, reason.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> list(found.overall["metric"]), [float(value) for value in found.overall["value"]]
        (['c_td_antolini_strict'], [1.0])
        """
        rows = [{"metric": m["name"], "label": m["label"], **_numbers(m["overall"])} for m in self._metrics()]
        return _inputs.to_frame(rows, ("metric", "label", *self._NUMBERS), self._kind)

    @property
    def by_group(self) -> Any:
        """One row per metric, attribute and level: its value with its interval.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> list(found.by_group["level"]), [int(n) for n in found.by_group["n"]]
        (['F', 'M'], [20, 20])
        """
        rows = [
            {"metric": m["name"], "attribute": a["attribute"], "level": g["level"], **_numbers(g["estimate"])}
            for m in self._metrics()
            for a in m["attributes"]
            for g in a["groups"]
        ]
        return _inputs.to_frame(rows, ("metric", "attribute", "level", *self._NUMBERS), self._kind)

    @property
    def differences(self) -> Any:
        """One row per metric, attribute and two levels: first minus second, with p values (p_holm: adjusted by Holm).

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> found.differences.loc[0, ["first", "second"]].to_list()
        ['F', 'M']
        """
        rows = [
            {
                "metric": m["name"],
                "attribute": a["attribute"],
                "first": d["first"],
                "second": d["second"],
                **_difference(d["difference"]),
            }
            for m in self._metrics()
            for a in m["attributes"]
            for d in a["differences"]
        ]
        return _inputs.to_frame(rows, ("metric", "attribute", "first", "second", *_DIFFERENCE), self._kind)

    @property
    def gaps(self) -> Any:
        """One row per metric, attribute and comparison of all its groups: ``gap`` (the largest difference, with the p value of
        exchanged labels), ``worst``, ``gap-to-overall``, ``ratio``, ``ratio-to-overall``, ``equity-scaling``.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> dict(zip(found.gaps["comparison"], found.gaps["value"]))["gap"]
        0.0
        """
        rows = []
        for m in self._metrics():
            for a in m["attributes"]:
                for comparison in _COMPARISONS:
                    row = {"metric": m["name"], "attribute": a["attribute"], "comparison": comparison}
                    row |= _numbers(a[comparison])
                    if comparison == "gap":
                        by_chance = a.get("gap-by-chance") or {}
                        row |= {"corrected": a.get("gap-corrected"), "by_chance": by_chance.get("mean")}
                        row["p"] = by_chance.get("p-value")
                    if comparison == "worst":
                        row["level"] = a.get("worst-group")
                    rows.append(row)
        names = ("metric", "attribute", "comparison", "level", *self._NUMBERS, "corrected", "by_chance", "p")
        return _inputs.to_frame(rows, names, self._kind)

    def to_html(self) -> str:
        """The page of the report: one file that needs no other.

        >>> import numpy as np, fairtte
        >>> times, hazard = np.linspace(0.5, 3.0, 6), np.linspace(0.2, 2.0, 40)
        >>> sex = np.where(np.arange(40) % 2, "F", "M")
        >>> found = fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, 1 / hazard, np.ones(40, bool), groups={"sex": sex},
        ...     replicates=0, permutations=0, metrics=["c-td"])
        >>> found.to_html()[:15].lower()
        '<!doctype html>'
        """
        raise NotImplementedError

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes :meth:`to_html` to a file, all of it or nothing, and returns its path.

        Raises ``OSError`` if the file cannot be written.

        >>> import pathlib, tempfile, fairtte
        >>> found = fairtte.evaluate_binary([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], replicates=0, permutations=0)
        >>> page = found.report(pathlib.Path(tempfile.mkdtemp()) / "report.html")
        >>> page.name, page.read_text()[:15].lower()
        ('report.html', '<!doctype html>')
        """
        target = Path(path)
        page = self.to_html()
        # Beside the target, because only within a folder is a file renamed in one step.
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            unfinished.write_text(page, encoding="utf-8")
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)
        return target

    def __repr__(self) -> str:
        key, events = self._EVENTS
        lines = [f"{m['label']:<22} {Estimate(m['overall'])!r}" for m in self._metrics()]
        return "\n".join([f"Evaluation of {self.name}: n = {self._report['n']}, {events} = {self._report[key]}", *lines])

    def _repr_html_(self) -> str:
        attributes = self._metrics()[0]["attributes"] if self._metrics() else []
        names = ["metric", "all samples", *(f"gap of {a['attribute']}" for a in attributes)]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = f"<tr>{head}</tr>" + "".join(
            f"<tr><td>{html.escape(m['label'])}</td><td>{html.escape(repr(Estimate(m['overall'])))}</td>"
            + "".join(
                f"<td>{html.escape(repr(Estimate(a['gap'])))}</td>"
                for a in m["attributes"]
            )
            + "</tr>"
            for m in self._metrics()
        )
        key, events = self._EVENTS
        heading = f"{html.escape(self.name)}: {self._report['n']} samples, {self._report[key]} {events}"
        return f"<table><caption>{heading}</caption>{rows}</table>"


_DIFFERENCE = ("value", "lower", "upper", "p", "p_holm", "reason")


def _difference(found: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"value": "value", "lower": "lower", "upper": "upper", "p": "p-value", "p_holm": "p-holm", "reason": "undefined"}
    return {name: found.get(key) for name, key in keys.items()}


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    estimate = Estimate(found)
    return {
        "value": estimate.value,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "n": estimate.n,
        "events": estimate.n_events,
        "reason": estimate.reason,
    }
