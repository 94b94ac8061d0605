"""Numbers of single and half precision, which mean the decimal that they are written as."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHORT = (np.float16, np.float32)
# Whole numbers below it are exact in single precision.
_EXACT = 2.0**24


def is_short(kind: Any) -> bool:
    """Whether a type of NumPy, pandas or polars has float16 or float32: ``Float32`` or ``float32``, say."""
    # In any order of the bytes, which the name of a type of NumPy says.
    name = kind.name if isinstance(kind, np.dtype) else str(kind).lower()
    return name.startswith(("float32", "float16", "halffloat", "float[pyarrow]"))


def as_written(found: NDArray[Any]) -> NDArray[Any]:
    """An array of float16 or float32, or of objects with such numbers, in double precision: each number becomes the shortest decimal
    that reads back as it, so that ``np.float32(1.1)`` is 1.1 and not above it. Any other array as it is."""
    if found.dtype == object:
        return _of_objects(found)
    if not is_short(found.dtype):
        return found
    wide = found.astype(np.float64)
    # What has a fraction; the whole numbers, NaN and infinities are exact. The largest ones have shorter decimals too.
    finite = np.isfinite(wide)
    open_ = finite & ((np.abs(wide) >= _EXACT) | (wide != np.rint(np.where(finite, wide, 0.0))))
    if open_.any():
        distinct, place = np.unique(found[open_], return_inverse=True)
        wide[open_] = distinct.astype("S").astype(np.float64)[place.reshape(-1)]
    return wide


def _of_objects(found: NDArray[Any]) -> NDArray[Any]:
    flat = found.reshape(-1)
    if not set(map(type, flat)) & set(_SHORT):
        return found
    changed = np.empty(flat.shape, dtype=object)
    changed[:] = [as_written_one(value) for value in flat]
    return changed.reshape(found.shape)


def as_written_one(value: Any) -> Any:
    """The same of a single number."""
    return float(str(value)) if isinstance(value, _SHORT) else value


def of_list(value: Any) -> Any:
    """A list or tuple whose numbers of single precision are as they are written; NumPy would widen them beside other numbers."""
    if isinstance(value, list | tuple) and set(map(type, value)) & set(_SHORT):
        return [as_written_one(item) for item in value]
    return value
