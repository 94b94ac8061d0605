"""Samples, exclusions and splits."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _fairtte, _inputs, _settings
from .._errors import DataError, MetricError

if TYPE_CHECKING:
    from ._images import ImageStore


def _row_numbers(rows: Any, n: int, name: str) -> list[int]:
    """Row numbers of whole numbers >= 0, or of a mask of the ``n`` samples."""
    try:
        chosen = _inputs.vector(rows, name)
    except MetricError as error:
        raise DataError(str(error)) from None
    if chosen.dtype == object:
        # What is missing in a nullable column of pandas, or an empty one of polars.
        kinds = set(map(type, chosen))
        whole = all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds)
        chosen = chosen.astype(np.bool_ if kinds and kinds <= {bool, np.bool_} else np.int64 if whole else object)
    if chosen.dtype == np.bool_:
        if len(chosen) != n:
            raise DataError(f"{name} has {len(chosen)} values, expected {n}, one for each sample")
        return [int(row) for row in np.flatnonzero(chosen)]
    if len(chosen) and chosen.dtype.kind not in "iu":
        raise DataError(f"{name}[0] is {_settings.plain(chosen[0])!r}, which is no row number: expected whole numbers >= 0, or a mask")
    wrong = np.flatnonzero(chosen < 0)
    if len(wrong):
        raise DataError(f"{name}[{wrong[0]}] is {chosen[wrong[0]]}, which is no row number: expected whole numbers >= 0, or a mask")
    return [int(row) for row in chosen]


class Split:
    """The parts of a cohort: ``train``, ``validation`` and ``test`` are row numbers ``[n_part]``, ascending; ``part`` is the name of
    the part of every sample ``[n]``; ``record`` says how the split was made.

    >>> import pathlib, tempfile, fairtte.data
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cohort.csv"
    >>> rows = [f"{k},{k % 7 + 1},{k % 2},{'FM'[k % 3 > 0]}" for k in range(30)] + ["30,,1,F"]
    >>> _ = path.write_text("\\n".join(["person,time,event,sex", *rows]))
    >>> cohort = fairtte.data.table(path, subject="person", attributes=["sex"])
    >>> cohort.split(7)   # doctest: +ELLIPSIS
    Split(18 train, 6 validation, 6 test; ...)
    """

    def __init__(self, parts: list[str], record: dict[str, Any]) -> None:
        self.part: NDArray[np.str_] = np.array(parts, dtype=np.str_)
        self.record = record

    @property
    def train(self) -> NDArray[np.intp]:
        """Rows for fitting.

        >>> len(cohort.split(7).train)
        18
        """
        return np.flatnonzero(self.part == "train")

    @property
    def validation(self) -> NDArray[np.intp]:
        """Rows for choices.

        >>> len(cohort.split(7).validation)
        6
        """
        return np.flatnonzero(self.part == "validation")

    @property
    def test(self) -> NDArray[np.intp]:
        """Rows for the reported numbers.

        >>> len(cohort.split(7).test)
        6
        """
        return np.flatnonzero(self.part == "test")

    def __repr__(self) -> str:
        sizes = f"{len(self.train)} train, {len(self.validation)} validation, {len(self.test)} test"
        return f"Split({sizes}; {self.record['method']})"


class Cohort:
    """The samples of a data set, in the order of the source, and the rows that were left out.

    Attributes
    ----------
    name, time_unit, source : str, str, path
    n, n_events, n_subjects, n_read : int
        Samples, events, persons, and rows read; ``n_read`` = ``n`` + excluded rows.
    attributes : list of str

    Examples
    --------
    >>> import pathlib, tempfile, fairtte.data
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cohort.csv"
    >>> rows = [f"{k},{k % 7 + 1},{k % 2},{'FM'[k % 3 > 0]}" for k in range(30)] + ["30,,1,F"]
    >>> _ = path.write_text("\\n".join(["person,time,event,sex", *rows]))
    >>> cohort = fairtte.data.table(path, subject="person", attributes=["sex"])
    >>> cohort.n, cohort.n_events, cohort.n_subjects, cohort.n_read, cohort.attributes
    (30, 15, 30, 31, ['sex'])
    """

    def __init__(self, inner: _fairtte.Cohort) -> None:
        self._inner = inner
        self.name = inner.name
        self.time_unit = inner.time_unit
        self.source = Path(inner.source)
        self.n, self.n_events, self.n_subjects = inner.counts
        self.n_read = inner.n_read
        self.attributes = inner.attributes
        self._provenance: dict[str, Any] = json.loads(inner.provenance()) or {}

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {name: values for name, values in self._inner.texts()}
        time, event, row = self._inner.outcomes()
        return {**columns, "time": time, "event": event, "source_row": row}

    def to_pandas(self) -> Any:
        """One row per sample: sample_id, subject_id, unit (of eyes), image, the attributes as the source gives them, time,
        event (True = observed), source_row (of the source table, as a spreadsheet counts).

        Raises ``ImportError`` without pandas.

        >>> cohort.to_pandas().loc[0, ["sample_id", "sex"]].to_list()
        ['0', 'F']
        """
        import pandas

        return pandas.DataFrame(self._columns())

    def to_polars(self) -> Any:
        """The same of polars.

        Raises ``ImportError`` without polars.

        >>> cohort.to_polars().shape
        (30, 6)
        """
        import polars

        return polars.DataFrame(self._columns())

    @property
    def time(self) -> NDArray[np.float64]:
        """Times to event or censoring ``[n]``, in ``time_unit``.

        >>> cohort.time[:3]
        array([1., 2., 3.])
        """
        return self._inner.outcomes()[0]

    @property
    def event(self) -> NDArray[np.bool_]:
        """Whether the event was observed, ``[n]``.

        >>> cohort.event[:3]
        array([False,  True, False])
        """
        return self._inner.outcomes()[1]

    def groups(self, train: Sequence[int] | NDArray[Any] | None = None, library: str = "pandas") -> Any:
        """The level of every sample by attribute, as :func:`fairtte.evaluate` takes it: a data frame (of ``"pandas"`` or
        ``"polars"``), None where a value is missing. Thresholds at medians are those of the rows ``train``, numbers or a mask (default: all).

        Raises :class:`fairtte.DataError` for what is no row or mask, and an attribute that cannot be divided into levels.

        >>> cohort.groups()["sex"].value_counts().to_dict()
        {'M': 20, 'F': 10}
        """
        rows = list(range(self.n)) if train is None else _row_numbers(train, self.n, "train")
        library = _settings.library(library, DataError)
        found = self._inner.groups(rows)
        return _inputs.to_frame_of_columns({name: values for name, values in found}, library)

    @property
    def exclusions(self) -> Any:
        """A data frame with one row per row that was left out: sample_id, reason (a code), place.

        >>> list(cohort.exclusions["reason"])
        ['missing_time']
        """
        return self._exclusions("pandas")

    def _exclusions(self, kind: str) -> Any:
        rows = [{"sample_id": s, "reason": r, "place": p} for s, r, p in self._inner.exclusions()]
        return _inputs.to_frame(rows, ("sample_id", "reason", "place"), kind)

    def flow(self, library: str = "pandas") -> Any:
        """A data frame with one row per step from the rows read to the samples kept: step, kept, excluded, reasons.

        Raises ``ImportError`` for ``library="polars"`` without it.

        >>> flow = cohort.flow()
        >>> int(flow["kept"].iloc[0]), int(flow["kept"].iloc[-1])
        (31, 30)
        """
        rows = [
            {"step": step, "kept": kept, "excluded": n, "reasons": ", ".join(f"{reason} {m}" for reason, m in reasons)}
            for step, kept, n, reasons in self._inner.flow()
        ]
        return _inputs.to_frame(rows, ("step", "kept", "excluded", "reasons"), _settings.library(library, DataError))

    @property
    def content_hash(self) -> str | None:
        """64 digits: the same for the same cells and options, whatever the order of rows and the compression.

        >>> len(cohort.content_hash)
        64
        """
        return self._provenance.get("content-hash")

    @property
    def provenance(self) -> dict[str, Any]:
        """The label rule, its version, every option with its value, the hash, and notes on the rows read.

        >>> cohort.provenance["adapter"]
        'tabular'
        """
        return dict(self._provenance)

    def split(
        self,
        seed: int = 0,
        *,
        by: str = "subject",
        stratify: Sequence[str] = (),
        fractions: tuple[float, float, float] = (0.6, 0.2, 0.2),
        folds: int | None = None,
        fold: int = 0,
        leave_site_out: tuple[str, str] | None = None,
        file: str | os.PathLike[str] | None = None,
        repeat: int = 0,
    ) -> Split:
        """Divides the persons, each with all samples, into a training, validation and test part.

        Parameters
        ----------
        seed : int
            The place of a person depends on it and on the person alone: more samples move no person.
        by : "subject"
            What stays together; nothing else is offered, because it would leak.
        stratify : list of str
            ``"event"`` and attributes that should have equal shares in every part.
        fractions : (train, validation, test)
            Shares of the persons.
        folds, fold : int
            One fold of several (2 to 1000, the fold from 0 on) is the test part.
        leave_site_out : (column, site)
            The persons of one site are the test part; the column must be an attribute.
        file : path
            A table with ``subject_id`` or ``sample_id`` and ``part``, which is checked for leaks.
        repeat : int
            Another draw with the same seed.

        Raises
        ------
        DataError
            For shares and folds out of range, unknown attributes, a part without a person, and a file with leaks.

        Examples
        --------
        >>> split = cohort.split(7, stratify=["event"], folds=5, fold=2)
        >>> len(split.test)
        6
        """
        if by != "subject":
            raise DataError(f'by is "{by}", expected "subject": samples of one person in two parts would leak')
        shares = _settings.plain(fractions)
        if not isinstance(shares, list) or len(shares) != 3:
            raise DataError(f"fractions is {shares!r}, expected three shares: of training, validation and test")
        settings: dict[str, Any] = {
            key: _settings.of_json(_settings.number(share, f"fractions[{place}]", DataError), f"fractions[{place}]", DataError)
            for place, (key, share) in enumerate(zip(("train", "validation", "test"), shares, strict=True))
        }
        settings["repeat"] = _settings.whole(repeat, "repeat", DataError)
        settings["stratify"] = _settings.names(stratify, "stratify", DataError)
        fold = _settings.whole(fold, "fold", DataError)
        if folds is not None:
            settings["k-fold"] = {"folds": _settings.whole(folds, "folds", DataError), "fold": fold}
        elif fold:
            raise DataError(f"fold is {fold} without folds, expected their number")
        if leave_site_out is not None:
            site = _settings.plain(leave_site_out)
            if not isinstance(site, list) or len(site) != 2:
                raise DataError(f"leave_site_out is {site!r}, expected (column, site)")
            settings["leave-site-out"] = {"site": str(site[0]), "leave-out": _inputs.text(site[1])}
        if file is not None:
            settings["file"] = os.fspath(file)
        parts, record = self._inner.split(json.dumps(settings), _settings.whole(seed, "seed", DataError))
        return Split(parts, json.loads(record))

    def select(self, rows: Sequence[int] | NDArray[Any]) -> Cohort:
        """The samples at these row numbers (or where a mask is True), in this order.

        Raises :class:`fairtte.DataError` for what is no row or mask.

        >>> cohort.select(cohort.time > 6).n
        4
        """
        return Cohort(self._inner.select(_row_numbers(rows, self.n, "rows")))

    def images(
        self,
        cache: str | os.PathLike[str],
        *,
        size: Sequence[int] = (64, 64),
        channels: int = 1,
        exact: bool = False,
        volume: dict[str, Any] | None = None,
        limits: dict[str, Any] | None = None,
        images_per_shard: int | None = None,
        progress: bool = False,
        threads: int | None = None,
    ) -> ImageStore:
        """Decodes and resizes the images once, into the folder ``cache``; a later call finds them again.

        Parameters
        ----------
        cache : path
        size : (height, width) or (depth, height, width)
            1 to 4096 pixels each.
        channels : 1 or 3
        exact : bool
            Whether JPEG files are always decoded at full size.
        volume, limits : dict
            Keys of ``[image.volume]`` and ``[image.limits]`` of a run file.
        images_per_shard : int
            Images of one file. Default: as many as fill 64 MiB; a build holds one file in memory.
        progress : bool
            Whether to show a bar of tqdm, which must be installed.
        threads : int

        Raises
        ------
        DataError
            For settings out of range, if no image can be decoded, and for files that cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile, fairtte.data
        >>> from PIL import Image
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for k in range(3):
        ...     Image.new("L", (8, 8), 80 * k).save(folder / f"{k}.png")
        >>> _ = (folder / "cohort.csv").write_text("image,subject_id,time,event\\n" + "".join(f"{k}.png,p{k},1,1\\n" for k in range(3)))
        >>> store = fairtte.data.table(folder / "cohort.csv", image="image").images(folder / "cache", size=(8, 8))
        >>> store.shape
        (3, 1, 8, 8)
        """
        from ._images import ImageStore

        extents = _settings.plain(size)
        if not isinstance(extents, list) or len(extents) not in (2, 3):
            raise DataError(f"size is {extents!r}, expected (height, width) or (depth, height, width)")
        settings: dict[str, Any] = {
            "size": [_settings.whole(extent, f"size[{place}]", DataError) for place, extent in enumerate(extents)],
            "channels": _settings.whole(channels, "channels", DataError),
            "exact": _settings.flag(exact, "exact", DataError),
        }
        for key, value in (("volume", volume), ("limits", limits)):
            if value is not None:
                if not isinstance(value, Mapping):
                    raise DataError(f"{key} is {_settings.plain(value)!r}, expected a dict of settings")
                settings[key] = {str(name).replace("_", "-"): item for name, item in value.items()}
        if images_per_shard is not None:
            images_per_shard = _settings.whole(images_per_shard, "images_per_shard", DataError)
        with _inputs.bar("images", progress) as show:
            inner = self._inner.images(_settings.to_json(settings, DataError), os.fspath(cache), images_per_shard, show, threads)
        return ImageStore(inner)

    def __len__(self) -> int:
        return self.n

    def __copy__(self) -> Cohort:
        return Cohort(self._inner)

    def __deepcopy__(self, memo: dict[int, Any]) -> Cohort:
        # Nothing of a cohort changes.
        return Cohort(self._inner)

    def __reduce__(self) -> Any:
        raise TypeError("a Cohort cannot be pickled, expected its to_pandas(), or reading it again in the other process")

    def __repr__(self) -> str:
        left_out = f"{len(self._inner.exclusions())} of {self.n_read} rows left out"
        return f'Cohort "{self.name}": {self.n} samples of {self.n_subjects} subjects, {self.n_events} events; {left_out}'
