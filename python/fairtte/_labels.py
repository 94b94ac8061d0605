"""Labels of pandas: arguments are read by position, as scikit-learn does, but not where labels say that the rows differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ._errors import MetricError


def _labels(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What labels the samples of an argument: the index of a frame or a column of pandas, or of several columns."""
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        for item in value:
            is_pair = isinstance(item, tuple) and len(item) == 2
            key, column = item if is_pair else (getattr(item, "name", ""), item)
            yield from _own_labels(column, f'{name}["{key}"]')
    else:
        yield from _own_labels(value, name)


def _own_labels(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if type(value).__module__.partition(".")[0] != "pandas":
        return
    if type(value).__name__ in ("DataFrame", "Series"):
        yield f"{name}.index", value.index
    elif name.endswith(".columns"):
        yield name, value


def _is_default(index: Any) -> bool:
    """Whether the labels are the numbers of the rows."""
    return bool(index.dtype.kind in "iu" and len(index) and index[0] == 0 and (index == np.arange(len(index))).all())


def require_one_order(**arguments: Any) -> None:
    """Refuses arguments of pandas whose labels are the same in another order. Refuses different labels too, unless one of the two has a
    default index, the numbers of the rows. Arguments without labels, and those of another length, are no matter of this check. ``x__columns`` are the columns of
    ``x``, each a sample."""
    found = [label for name, value in arguments.items() for label in _labels(value, name.replace("__", "."))]
    for (first_name, first), (second_name, second) in combinations(found, 2):
        if len(first) != len(second) or first is second or first.equals(second):
            continue
        is_same = bool(first.isin(second).all() and second.isin(first).all())
        if not is_same and (_is_default(first) or _is_default(second)):
            continue
        differ = "the same labels in another order" if is_same else "other labels"
        place = next((k for k, (one, other) in enumerate(zip(first, second, strict=True)) if not one == other), None)
        if place is None:
            continue
        raise MetricError(
            f"{second_name} has {differ} than {first_name}: row {place} is {second[place]} in one and {first[place]} in the other; "
            "expected one order, or arrays (.to_numpy()) if the rows do match"
        )
