"""In which respects the data of groups differ, before any model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _fairtte, _inputs, _labels, _settings
from ._errors import MetricError
from .evaluation import _known


class BiasSources:
    """The result of :func:`bias_sources`. Frames are of polars if an argument was, otherwise of pandas.

    >>> import numpy as np, fairtte
    >>> sex = np.where(np.arange(60) % 2, "F", "M")
    >>> found = fairtte.bias_sources(np.arange(120.0).reshape(60, 2) % 7, 1.0 + np.arange(60) % 9, sex == "M", groups={"sex": sex},
    ...     permutations=19, replicates=0)
    >>> found
    BiasSources of sex: n = 60, events = 30
    """

    def __init__(self, found: dict[str, Any], kind: str) -> None:
        self._found = found
        self._kind = kind

    @property
    def sources(self) -> Any:
        """One row per attribute and source (``image-features``, ``mi-time``, ``mi-censoring``, ``time-distribution``,
        ``censoring-rate``): value in [0, 1], the two levels that differ most, lower and upper end of the interval, p of
        permuted groups, value above the mean of permutations, n, reason where there is no value.

        >>> import numpy as np, fairtte
        >>> sex = np.where(np.arange(60) % 2, "F", "M")
        >>> found = fairtte.bias_sources(np.arange(120.0).reshape(60, 2) % 7, 1.0 + np.arange(60) % 9, sex == "M", groups={"sex": sex},
        ...     permutations=19, replicates=0)
        >>> float(found.sources.set_index("source").loc["censoring-rate", "value"])
        1.0
        """
        rows = []
        for attribute in self._found["attributes"]:
            for source in attribute["sources"]["sources"]:
                rows.append(_source(attribute["sources"]["attribute"], source))
        names = ("attribute", "source", "value", "first", "second", "lower", "upper", "p", "above_chance", "n", "reason")
        return _inputs.to_frame(rows, names, self._kind)

    @property
    def separability(self) -> Any:
        """One row per attribute and level: the AUC, of held-out folds, with which a logistic regression tells the level from
        all others by the features; 0.5 = not at all.

        >>> import numpy as np, fairtte
        >>> sex = np.where(np.arange(60) % 2, "F", "M")
        >>> found = fairtte.bias_sources(np.arange(120.0).reshape(60, 2) % 7, 1.0 + np.arange(60) % 9, sex == "M", groups={"sex": sex},
        ...     permutations=19, replicates=0)
        >>> list(found.separability["level"])
        ['F', 'M']
        """
        rows = []
        for attribute in self._found["attributes"]:
            for level in attribute["separability"]["levels"]:
                lower, upper = level["interval"] or (None, None)
                row = {"attribute": attribute["separability"]["attribute"], "level": level["level"], "n": level["n"]}
                auc = level["auc"]
                row |= {"auc": auc.get("value"), "lower": lower, "upper": upper, "reason": auc.get("undefined")}
                rows.append(row)
        return _inputs.to_frame(rows, ("attribute", "level", "n", "auc", "lower", "upper", "reason"), self._kind)

    def to_dict(self) -> dict[str, Any]:
        """Everything: sources with all groups and pairs, separability, kept components, settings.

        >>> import numpy as np, fairtte
        >>> sex = np.where(np.arange(60) % 2, "F", "M")
        >>> found = fairtte.bias_sources(np.arange(120.0).reshape(60, 2) % 7, 1.0 + np.arange(60) % 9, sex == "M", groups={"sex": sex},
        ...     permutations=19, replicates=0)
        >>> found.to_dict()["n"]
        60
        """
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> str:
        """The same as text.

        >>> import numpy as np, fairtte
        >>> sex = np.where(np.arange(60) % 2, "F", "M")
        >>> found = fairtte.bias_sources(np.arange(120.0).reshape(60, 2) % 7, 1.0 + np.arange(60) % 9, sex == "M", groups={"sex": sex},
        ...     permutations=19, replicates=0)
        >>> found.to_json()[:1]
        '{'
        """
        return json.dumps(self._found)

    def __repr__(self) -> str:
        names = ", ".join(attribute["sources"]["attribute"] for attribute in self._found["attributes"])
        return f"BiasSources of {names}: n = {self._found['n']}, events = {self._found['n-events']}"


def _source(attribute: str, source: Mapping[str, Any]) -> dict[str, Any]:
    row = {"attribute": attribute, "source": source["source"], "n": source["n"]}
    estimate = source["estimate"].get("value")
    if estimate is None:
        return row | {"reason": source["estimate"]["undefined"]}
    levels = {group["group"]: group["level"] for group in source["groups"]}
    first, second = estimate["pair"]
    lower, upper = estimate["interval"] or (None, None)
    return row | {
        "value": estimate["value"],
        "first": levels[first],
        "second": levels[second],
        "lower": lower,
        "upper": upper,
        "p": estimate["permutation"]["p-value"],
        "above_chance": estimate["null-corrected"],
    }


def bias_sources(
    features: Any,
    time: Any,
    event: Any = None,
    *,
    groups: Any,
    cuts: Mapping[str, Sequence[float]] | None = None,
    subject: Any = None,
    intersections: bool = False,
    components: int = 64,
    permutations: int = 1000,
    replicates: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    **settings: Any,
) -> BiasSources:
    """The five sources of bias (FairTTE, F.4) between groups: distribution of the features, their information about the time
    and about censoring, distribution of the times, rate of censoring; and how well the features tell the groups apart.

    Parameters
    ----------
    features : array or data frame [n, d]
        Finite numbers, such as the representation of a network or columns of a table.
    time, event : array [n]
        As in :func:`fairtte.evaluate`; without ``event``, ``time`` is a ``Surv`` array.
    groups, cuts, subject, intersections, threads
        As in :func:`fairtte.evaluate`.
    components : int
        Principal components of the standardised features that are kept; fewer features are kept as they are.
    permutations, replicates : int
        Behind p values and intervals; 0 replicates give no intervals.
    seed : int
    **settings
        ``n_clusters``, ``quantisation`` (``"k-means"`` or ``"equal-frequency"``), ``n_bins``, ``n_projections``, ``resample``,
        ``level``, ``min_group_size``.

    Raises
    ------
    MetricError
        A ``ValueError`` that names the argument.

    Examples
    --------
    >>> import numpy as np, fairtte
    >>> rng = np.random.default_rng(0)
    >>> sex = np.where(np.arange(200) % 2, "F", "M")
    >>> event = (sex == "M") | (np.arange(200) % 4 == 1)   # half of the women are censored
    >>> found = fairtte.bias_sources(rng.normal(size=(200, 3)), rng.exponential(size=200), event,
    ...     groups={"sex": sex}, permutations=99, replicates=0)
    >>> rows = found.sources.set_index("source")
    >>> float(rows.loc["censoring-rate", "value"]), float(rows.loc["censoring-rate", "p"])
    (0.5, 0.01)
    """
    _settings.require_known(settings, _settings.BIAS, bias_sources)
    intersections = _settings.flag(intersections, "intersections")
    observed, events = _inputs.outcomes(time, event)
    _labels.require_one_order(features=features, time=time, event=event, groups=groups, subject=subject)
    named = _inputs.columns(groups, "groups")
    if not named:
        raise MetricError("groups is empty, expected at least one attribute")
    attributes = _inputs.attributes(named, cuts, intersections)
    subjects = None if subject is None else [_inputs.text(value) for value in _known(subject, "subject")]
    chosen = settings | {"n_permutations": permutations, "n_replicates": replicates, "seed": seed}
    found = _fairtte.bias_sources(
        _inputs.matrix(features, "features"), observed, events, attributes, intersections, subjects,
        _settings.whole(components, "components"),
        _settings.to_json(chosen), threads,
    )  # fmt: skip
    return BiasSources(json.loads(found), _inputs.frame_library(features, groups, time, event, subject))
