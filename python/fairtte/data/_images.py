"""Decoded images as memory-mapped arrays."""

from __future__ import annotations

import errno
import operator
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _fairtte, _inputs
from .._errors import DataError, MetricError


class ImageStore:
    """Decoded images on disk, as one sequence: ``store[i]`` is an array ``[channels, height, width]`` of uint8 (of volumes
    ``[1, depth, height, width]`` of uint16) that lies in the file's memory map; nothing is copied. A
    slice, row numbers or a mask give a stacked copy. No row number is negative: -1 of :meth:`rows` is no image.

    Attributes
    ----------
    shape : (n, channels, height, width)
    dtype : numpy.dtype
    samples : list of str
        ``sample_id`` of every image; images that could not be decoded are absent (see :attr:`excluded`), and the order is that of
        the files, not that of the cohort (see :meth:`rows`).
    arrays : list of numpy.memmap
        One array ``[n_k, channels, height, width]`` per file.

    Examples
    --------
    >>> import pathlib, tempfile, fairtte.data
    >>> from PIL import Image
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for k in range(3):
    ...     Image.new("L", (8, 8), 80 * k).save(folder / f"{k}.png")
    >>> _ = (folder / "cohort.csv").write_text("image,subject_id,time,event\\n" + "".join(f"{k}.png,p{k},1,1\\n" for k in range(3)))
    >>> store = fairtte.data.table(folder / "cohort.csv", image="image").images(folder / "cache", size=(8, 8))
    >>> int(store[store.rows(["2.png"])[0]].max()), store[0].flags.owndata
    (160, False)
    """

    def __init__(self, inner: _fairtte.Store) -> None:
        self._inner = inner
        self._open()

    def _open(self) -> None:
        shape, kind = self._inner.layout
        self.dtype = np.dtype(kind)
        shards = [shard for shard in self._inner.shards() if shard[2] > 0]
        try:
            self.arrays: list[NDArray[Any]] = [np.memmap(path, self.dtype, "r", begin, (n, *shape)) for path, begin, n in shards]
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            # Python keeps a file open as long as it is mapped.
            raise DataError(
                f"the store {self._inner.path} has {len(shards)} files, more than this process has left to open, expected fewer "
                "(images_per_shard of Cohort.images) or a higher limit (ulimit -n)"
            ) from None
        self._starts = [0, *np.cumsum([len(array) for array in self.arrays]).tolist()]
        self.shape: tuple[int, ...] = (self._starts[-1], *shape)
        self.samples = self._inner.samples()
        self._place = {sample: place for place, sample in enumerate(self.samples)}

    @property
    def array(self) -> NDArray[Any]:
        """The one array ``[n, channels, height, width]``: the memory map itself where all images are in one file, and
        otherwise a copy in memory.

        >>> store.array.shape
        (3, 1, 8, 8)
        """
        return self.arrays[0] if len(self.arrays) == 1 else np.concatenate(self.arrays)

    def rows(self, sample_ids: Any) -> NDArray[np.intp]:
        """The place of each of these samples, -1 where the image could not be decoded or is of no sample of the store; ``store[-1]``
        is an ``IndexError``. Identities are read as text, 7.0 as ``"7"``.

        Raises :class:`fairtte.MetricError` unless they are a column.

        >>> store.rows(["none.png"])
        array([-1])
        """
        values = _inputs.values_of(sample_ids, "sample_ids")
        return np.array([-1 if value is None else self._place.get(_inputs.text(value), -1) for value in values], dtype=np.intp)

    @property
    def excluded(self) -> Any:
        """A data frame with one row per image that could not be decoded: sample_id, reason, message.

        >>> len(store.excluded)
        0
        """
        rows = [{"sample_id": s, "reason": r, "message": m} for s, r, m in self._inner.excluded()]
        return _inputs.to_frame(rows, ("sample_id", "reason", "message"), "pandas")

    @property
    def path(self) -> Path:
        """The folder.

        >>> store.path.parent == folder / "cache"
        True
        """
        return Path(self._inner.path)

    @property
    def recipe(self) -> str:
        """Decoder, scaling rule, filter and versions that made the pixels.

        >>> "png" in store.recipe
        True
        """
        return self._inner.recipe

    def fingerprint(self) -> str:
        """A hash of the samples and their pixels.

        Raises :class:`fairtte.DataError` in a process that the store was sent to.

        >>> len(store.fingerprint())
        64
        """
        return self._inner.fingerprint()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, place: Any) -> NDArray[Any]:
        if isinstance(place, slice):
            return self._stacked(range(*place.indices(len(self))))
        if not isinstance(place, bool | np.bool_):
            try:
                return self._image(operator.index(place))
            except TypeError:
                pass
        return self._stacked(self._places(place))

    def _image(self, index: int) -> NDArray[Any]:
        if index < 0:
            raise IndexError(f"image {index} does not exist, expected 0 to below {len(self)}; rows() has -1 for a sample without an image")
        if index >= len(self):
            raise IndexError(f"image {index} does not exist, expected 0 to below {len(self)}")
        shard = bisect_right(self._starts, index) - 1
        image: NDArray[Any] = self.arrays[shard][index - self._starts[shard]]
        return image

    def _places(self, value: Any) -> list[int]:
        """Row numbers of a column of them or of a mask."""
        expected = f"expected a row number, a slice, a list of row numbers or a mask of {len(self)} images"
        try:
            found = _inputs.vector(value, "index")
        except MetricError as error:
            raise IndexError(f"{str(error).partition(', expected')[0]}, {expected}") from None
        if found.dtype == np.bool_ and len(found) == len(self):
            return [int(place) for place in np.flatnonzero(found)]
        if len(found) and found.dtype.kind not in "iu":
            raise IndexError(f"index has {len(found)} values of the type {found.dtype}, {expected}")
        return [int(place) for place in found]

    def _stacked(self, places: Sequence[int]) -> NDArray[Any]:
        """A copy of the images at these places."""
        found = np.empty((len(places), *self.shape[1:]), dtype=self.dtype)
        for k, place in enumerate(places):
            found[k] = self._image(place)
        return found

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (image for array in self.arrays for image in array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and len(self.arrays) > 1:
            raise ValueError(f"the images are in {len(self.arrays)} files, which one array cannot show without a copy")
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(f"the images are of {self.dtype}, which become {np.dtype(dtype)} by a copy alone")
        found = self.array
        found = found if dtype is None else found.astype(dtype, copy=False)
        return np.array(found) if copy and found is self.arrays[0] else found

    def __repr__(self) -> str:
        return f"ImageStore(shape={self.shape}, dtype={self.dtype}, path={str(self.path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Loaders of torch send the data set to their workers, which map the files again.
        return {
            "layout": self._inner.layout,
            "shards": self._inner.shards(),
            "samples": self.samples,
            "excluded": self._inner.excluded(),
            "path": self._inner.path,
            "recipe": self._inner.recipe,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._inner = _Sent(state)  # type: ignore[assignment]
        self._open()


class _Sent:
    """A store in another process."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.layout, self.path, self.recipe = state["layout"], state["path"], state["recipe"]
        self._state = state

    def shards(self) -> Any:
        return self._state["shards"]

    def samples(self) -> Any:
        return self._state["samples"]

    def excluded(self) -> Any:
        return self._state["excluded"]

    def fingerprint(self) -> str:
        raise DataError("the fingerprint is computed where the store was opened, expected the store of Cohort.images")
