"""From what callers have (NumPy, pandas, polars, torch, scikit-survival) to arrays of fixed types.

Nothing here imports pandas, polars or torch: their objects are known by the module of their type, tensors also by their class where
torch has been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _decimals
from ._errors import FairtteError, MetricError

Array = NDArray[Any]

# Most different values of an attribute, as the program has it, and most levels of one that declares them.
MOST_VALUES = 20
MOST_LEVELS = 100
_CAUSES = "one of several causes is evaluated by the program: fairtte evaluate --cause"


def library(value: object) -> str:
    """The package that the type of a value comes from, for example ``"pandas"``."""
    return type(value).__module__.partition(".")[0]


def is_frame(value: object) -> bool:
    """Whether a value is a data frame of pandas or polars."""
    return library(value) in ("pandas", "polars") and type(value).__name__ == "DataFrame"


def _is_tensor(kind: type) -> bool:
    """Whether a type is that of tensors of torch, or a subclass such as MONAI's ``MetaTensor``."""
    known = getattr(sys.modules.get("torch"), "Tensor", None)
    if isinstance(known, type) and issubclass(kind, known):
        return True
    return kind.__module__.partition(".")[0] == "torch" and hasattr(kind, "detach")


def _has_tensors(value: Any) -> bool:
    """Whether a list or tuple has a tensor, also in one of its lists."""
    kinds = set(map(type, value))
    if any(_is_tensor(kind) for kind in kinds):
        return True
    return any(issubclass(kind, list | tuple) for kind in kinds) and any(
        isinstance(item, list | tuple) and _has_tensors(item) for item in value
    )


def without_tensors(value: Any, name: str) -> Any:
    """A tensor of torch, which comes from its device, as an array, and a list or tuple of tensors as one of arrays; another value as it
    is."""
    if _is_tensor(type(value)):
        return _of_tensor(value, name)
    if isinstance(value, list | tuple) and _has_tensors(value):
        # An array without dimensions is the number in it.
        items = [without_tensors(item, name) for item in value]
        return [item[()] if isinstance(item, np.ndarray) else item for item in items]
    return value


def _of_tensor(value: Any, name: str) -> Array:
    """The array of a tensor; one that is not dense becomes so, and bfloat16, which NumPy does not have, becomes float32."""
    try:
        on_host = value.detach().cpu()
        if str(getattr(on_host, "layout", "torch.strided")) != "torch.strided":
            on_host = on_host.to_dense()
        try:
            return np.asarray(on_host.numpy())
        except TypeError:
            return np.asarray(on_host.float().numpy())
    except Exception as error:
        raise MetricError(f"{name} is a {type(value).__name__} that is no array: {error}") from None


def array(value: Any, name: str) -> Array:
    """A NumPy array of a value, without a copy where its memory allows it; tensors of torch come from their device."""
    value = _decimals.of_list(without_tensors(value, name))
    if library(value) in ("pandas", "polars"):
        if not hasattr(value, "to_numpy"):
            raise MetricError(f"{name} is a {type(value).__name__}, expected its collect() or to_frame()")
        value = value.to_numpy()
    try:
        found = np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        raise MetricError(f"{name} is no array: {error}") from None
    if _is_masked(value) or isinstance(value, list | tuple) and any(_is_masked(item) for item in value):
        raise MetricError(f"{name} is a masked array, expected one without missing values")
    return found


def _is_masked(value: Any) -> bool:
    return isinstance(value, np.ma.MaskedArray)


def vector(value: Any, name: str) -> Array:
    """An array of one dimension."""
    found = array(value, name)
    if found.ndim != 1:
        shown = f"{value!r}" if found.ndim == 0 else f"a {type(value).__name__} of the shape {found.shape}"
        raise MetricError(f"{name} is {shown}, expected a vector")
    return found


def numbers(value: Any, name: str) -> NDArray[np.float64]:
    """A vector of numbers in double precision; those of single precision are the decimals that they are written as."""
    return _to_double(_decimals.as_written(vector(value, name)), name)


def _to_double(found: Array, name: str, expected: str = "a number") -> NDArray[np.float64]:
    if found.dtype.kind == "O":
        try:
            return _in_rows(found)
        except (TypeError, ValueError):
            for place in np.ndindex(found.shape):
                value, at = found[place], ", ".join(str(k) for k in place)
                if _is_missing(value):
                    raise MetricError(f"{name}[{at}] is missing, expected {expected}") from None
                if not isinstance(value, int | float | np.number | np.bool_):
                    raise MetricError(f"{name}[{at}] is {value!r}, expected {expected}") from None
            raise MetricError(f"{name} has the type object, expected numbers") from None
    if found.dtype.kind not in "fiub":
        raise MetricError(f"{name} has the type {found.dtype}, expected numbers")
    return _in_rows(found)


def _in_rows(found: Array) -> NDArray[np.float64]:
    """An array of double precision in C order, at addresses that are multiples of eight, as Rust reads it."""
    return np.require(found, np.float64, ["C", "A"])


def regular(found: Array) -> Array:
    """A matrix of float32 or float64 that Rust can read where it lies, otherwise a copy. A field of a structured array, or one that begins
    within a word of a file, has steps or an address that are no multiples of the size of a number."""
    is_regular = found.flags.aligned and all(stride % found.itemsize == 0 for stride in found.strides)
    return found if is_regular else np.require(found, found.dtype, ["C", "A"])


def flags(value: Any, name: str) -> NDArray[np.bool_]:
    """A vector of event indicators: booleans, or numbers that are 0 or 1."""
    found = vector(value, name)
    if found.dtype == np.bool_:
        return np.ascontiguousarray(found)
    expected = "0 or 1, or False or True"
    as_numbers = _to_double(found, name, expected)
    wrong = np.flatnonzero((as_numbers != 0) & (as_numbers != 1))
    if len(wrong):
        first = as_numbers[wrong[0]]
        codes = as_numbers[wrong]
        hint = f"; {_CAUSES}" if name == "event" and np.all(np.isfinite(codes) & (codes > 1) & (codes % 1 == 0)) else ""
        raise MetricError(f"{name}[{wrong[0]}] is {'missing' if np.isnan(first) else first}, expected {expected}{hint}")
    return np.asarray(as_numbers == 1, dtype=np.bool_)


def matrix(value: Any, name: str) -> Array:
    """A matrix of float32 or float64, C or Fortran order, not copied if it is one."""
    found = array(value, name)
    if found.ndim != 2:
        hint = f"; {_CAUSES}" if name == "survival" and found.ndim == 3 else ""
        shown = f"is {value!r}" if found.ndim == 0 else f"has the shape {found.shape}"
        raise MetricError(f"{name} {shown}, expected a matrix{hint}")
    return regular(found) if found.dtype in (np.float32, np.float64) else _to_double(found, name)


def is_pandas_frame(value: object) -> bool:
    """Whether a value is a data frame of pandas."""
    return library(value) == "pandas" and is_frame(value)


def survival_and_times(survival: Any, times: Any) -> tuple[Array, NDArray[np.float64]]:
    """The curves ``[n, k]`` and their times ``[k]``; without ``times``, a pandas frame has them as its index and one sample
    per column, as pycox makes it."""
    if times is None:
        if not is_pandas_frame(survival):
            raise MetricError("times is None, expected one time for each column of survival")
        return curves_of_pycox(survival, "survival")
    grid = numbers(times, "times")
    if is_pandas_frame(survival) and survival.columns.dtype.kind == "f" and len(survival.columns) == len(grid):
        if not np.allclose(survival.columns, grid):
            raise MetricError("survival.columns are other times than times, expected the same in the same order")
    return matrix(survival, "survival"), grid


def curves_of_pycox(survival: Any, name: str) -> tuple[Array, NDArray[np.float64]]:
    """The curves ``[n, k]`` and their times ``[k]`` of a pandas frame with the times as index and one sample per column."""
    if not is_pandas_frame(survival):
        raise MetricError(f"{name} is a {type(survival).__name__}, expected a pandas frame with times as index and samples as columns")
    return matrix(survival, name).T, numbers(survival.index, f"{name}.index")


def outcomes(time: Any, event: Any, name: str = "time") -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Times and events; without ``event``, ``time`` is a structured array of scikit-survival's ``Surv``."""
    if event is None:
        found = array(time, name)
        fields = found.dtype.names
        if fields is None or len(fields) != 2:
            if name == "train":
                raise MetricError("train is no pair of arrays, expected (time, event) or a structured array of an event and a time")
            kind = "an array" if isinstance(time, np.ndarray) else f"a {type(time).__name__}"
            raise MetricError(f"{name} is {kind} without an event beside it, expected event, or a structured array of an event and a time")
        return numbers(found[fields[1]], f"{name}[{fields[1]!r}]"), flags(found[fields[0]], f"{name}[{fields[0]!r}]")
    return numbers(time, name), flags(event, "event" if name == "time" else f"event of {name}")


def columns(value: Any, name: str) -> dict[str, Any]:
    """Named columns of a data frame, a table of pyarrow, a mapping, a sequence of pairs, or a single named column."""
    found: dict[str, Any] = {}
    for key, column in [] if value is None else _named(value, name):
        # A later column would silently take the place of the earlier one.
        if str(key) in found:
            raise MetricError(f'{name} has several columns "{key}", expected one')
        found[str(key)] = column
    return found


def _named(value: Any, name: str) -> list[tuple[Any, Any]]:
    """The pairs of a name and a column."""
    if library(value) == "pyarrow" and hasattr(value, "column_names"):
        return [(key, _of_arrow(value.column(place))) for place, key in enumerate(value.column_names)]
    if is_pandas_frame(value):
        return [(key, value.iloc[:, place]) for place, key in enumerate(value.columns)]
    if is_frame(value):
        return [(key, value[key]) for key in value.columns]
    if isinstance(value, Mapping):
        return [(key, value[key]) for key in value]
    if library(value) in ("pandas", "polars") and getattr(value, "name", None):
        return [(value.name, value)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        if all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return list(value)
        if all(library(item) in ("pandas", "polars") and getattr(item, "name", None) for item in value):
            return [(item.name, item) for item in value]
    raise MetricError(f"{name} is a {type(value).__name__}, expected a data frame, a table, a dict or a list of named columns")


def _of_arrow(column: Any) -> Any:
    """A column of pyarrow as an array of its width of float, otherwise as a list."""
    if str(column.type) not in ("halffloat", "float", "double"):
        return column.to_pylist()
    # A column of a table is in pieces; one of a batch with missing values has to be copied.
    return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)


def values_of(column: Any, name: str) -> list[Any]:
    """The values of a column as Python objects, ``None`` where one is missing or masked."""
    column = without_tensors(column, name)
    mask = np.ma.getmaskarray(column) if _is_masked(column) else None
    of_categories = getattr(getattr(getattr(column, "dtype", None), "categories", None), "dtype", "")
    if _decimals.is_short(of_categories):
        column = np.asarray(column, dtype=str(of_categories).lower())
    if _decimals.is_short(getattr(column, "dtype", "")):
        # As Python's numbers they would have the digits of double precision.
        column = _decimals.as_written(_single(column))
    if library(column) == "polars":
        values = column.to_list()
    else:
        try:
            found = np.asarray(column, dtype=object)
        except (RuntimeError, TypeError, ValueError) as error:
            raise MetricError(f"{name} is no column: {error}") from None
        if found.ndim == 0:
            raise MetricError(f"{name} is {column!r}, expected a column with one value for each sample")
        values = list(_decimals.as_written(found)) if found.ndim == 1 else list(found)
    if any(isinstance(value, np.ndarray | list) and value is not np.ma.masked for value in values[:1]):
        raise MetricError(f"{name} has more than one dimension, expected a column")
    # Values that have no hash, such as lists, are no levels.
    kinds = {kind for kind in set(map(type, values)) if kind.__hash__ is None} - {type(np.ma.masked)}
    if kinds:
        wrong = next(k for k, value in enumerate(values) if type(value) in kinds)
        raise MetricError(f"{name}[{wrong}] is a {type(values[wrong]).__name__}, expected a number or text")
    if mask is not None:
        values = [None if is_masked else value for value, is_masked in zip(values, mask, strict=True)]
    return [None if _is_missing(value) else value for value in values]


def _single(column: Any) -> Array:
    """A column of float16 or float32 as an array; a missing number is NaN."""
    if library(column) == "pandas":
        kind = np.float16 if "16" in str(column.dtype) or "half" in str(column.dtype) else np.float32
        return np.asarray(column.to_numpy(dtype=kind, na_value=np.nan))
    return np.asarray(column.to_numpy() if library(column) == "polars" else column)


def _is_missing(value: Any) -> bool:
    # NaN, pandas' NaT and NA are the values that do not equal themselves.
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    return bool(value != value)


def text(value: Any) -> str:
    """A level as text; 1.0 is written as 1."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


class Levels(list[Any]):
    """A column whose levels were declared elsewhere."""


def declared_levels(column: Any) -> list[Any] | None:
    """The levels of a categorical of pandas or an enumeration of polars, in their order; None of any other column."""
    if library(column) == "pandas":
        categories = getattr(getattr(column, "cat", column), "categories", None)
        if categories is not None and _decimals.is_short(categories.dtype):
            return list(_decimals.as_written(_single(categories)))
        return None if categories is None else list(categories)
    if library(column) == "polars" and str(column.dtype).startswith("Enum"):
        return [str(value) for value in column.dtype.categories]
    return None


def levels(column: Any, name: str, cuts: Sequence[float] | None = None) -> tuple[list[str], NDArray[np.int64]]:
    """The levels of an attribute and the level of every sample, -1 where it is missing. Numbers are cut at ``cuts``: the
    level ``"<= 60"`` has the value 60."""
    values = values_of(column, name)
    if cuts is not None:
        points = numbers(np.atleast_1d(array(cuts, f'cuts["{name}"]')), f'cuts["{name}"]')
        if len(points) == 0 or np.any(np.diff(points) <= 0) or not np.all(np.isfinite(points)):
            raise MetricError(f'cuts["{name}"] is {list(points)}, expected finite numbers in increasing order')
        shown = [text(point) for point in points]
        between = [f"{low} to {high}" for low, high in zip(shown, shown[1:], strict=False)]
        names = [f"<= {shown[0]}", *between, f"> {shown[-1]}"]
        try:
            known = np.array([np.nan if value is None else float(value) for value in values])
        except (TypeError, ValueError):
            raise MetricError(f'groups["{name}"] has a value that is no number, which cuts["{name}"] needs') from None
        codes = np.searchsorted(points, known, side="left").astype(np.int64)
        codes[np.isnan(known)] = -1
        return names, codes
    categories = declared_levels(column)
    if categories is not None:
        ordered = categories
    else:
        distinct = set(values) - {None}
        try:
            ordered = sorted(distinct)
        except TypeError:
            ordered = sorted(distinct, key=str)
    names = [text(value) for value in ordered]
    if len(set(names)) != len(names):
        raise MetricError(f'groups["{name}"] has two values that are written alike, expected distinct levels')
    most = MOST_VALUES if categories is None and not isinstance(column, Levels) else MOST_LEVELS
    if len(names) > most:
        help = f'cut numbers, as in cuts={{"{name}": [60]}}, or join levels'
        if most == MOST_VALUES:
            help += f", or pass a categorical, which may have {MOST_LEVELS}"
        raise MetricError(f'groups["{name}"] has {len(names)} different values, expected at most {most}: {help}')
    place = {value: code for code, value in enumerate(ordered)}
    codes = np.array([-1 if value is None else place[value] for value in values], dtype=np.int64)
    return names, codes


def attributes(
    named: Mapping[str, Any], cuts: Mapping[str, Sequence[float]] | None, intersections: bool
) -> list[tuple[str, list[str], NDArray[np.int64]]]:
    """Name, levels and level of every sample of each attribute; ``cuts`` are those of columns of numbers."""
    if cuts is not None and not isinstance(cuts, Mapping):
        raise MetricError(f'cuts is {cuts!r}, expected a dict such as {{"age": [60]}}')
    cuts = dict(cuts or {})
    unknown = [cut for cut in cuts if cut not in named]
    if unknown:
        raise MetricError(f'cuts["{unknown[0]}"] is of no attribute, expected one of: {", ".join(named)}')
    found = [(str(key), *levels(column, key, cuts.get(key))) for key, column in named.items()]
    if intersections and len(found) < 2:
        raise MetricError(f"intersections of {len(found)} attributes, expected at least two in groups")
    return found


def frame_library(*values: Any) -> str:
    """``"polars"`` if any of the arguments is one of polars, otherwise ``"pandas"``."""
    for value in values:
        parts = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
        # A column of a list may be a pair of its name and its values.
        columns = [part[1] if isinstance(part, tuple) and len(part) == 2 else part for part in parts]
        if any(kind.__module__.partition(".")[0] == "polars" for kind in set(map(type, columns))):
            return "polars"
    return "pandas"


# Columns of numbers and of counts, also where none of them exists; every other column has text.
_NUMBERS = {
    "above_chance", "auc", "auc_weighted", "by_chance", "coefficient", "corrected", "difference", "hazard_ratio", "lower", "mean", "p",
    "p_holm", "standard_error", "upper", "value",
}  # fmt: skip
_COUNTS = {"events", "excluded", "kept", "left_out", "n", "negative", "positive"}


def to_frame(rows: Sequence[Mapping[str, Any]], names: Sequence[str], kind: str) -> Any:
    """A data frame of rows with these columns, of pandas or polars; without either, a dict of NumPy arrays. The type of a column depends on
    its name alone: a number that does not exist is NaN (polars: null), a text None, or NaN where pandas has a type of text."""
    columns = {name: [row.get(name) for row in rows] for name in names}
    return _typed_frame(columns, {name: float if name in _NUMBERS else int if name in _COUNTS else str for name in names}, kind)


def _typed_frame(columns: Mapping[str, Sequence[Any]], types: Mapping[str, type], kind: str) -> Any:
    library, found = _frames(kind)
    if library == "polars":
        of_polars = {float: found.Float64, int: found.Int64, str: found.String}
        return found.DataFrame(dict(columns), schema={name: of_polars[types[name]] for name in columns}, strict=False)
    typed: dict[str, Any] = {name: _as_array(values, types[name]) for name, values in columns.items()}
    if found is None:
        return typed
    text = found.Series(["text"]).dtype
    return found.DataFrame({name: found.Series(list(columns[name]), dtype=text) if types[name] is str else typed[name] for name in columns})


def _as_array(values: Sequence[Any], kind: type) -> Array:
    if kind is str:
        return np.array(list(values), dtype=object)
    # NumPy has no whole number that is missing.
    is_whole = kind is int and not any(value is None for value in values)
    return np.array([np.nan if value is None else value for value in values], dtype=np.int64 if is_whole else np.float64)


def _frames(kind: str) -> tuple[str, Any]:
    """The library that frames are made with, and its module: polars if it is asked for, otherwise pandas, otherwise polars; None
    without either."""
    for name in ("polars",) if kind == "polars" else ("pandas", "polars"):
        try:
            return name, import_module(name)
        except ImportError:
            if kind == "polars":
                raise
    return "", None


def to_frame_of_columns(columns: Mapping[str, Any], kind: str, of: type = str) -> Any:
    """A data frame of columns of text, or of numbers (``of=float``), of pandas or polars; without either, a dict of NumPy arrays."""
    return _typed_frame(columns, {name: of for name in columns}, kind)


@contextmanager
def bar(what: str, is_shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of tqdm that is moved by ``show(done, total)``; None if it is not asked for."""
    if not is_shown:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise FairtteError("progress=True needs tqdm: pip install tqdm") from None
    with tqdm(desc=what, unit="") as shown:

        def show(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield show
