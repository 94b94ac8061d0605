"""Labels of pandas: arguments are read by position, as scikit-learn does, but not where labels say that the rows differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ._errors import MetricError


def _labels(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What labels the samples of an argument: the index of a frame or a column of pandas, or of several columns."""
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        for place, item in enumerate(value):
            is_pair = isinstance(item, tuple) and len(item) == 2
            key, column = item if is_pair else (getattr(item, "name", None), item)
            yield from _own_labels(column, f"{name}[{place}]" if key is None else f'{name}["{key}"]')
    else:
        yield from _own_labels(value, name)


def _own_labels(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if type(value).__module__.partition(".")[0] != "pandas":
        return
    if type(value).__name__ in ("DataFrame", "Series"):
        yield f"{name}.index", value.index
    elif name.endswith(".columns"):
        yield name, value


def _label(value: Any) -> Hashable:
    """A label that can be compared: every missing one is None, and one of several levels is a tuple."""
    if isinstance(value, tuple):
        return tuple(_label(part) for part in value)
    # NA, which is neither equal to itself nor different; NaN and NaT differ from themselves.
    if value is None or type(value).__name__ == "NAType":
        return None
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if not isinstance(value, Hashable):
        return repr(value)
    return value if value == value else None


def _labels_of(index: Any) -> list[Hashable]:
    # Whole numbers of NumPy need no look at each.
    return list(index.tolist()) if str(index.dtype).startswith(("int", "uint")) else [_label(label) for label in index]


def _is_default(index: Any, labels: list[Hashable]) -> bool:
    """Whether the labels are the numbers of the rows."""
    return index.dtype.kind in "iu" and bool(labels) and labels == list(range(len(labels)))


def refuse_permuted(**arguments: Any) -> None:
    """Refuses arguments of pandas whose labels are the same in another order. Two selections of one table, whose labels are others,
    may be paired."""
    _compare(arguments, are_same_rows=False)


def require_one_order(**arguments: Any) -> None:
    """Refuses arguments of pandas whose labels are the same in another order. Refuses different labels too, unless one of the two has a
    default index, the numbers of the rows. Arguments without labels, and those of another length, are no matter of this check.
    ``x__columns`` are the columns of ``x``, each a sample."""
    _compare(arguments, are_same_rows=True)


def _compare(arguments: Mapping[str, Any], are_same_rows: bool) -> None:
    found = [label for name, value in arguments.items() for label in _labels(value, name.replace("__", "."))]
    # Several arguments may have one index.
    known: dict[int, list[Hashable]] = {}
    for (first_name, first_index), (second_name, second_index) in combinations(found, 2):
        if len(first_index) != len(second_index) or first_index is second_index or first_index.equals(second_index):
            continue
        for index in (first_index, second_index):
            if id(index) not in known:
                known[id(index)] = _labels_of(index)
        first, second = known[id(first_index)], known[id(second_index)]
        place = next((k for k, (one, other) in enumerate(zip(first, second, strict=True)) if one != other), None)
        if place is None:
            continue
        is_same = set(first) == set(second)
        if not is_same and (not are_same_rows or _is_default(first_index, first) or _is_default(second_index, second)):
            continue
        differ = "the same labels in another order" if is_same else "other labels"
        raise MetricError(
            f"{second_name} has {differ} than {first_name}: row {place} is {second[place]} in one and {first[place]} in the other; "
            "expected one order, or arrays (.to_numpy()) if the rows do match"
        )
