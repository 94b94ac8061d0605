"""Run folders of the program ``fairtte``: settings, cohort, predictions, report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _fairtte, _inputs, _settings
from ._errors import DataError
from .data import Cohort, Split
from .evaluation import Evaluation, evaluate


class Predictions:
    """The curves of one part of a run.

    Attributes
    ----------
    sample_id : array [n] of str
    survival : array [n, k]
        Probability to be free of the event at ``times``.
    times : array [k]
    time, event : array [n]
    rows : array [n]
        Rows of the cohort.

    Examples
    --------
    >>> import fairtte
    >>> run = fairtte.read_run("runs/mine")   # doctest: +SKIP
    >>> run.predictions("validation").survival.shape   # doctest: +SKIP
    """

    def __init__(
        self, sample_id: NDArray[Any], survival: NDArray[np.float64], times: NDArray[np.float64], rows: NDArray[np.intp], run: Run
    ) -> None:
        self.sample_id = sample_id
        self.survival = survival
        self.times = times
        self.rows = rows
        self.time = run.cohort.time[rows]
        self.event = run.cohort.event[rows]
        self._run = run

    def groups(self, library: str = "pandas") -> Any:
        """The level of every sample by attribute, as the run compared them.

        Raises ``ImportError`` for ``library="polars"`` without it.

        >>> import fairtte
        >>> run = fairtte.read_run("runs/mine")   # doctest: +SKIP
        >>> run.predictions().groups()["sex"].value_counts()   # doctest: +SKIP
        """
        _settings.library(library, DataError)
        columns = {name: [levels[row] for row in self.rows] for name, levels in self._run._levels.items()}
        return _inputs.to_frame_of_columns(columns, library)

    def __repr__(self) -> str:
        return f"Predictions(n={len(self.rows)}, n_times={len(self.times)})"


class Run:
    """A run folder.

    Attributes
    ----------
    path : path
    cohort : Cohort
        All samples of the run, and the rows that were left out.
    split : Split

    Raises
    ------
    DataError
        If the folder has no run or a file is damaged.

    Examples
    --------
    >>> import fairtte
    >>> run = fairtte.read_run("runs/mine")   # doctest: +SKIP
    >>> run.cohort, run.split, run.is_done   # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "cohort.parquet").exists():
            raise DataError(f"{self.path} has no cohort.parquet, expected the folder of a run")
        inner, levels, parts = _fairtte.read_run(os.fspath(self.path))
        self.cohort = Cohort(inner)
        self._levels = dict(levels)
        has_record = (self.path / "split.json").exists()
        self.split = Split(parts, self._json("split.json") if has_record else {"method": "unknown"})

    @property
    def is_done(self) -> bool:
        """Whether the run is finished."""
        return (self.path / "done").exists()

    @property
    def report(self) -> dict[str, Any]:
        """``evaluation.json``: every number of the report of the test part."""
        return self._json("evaluation.json")

    @property
    def selection(self) -> dict[str, Any]:
        """``selection.json``: the choice of every selection rule."""
        return self._json("selection.json")

    @property
    def settings(self) -> dict[str, Any]:
        """``run.toml`` with every default written out. Python 3.10 needs the package ``tomli``."""
        try:
            import tomllib
        except ImportError:
            import tomli as tomllib  # type: ignore[no-redef, unused-ignore]
        return self._read("run.toml", tomllib.loads)

    @property
    def page(self) -> Path:
        """The page to read, ``report.html``."""
        return self.path / "report.html"

    def _json(self, name: str) -> dict[str, Any]:
        return self._read(name, json.loads)

    def _read(self, name: str, parse: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        path = self.path / name
        if not path.exists():
            raise DataError(f"{self.path} has no {name}, expected that of a finished run")
        try:
            found = parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read, expected what the program wrote: {error}") from error
        if not isinstance(found, dict):
            raise DataError(f"{path} has no table, expected what the program wrote")
        return found

    def predictions(self, part: str = "test", epoch: int | None = None) -> Predictions:
        """The curves of a part, ``"test"`` or ``"validation"``, by the epoch that ``training.monitor`` chose or by that of another
        rule (``predictions-epoch-00005.parquet``).

        Raises :class:`fairtte.DataError` for another part, and a file that is missing or damaged.

        >>> import fairtte
        >>> run = fairtte.read_run("runs/mine")   # doctest: +SKIP
        >>> run.predictions("test", epoch=5).times   # doctest: +SKIP
        """
        if part not in ("test", "validation"):
            raise DataError(f'part is "{part}", expected "test" or "validation", of which a run keeps curves')
        name = "predictions.parquet"
        if epoch is not None and epoch != self.selection.get("epoch"):
            name = f"predictions-epoch-{epoch:05}.parquet"
        path = self.path / name
        samples, times, survival = _fairtte.read_curves(os.fspath(path))
        of_cohort = {sample: row for row, sample in enumerate(dict(self.cohort._inner.texts())["sample_id"])}
        unknown = next((sample for sample in samples if sample not in of_cohort), None)
        if unknown is not None:
            raise DataError(f'{path} has the sample "{unknown}", expected those of cohort.parquet')
        rows = np.array([of_cohort[sample] for sample in samples], dtype=np.intp)
        chosen = np.flatnonzero(self.split.part[rows] == part)
        return Predictions(np.array(samples)[chosen], survival[chosen], times, rows[chosen], self)

    def evaluate(self, part: str = "test", **settings: Any) -> Evaluation:
        """:func:`fairtte.evaluate` of a part, with the groups of the run, the censoring curve of its training part, its persons
        and its unit of time; ``settings`` are other arguments. The report of the run itself is :attr:`report`.

        Raises :class:`fairtte.DataError` as :meth:`predictions`, and :class:`fairtte.MetricError` for settings.

        >>> import fairtte
        >>> run = fairtte.read_run("runs/mine")   # doctest: +SKIP
        >>> run.evaluate(metrics=["ibs"]).by_group   # doctest: +SKIP
        """
        found = self.predictions(part)
        train = self.split.train
        subjects = dict(self.cohort._inner.texts())["subject_id"]
        given: dict[str, Any] = {
            "groups": {name: _inputs.Levels(levels[row] for row in found.rows) for name, levels in self._levels.items()},
            "subject": [subjects[row] for row in found.rows],
            "train": (self.cohort.time[train], self.cohort.event[train]),
            "time_unit": self.cohort.time_unit,
            "name": self.path.name,
        }
        return evaluate(found.survival, found.times, found.time, found.event, **(given | settings))

    def __reduce__(self) -> tuple[type[Run], tuple[Path]]:
        return type(self), (self.path,)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {'done' if self.is_done else 'unfinished'})"


def read_run(path: str | os.PathLike[str]) -> Run:
    """A run folder that ``fairtte train`` or :func:`fairtte.train` wrote.

    Raises :class:`fairtte.DataError` if the folder has no run or a file is damaged.

    >>> import fairtte
    >>> run = fairtte.read_run("runs/mine")   # doctest: +SKIP
    >>> run.report["metrics"][0]["overall"]["value"]   # doctest: +SKIP
    """
    return Run(path)
