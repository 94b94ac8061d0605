"""Data sets by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _fairtte, _settings
from .._errors import DataError
from ._cohort import Cohort


def _read(name: str, options: Mapping[str, Any], attributes: Any, threads: int | None) -> Cohort:
    chosen = _settings.to_json({key: value for key, value in options.items() if value is not None}, DataError)
    if isinstance(attributes, str | Mapping):
        attributes = [attributes]
    of_attributes = None if attributes is None else json.dumps([_attribute(attribute) for attribute in attributes])
    return Cohort(_fairtte.read_data(name, chosen, of_attributes, threads))


def _attribute(attribute: Any) -> dict[str, Any]:
    if isinstance(attribute, str):
        return {"name": attribute}
    if isinstance(attribute, Mapping) and "name" in attribute:
        found: dict[str, Any] = json.loads(_settings.to_json({str(key): value for key, value in attribute.items()}, DataError))
        return found
    raise DataError(f'an attribute is {attribute!r}, expected a name or a dict such as {{"name": "age", "threshold": 60}}')


def mimic_cxr(
    root: str | os.PathLike[str],
    *,
    attributes: Sequence[str | Mapping[str, Any]] | None = None,
    threads: int | None = None,
    **options: Any,
) -> Cohort:
    """Chest films of MIMIC-CXR-JPG with deaths from MIMIC-IV; times in days.

    Parameters
    ----------
    root : path
        Folder that contains the tables and films of both data sets.
    attributes : list of str or dict
        Sensitive attributes; a dict has ``name`` and ``threshold``, ``reference`` or ``levels``. Default: age, sex and race as in
        the paper.
    **options
        Keys of ``[data.mimic-cxr]`` in a run file, with underscores: ``cxr_root``, ``iv_root``, ``images``, ``death``,
        ``after_discharge``, ``race``, ``unknown_race``, ``race_without_admission``, ``portuguese_white``.

    Raises
    ------
    DataError
        A ``ValueError`` that names the file, the column or the option.

    Examples
    --------
    >>> import fairtte.data
    >>> cohort = fairtte.data.mimic_cxr("mimic")                            # doctest: +SKIP
    >>> cohort.split(0, stratify=["event", "sex"])                          # doctest: +SKIP
    """
    return _read("mimic-cxr", {"root": root, **options}, attributes, threads)


def adni(
    root: str | os.PathLike[str],
    *,
    attributes: Sequence[str | Mapping[str, Any]] | None = None,
    threads: int | None = None,
    **options: Any,
) -> Cohort:
    """Brain MRI of ADNI with the time to Alzheimer's disease; times in years.

    ``root`` is the folder of tables and scans; options are the keys of ``[data.adni]``: ``image_list``, ``dxsum``, ``registry``,
    ``adnimerge``, ``images``, ``final_visit``, ``rounding``, ``dementia_cause``, ``undated_diagnosis``, ``unscheduled_visits``,
    ``scan_of_day``, ``diagnosis_source``, ``missing_current``, ``age``. Attributes as in :func:`mimic_cxr`.

    Raises :class:`fairtte.DataError` as :func:`mimic_cxr`.

    >>> import fairtte.data
    >>> cohort = fairtte.data.adni("adni", final_visit="literal")           # doctest: +SKIP
    """
    return _read("adni", {"root": root, **options}, attributes, threads)


def areds(
    root: str | os.PathLike[str],
    *,
    attributes: Sequence[str | Mapping[str, Any]] | None = None,
    threads: int | None = None,
    **options: Any,
) -> Cohort:
    """Fundus photographs of AREDS with the tables of dbGaP and the time to late age-related macular degeneration of each eye.

    ``root`` is the folder of the tables; options are the keys of ``[data.areds]``: ``images``, ``image_root``, ``mapping``, ``stereo``,
    ``final_visit``, ``eye_never_graded``, ``last_imaging_visit``. Attributes as in :func:`mimic_cxr`.

    Raises :class:`fairtte.DataError` as :func:`mimic_cxr`.

    >>> import fairtte.data
    >>> cohort = fairtte.data.areds("areds", stereo="one")                  # doctest: +SKIP
    """
    return _read("areds", {"root": root, **options}, attributes, threads)


def table(
    path: str | os.PathLike[str],
    *,
    time: str = "time",
    event: str = "event",
    subject: str | None = None,
    sample: str | None = None,
    image: str | None = None,
    image_root: str | os.PathLike[str] | None = None,
    attributes: Sequence[str | Mapping[str, Any]] = (),
    time_unit: str | None = None,
    name: str | None = None,
    missing_values: Sequence[str] | None = None,
    threads: int | None = None,
) -> Cohort:
    """A table of one row per sample: ``.csv``, ``.tsv`` (either also ``.gz``) or ``.parquet``.

    Parameters
    ----------
    path : path
    time, event : str
        Columns with the time to event or censoring (finite, >= 0; without images > 0) and 1 or 0.
    subject : str
        Column with the person, which a split keeps together. Default: with images ``subject_id``, otherwise every row is a
        person.
    sample : str
        Column with the identity of the sample, unique per row. Default: the image, or the number of the row.
    image : str
        Column with the path of an image file, relative to ``image_root`` or the folder of the table. Default: no images.
    attributes : list of str or dict
        Sensitive attributes, columns of the table; as in :func:`mimic_cxr`.
    time_unit, name : str
        For reports.
    missing_values : list of str
        Texts that count as missing, of a table without images.

    Raises
    ------
    DataError
        A ``ValueError`` that names the file, the column, the cell or the option; also in a process that was forked from one that has
        read tables.

    Examples
    --------
    >>> import tempfile, pathlib, fairtte.data
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cohort.csv"
    >>> rows = [f"{k},{k % 7 + 1},{k % 2},{'FM'[k % 3 > 0]}" for k in range(30)] + ["30,,1,F"]
    >>> _ = path.write_text("\\n".join(["person,time,event,sex", *rows]))
    >>> cohort = fairtte.data.table(path, subject="person", attributes=["sex"], time_unit="years")
    >>> cohort
    Cohort "cohort": 30 samples of 30 subjects, 15 events; 1 of 31 rows left out
    >>> list(cohort.exclusions["reason"])
    ['missing_time']
    >>> split = cohort.split(7, stratify=["event", "sex"])
    >>> [len(rows) for rows in (split.train, split.validation, split.test)]
    [18, 6, 6]
    """
    # Images lie beside the table, whose folder a name alone does not say.
    options: dict[str, Any] = {"table": os.path.abspath(path), "time": time, "event": event, "subject": subject, "sample": sample}
    options |= {"time_unit": time_unit, "name": name}
    if image is None:
        if image_root is not None:
            raise DataError("image_root is given without image, the column of the images")
        # The columns that are no outcome may be inputs of a model; the cohort itself keeps the attributes alone.
        options |= {"features": "all", "missing_values": missing_values}
        return _read("tabular", options, attributes, threads)
    if missing_values is not None:
        raise DataError("missing_values is given with image, expected it of a table without images")
    options |= {"image": image, "image_root": image_root}
    return _read("generic", options, attributes, threads)
