"""The comparison of two models on the same samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _inputs
from ._audit import _DIFFERENCE, Audit, Estimate, _difference
from ._errors import MetricError


def names_of(first: Audit, second: Audit, names: tuple[str, str] | None) -> tuple[str, str]:
    """What two models are called in a comparison; another kind of evaluation is an error."""
    if type(first) is not type(second):
        expected = "an Evaluation" if type(first).__name__ == "Evaluation" else f"a {type(first).__name__}"
        raise MetricError(f"other is a {type(second).__name__}, expected {expected}")
    if names is not None:
        if isinstance(names, str) or len(names) != 2:
            raise MetricError(f"names is {names!r}, expected two names")
        return (str(names[0]), str(names[1]))
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

    def __repr__(self) -> str:
        lines = [f"{pair['metric']:<24} {_shown_difference(pair['overall'])}" for pair in self._pairs]
        names = f"{self._pairs[0]['first']} minus {self._pairs[0]['second']}" if self._pairs else "no metrics"
        return "\n".join([f"Comparison: {names}", *lines])

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


def _shown_difference(found: Mapping[str, Any]) -> str:
    shown = _difference(found)
    p = "" if shown["p"] is None else f", p = {shown['p']:.3g}"
    return f"{Estimate(found)!r}{p}"
