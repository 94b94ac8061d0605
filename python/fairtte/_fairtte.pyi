from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Cohort",
    "Evaluated",
    "EvaluatedClasses",
    "Fitted",
    "Store",
    "SurvivalEvaluator",
    "__version__",
    "adjust",
    "bias_sources",
    "brier_score",
    "class_metric_names",
    "cumulative_dynamic_auc",
    "estimator_names",
    "estimator_settings",
    "evaluate",
    "evaluate_binary",
    "fit_estimator",
    "friedman",
    "harrell",
    "metric_names",
    "nemenyi",
    "pycox",
    "rank_groups",
    "read_curves",
    "read_data",
    "read_run",
    "restored",
    "restored_classes",
    "select",
    "self_test",
    "state",
    "state_of_classes",
    "uno",
    "wilcoxon",
]

__version__: str

_Numbers = NDArray[np.float64]
_Flags = NDArray[np.bool_]
_Columns = list[tuple[str, list[str | None]]]

@final
class Evaluated:
    @property
    def said(self) -> tuple[list[str], list[str]]: ...
    def is_of_same_samples(self, other: Evaluated, attribute: str | None = None) -> bool: ...
    def to_json(self) -> str: ...
    def to_html(
        self,
        title: str,
        time_unit: str,
        censoring: str,
        facts: list[tuple[str, str]],
        notes: list[str],
    ) -> str: ...
    def compare(
        self,
        other: Evaluated,
        names: tuple[str, str],
        show: Callable[[int, int], None] | None = None,
        threads: int | None = None,
    ) -> str: ...

@final
class EvaluatedClasses:
    @property
    def warnings(self) -> list[str]: ...
    def is_of_same_samples(self, other: EvaluatedClasses, attribute: str | None = None) -> bool: ...
    def to_json(self) -> str: ...
    def to_html(
        self,
        title: str,
        time_unit: str,
        censoring: str,
        facts: list[tuple[str, str]],
        notes: list[str],
    ) -> str: ...
    def compare(
        self,
        other: EvaluatedClasses,
        names: tuple[str, str],
        show: Callable[[int, int], None] | None = None,
        threads: int | None = None,
    ) -> str: ...

@final
class Cohort:
    @property
    def name(self) -> str: ...
    @property
    def time_unit(self) -> str: ...
    @property
    def source(self) -> Path: ...
    @property
    def attributes(self) -> list[str]: ...
    @property
    def counts(self) -> tuple[int, int, int]: ...
    @property
    def n_read(self) -> int: ...
    def provenance(self) -> str: ...
    def texts(self) -> list[tuple[str, list[str | None]]]: ...
    def outcomes(self) -> tuple[_Numbers, _Flags, NDArray[np.uint64]]: ...
    def groups(self, rows: list[int]) -> list[tuple[str, list[str | None]]]: ...
    def exclusions(self) -> list[tuple[str, str, str]]: ...
    def flow(self) -> list[tuple[str, int, int, list[tuple[str, int]]]]: ...
    def split(self, settings: str, seed: int) -> tuple[list[str], str]: ...
    def select(self, rows: list[int]) -> Cohort: ...
    def images(
        self,
        settings: str,
        cache: str,
        images_per_shard: int | None = None,
        show: Callable[[int, int], None] | None = None,
        threads: int | None = None,
    ) -> Store: ...

@final
class Store:
    @property
    def layout(self) -> tuple[list[int], str]: ...
    @property
    def path(self) -> Path: ...
    @property
    def recipe(self) -> str: ...
    def shards(self) -> list[tuple[Path, int, int]]: ...
    def samples(self) -> list[str]: ...
    def excluded(self) -> list[tuple[str, str, str]]: ...
    def fingerprint(self) -> str: ...

def read_data(name: str, options: str, attributes: str | None = None, threads: int | None = None) -> Cohort: ...
def read_run(folder: str) -> tuple[Cohort, list[tuple[str, list[str | None]]], list[str]]: ...
def read_curves(path: str) -> tuple[list[str], _Numbers, _Numbers]: ...
@final
class Fitted:
    @staticmethod
    def from_bytes(data: bytes) -> Fitted: ...
    def to_bytes(self) -> bytes: ...
    def risk(self, covariates: NDArray[Any], threads: int | None = None) -> _Numbers: ...
    def survival(self, covariates: NDArray[Any], times: _Numbers, threads: int | None = None) -> _Numbers: ...

def estimator_names() -> list[tuple[str, str]]: ...
def estimator_settings(name: str, settings: str) -> str: ...
def fit_estimator(
    name: str,
    settings: str,
    covariates: NDArray[Any],
    columns: list[str],
    time: _Numbers,
    event: _Flags,
    subjects: list[str] | None = None,
    threads: int | None = None,
) -> Fitted: ...
def bias_sources(
    features: NDArray[Any],
    time: _Numbers,
    event: _Flags,
    groups: list[tuple[str, list[str], NDArray[np.int64]]],
    pairs: bool,
    subjects: list[str] | None,
    components: int,
    settings: str,
    threads: int | None = None,
) -> str: ...
def friedman(
    values: NDArray[Any], higher_is_better: bool, ties: str
) -> tuple[float, int, float, tuple[float, tuple[int, int], float] | None, list[float]]: ...
def nemenyi(values: NDArray[Any], higher_is_better: bool) -> _Numbers: ...
def rank_groups(
    values: NDArray[Any], higher_is_better: bool, alpha: float
) -> tuple[list[float], float, list[list[int]]]: ...
def wilcoxon(first: _Numbers, second: _Numbers, alternative: str, zeros: str, method: str) -> str: ...
def adjust(p_values: _Numbers, method: str) -> list[float]: ...
def select(runs: str, criterion: str) -> str: ...
def self_test(seconds: float, *, panics: bool = False, here: bool = False, threads: int | None = None) -> int: ...
def metric_names() -> list[tuple[str, str]]: ...
def class_metric_names() -> list[tuple[str, str]]: ...
def evaluate_binary(
    probability: _Numbers,
    positive: _Flags | None,
    timed: tuple[_Numbers, _Flags, float] | None,
    train: tuple[_Numbers, _Flags] | None,
    validation: tuple[_Numbers, _Numbers | None, _Flags] | None,
    groups: list[tuple[str, list[str], NDArray[np.int64]]],
    pairs: bool,
    subjects: list[str] | None,
    of_class: str,
    is_given: bool,
    settings: str,
    metrics: list[str] | None = None,
    show: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> EvaluatedClasses: ...
@final
class SurvivalEvaluator:
    def __new__(
        cls,
        survival: NDArray[Any],
        times: _Numbers,
        time: _Numbers,
        event: _Flags,
        train: tuple[_Numbers, _Flags] | None = None,
        threads: int | None = None,
    ) -> SurvivalEvaluator: ...
    def concordance_td(self, ties: str, threads: int | None) -> tuple[float, float, float]: ...
    def auc(self, time: float, weighted: bool, threads: int | None) -> float: ...
    def brier(self, times: _Numbers, weighted: bool, threads: int | None) -> list[float]: ...
    def integrated_brier(self, times: _Numbers, weighted: bool, threads: int | None) -> float: ...
    def d_calibration(self, n_bins: int, threads: int | None) -> tuple[float, list[float]]: ...
    def one_calibration(
        self, time: float, n_bins: int, by_width: bool, left_out: bool, adjusted: bool, threads: int | None = None
    ) -> tuple[float, list[float], list[float]]: ...
    def km_calibration(self, threads: int | None) -> float: ...
    def probabilities(self, times: _Numbers, threads: int | None) -> NDArray[np.float64]: ...

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
    show: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> Evaluated: ...
def state(evaluated: Evaluated) -> tuple[Any, Any, list[str], Any]: ...
def restored(arrays: Any, groups: Any, subjects: list[str], texts: Any) -> Evaluated: ...
def state_of_classes(evaluated: EvaluatedClasses) -> tuple[Any, Any, list[str], Any]: ...
def restored_classes(arrays: Any, groups: Any, subjects: list[str], texts: Any) -> EvaluatedClasses: ...
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
    censored: tuple[_Numbers, _Flags] | None = None,
    threads: int | None = None,
) -> list[float]: ...
