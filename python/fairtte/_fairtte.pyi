from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Evaluated",
    "__version__",
    "brier_score",
    "cumulative_dynamic_auc",
    "evaluate",
    "harrell",
    "metric_names",
    "pycox",
    "self_test",
    "uno",
]

__version__: str

_Numbers = NDArray[np.float64]
_Flags = NDArray[np.bool_]
_Columns = list[tuple[str, list[str | None]]]

@final
class Evaluated:
    def to_json(self) -> str: ...
    def to_html(
        self,
        title: str,
        time_unit: str,
        censoring: str,
        facts: list[tuple[str, str]],
        notes: list[str],
    ) -> str: ...
    def compare(self, other: Evaluated, names: tuple[str, str], threads: int | None) -> str: ...

def self_test(seconds: float, *, panics: bool = False, threads: int | None = None) -> int: ...
def metric_names() -> list[tuple[str, str]]: ...
def evaluate(
    survival: NDArray[Any],
    times: _Numbers,
    time: _Numbers,
    event: _Flags,
    groups: list[tuple[str, list[str], NDArray[np.int64]]],
    pairs: bool,
    subjects: list[str] | None,
    train: tuple[_Numbers, _Flags] | None,
    settings: str,
    covariates: tuple[_Columns, _Columns | None] | None = None,
    threads: int | None = None,
) -> Evaluated: ...
def harrell(
    event: _Flags, time: _Numbers, estimate: _Numbers, near: bool, threads: int | None = None
) -> tuple[float, int, int, int, int]: ...
def uno(
    train: tuple[_Numbers, _Flags],
    event: _Flags,
    time: _Numbers,
    estimate: _Numbers,
    tau: float | None = None,
    threads: int | None = None,
) -> tuple[float, int, int, int]: ...
def cumulative_dynamic_auc(
    train: tuple[_Numbers, _Flags],
    event: _Flags,
    time: _Numbers,
    estimate: _Numbers,
    times: _Numbers,
    threads: int | None = None,
) -> tuple[list[float], float]: ...
def brier_score(
    train: tuple[_Numbers, _Flags],
    event: _Flags,
    time: _Numbers,
    estimate: NDArray[Any],
    times: _Numbers,
    threads: int | None = None,
) -> list[float]: ...
def pycox(
    what: str,
    survival: NDArray[Any],
    times: _Numbers,
    time: _Numbers,
    event: _Flags,
    grid: _Numbers,
    pre: bool,
    threads: int | None = None,
) -> list[float]: ...
