"""Settings that are passed as keyword arguments: their names, and their JSON for the compiled part."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from ._errors import MetricError

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


def to_json(settings: Mapping[str, Any]) -> str:
    """Settings by argument as JSON by key, each checked to be writable."""
    for name, value in settings.items():
        try:
            json.dumps(value, default=_plain, allow_nan=False)
        except ValueError:
            raise MetricError(f"{name} is {value}, expected finite numbers") from None
        except TypeError:
            raise MetricError(f"{name} is a {type(value).__name__}, expected a number, text, or a list or dict of them") from None
    return json.dumps({_KEYS.get(name, name.replace("_", "-")): value for name, value in settings.items()}, default=_plain)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as those of JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError


def number(value: Any, name: str) -> float:
    """A single number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise MetricError(f"{name} is {value!r}, expected a number") from None


def whole(value: Any, name: str) -> int:
    """A whole number >= 0 that fits into 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**64:
        raise MetricError(f"{name} is {value!r}, expected a whole number >= 0")
    return int(value)


def names(value: Any, name: str) -> list[str]:
    """A list of names, or a single one."""
    if isinstance(value, str):
        return [value]
    try:
        return [str(item) for item in value]
    except TypeError:
        raise MetricError(f"{name} is {value!r}, expected a list of names") from None
