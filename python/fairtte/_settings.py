"""Settings that are passed as keyword arguments: their names, and their JSON for the compiled part."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from . import _decimals, _inputs
from ._errors import FairtteError, MetricError

# Keys of [evaluation] that are no arguments of their own.
EVALUATION = (
    "interval", "lower_quantile", "min_events", "n_times", "over_time", "permutations", "reading", "reference", "resample", "risk",
    "stratify", "thresholds", "upper_quantile",
)  # fmt: skip
CLASS_EVALUATION = ("interval", "min_events", "reference", "resample", "stratify")
BIAS = ("level", "min_group_size", "n_bins", "n_clusters", "n_projections", "quantisation", "resample")
# Keys of run files that have another name here.
_KEYS = {"eval_times": "times"}
# What other packages call an argument.
_ELSEWHERE = {
    "alpha": "level", "bootstrap": "replicates", "bootstraps": "replicates", "confidence": "level", "confidence_level": "level",
    "n_boot": "replicates", "n_bootstrap": "replicates", "n_bootstraps": "replicates", "n_jobs": "threads", "n_permutations":
    "permutations", "n_replicates": "replicates", "random_state": "seed", "sensitive_features": "groups", "times": "eval_times",
}  # fmt: skip
_OF_PROGRAM = {"cause": "fairtte evaluate --cause", "causes": "fairtte evaluate --cause", "sensitivity": "fairtte evaluate"}


def require_known(settings: Mapping[str, Any], known: tuple[str, ...], function: Callable[..., Any]) -> None:
    """Refuses a keyword that is neither a setting nor an argument of the function, with the one that may be meant."""
    names = [name for name, of in inspect.signature(function).parameters.items() if of.kind is not of.VAR_KEYWORD] + list(known)
    wrong = next((name for name in settings if name not in known), None)
    if wrong is None:
        return
    said = f"{wrong} is no argument of {function.__name__}"
    if wrong in _OF_PROGRAM:
        raise MetricError(f"{said}, expected it of the program: {_OF_PROGRAM[wrong]}")
    meant = _ELSEWHERE.get(wrong)
    near = [meant] if meant in names else get_close_matches(wrong.replace("-", "_"), names, 1, 0.7)
    if near:
        raise MetricError(f"{said}, expected {near[0]}")
    raise MetricError(f"{said}, expected one of: {', '.join(names)}")


def to_json(settings: Mapping[str, Any], error: type[FairtteError] = MetricError) -> str:
    """Settings by argument as JSON by key, each checked to be writable; one that is not is an ``error``."""
    return json.dumps({_KEYS.get(name, name.replace("_", "-")): of_json(value, name, error) for name, value in settings.items()})


def of_json(value: Any, name: str, error: type[FairtteError] = MetricError) -> Any:
    """The value of a setting as JSON has it: plain numbers, texts, lists and dicts."""
    found = plain(value)
    try:
        json.dumps(found, allow_nan=False)
    except ValueError:
        raise error(f"{name} is {found}, expected finite numbers") from None
    except TypeError:
        raise error(f"{name} is a {type(value).__name__}, expected a number, text, or a list or dict of them") from None
    return found


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as those of Python, paths as text, also within lists and dicts; anything else as it is."""
    if isinstance(value, np.generic | np.ndarray):
        found = _decimals.as_written(np.asarray(value)).tolist()
        # An extended precision has no number of Python.
        return found if isinstance(found, np.generic) else plain(found)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def number(value: Any, name: str, error: type[FairtteError] = MetricError) -> float:
    """A single number; one of single precision is the decimal that it is written as."""
    try:
        return float(plain(_inputs.without_tensors(value, name)))
    except (TypeError, ValueError):
        raise error(f"{name} is {plain(value)!r}, expected a number") from None


def whole(value: Any, name: str, error: type[FairtteError] = MetricError) -> int:
    """A whole number >= 0 that fits into 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**64:
        raise error(f"{name} is {plain(value)!r}, expected a whole number >= 0")
    return int(value)


def flag(value: Any, name: str, error: type[FairtteError] = MetricError) -> bool:
    """True or False, also of NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise error(f"{name} is {plain(value)!r}, expected True or False")
    return bool(value)


def library(value: Any, error: type[FairtteError] = MetricError) -> str:
    """The library of a data frame that is asked for by name."""
    if value not in ("pandas", "polars"):
        raise error(f'library is {plain(value)!r}, expected "pandas" or "polars"')
    return str(value)


def text(value: Any, name: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise MetricError(f"{name} is {plain(value)!r}, expected text")
    return str(value)


def names(value: Any, name: str, error: type[FairtteError] = MetricError) -> list[str]:
    """A list of names, or a single one."""
    if isinstance(value, str):
        return [value]
    try:
        return [str(item) for item in value]
    except TypeError:
        raise error(f"{name} is {value!r}, expected a list of names") from None
