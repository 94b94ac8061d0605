"""Do models differ over several settings? Rank tests, signed-rank tests and the diagram of average ranks.

A setting is a data set, a seed, or a data set with an attribute; ``values`` is ``[n_settings, n_models]``, an array or a data
frame whose columns are the models. :mod:`fairtte.tests` is another name of this module.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _fairtte, _inputs, _labels, _settings
from ._errors import FairtteError

__all__ = ["Friedman", "SignedRank", "cd_diagram", "friedman", "holm", "nemenyi", "wilcoxon"]


class Friedman(NamedTuple):
    """The result of :func:`friedman`.

    >>> from fairtte import stats
    >>> stats.friedman([[0.1, 0.2], [0.5, 0.6]]).average_ranks
    {'0': 2.0, '1': 1.0}
    """

    statistic: float
    """Chi-square, between 0 and N (k - 1)."""
    degrees: int
    p_value: float
    f: float | None
    """F of Iman and Davenport; None where all settings rank the models alike (F is infinite) or there is one setting."""
    f_degrees: tuple[int, int] | None
    f_p_value: float | None
    average_ranks: dict[str, float]
    """By model; 1 = best in every setting."""


class SignedRank(NamedTuple):
    """The result of :func:`wilcoxon`.

    >>> from fairtte import stats
    >>> stats.wilcoxon([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]).positive_rank_sum
    6.0
    """

    positive_rank_sum: float
    """W+, the rank sum of the positive differences."""
    negative_rank_sum: float
    p_value: float
    z: float | None
    """Standardised W+, of the normal approximation alone."""
    null: str
    """The distribution that p was taken from."""
    n: int
    n_zero: int
    """Pairs without a difference."""
    n_tied: int
    """Differences other than 0 whose size occurs more than once."""


def _table(values: Any) -> tuple[NDArray[Any], list[str]]:
    found = _inputs.matrix(values, "values")
    names = [str(name) for name in values.columns] if _inputs.is_frame(values) else [str(k) for k in range(found.shape[1])]
    return found, names


def friedman(values: Any, *, higher_is_better: bool = True, ties: str = "corrected") -> Friedman:
    """Friedman's test that all models have the same average rank, and the F test of Iman and Davenport (1980).

    Parameters
    ----------
    values : array or data frame [n_settings, n_models]
        Finite numbers.
    higher_is_better : bool
        Whether rank 1 is the highest value.
    ties : "corrected" (SciPy, R) or "uncorrected" (critdd, Demšar 2006)

    Raises
    ------
    MetricError
        For values that are not finite, fewer than two models, no setting, and if all models tie everywhere.

    Examples
    --------
    >>> from fairtte.stats import friedman
    >>> found = friedman([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]], higher_is_better=False)
    >>> found.statistic, found.degrees, round(found.p_value, 6)
    (4.0, 2, 0.135335)
    """
    table, names = _table(values)
    chi_square, degrees, p, of_f, ranks = _fairtte.friedman(table, _settings.flag(higher_is_better, "higher_is_better"), json.dumps(ties))
    f, f_degrees, f_p = of_f if of_f is not None else (None, None, None)
    return Friedman(chi_square, degrees, p, f, f_degrees, f_p, dict(zip(names, ranks, strict=True)))


def nemenyi(values: Any, *, higher_is_better: bool = True) -> Any:
    """Nemenyi's p values of all pairs of models, symmetric with 1 on the diagonal, to be read where :func:`friedman`
    rejects: an array ``[n_models, n_models]``, or a data frame with the models' names if ``values`` is one (of polars with
    a first column ``model``).

    Raises :class:`fairtte.MetricError` as :func:`friedman`.

    >>> from fairtte.stats import nemenyi
    >>> nemenyi([[0.1, 0.2], [0.5, 0.6], [0.1, 0.3], [0.2, 0.3]]).round(4)
    array([[1.    , 0.0455],
           [0.0455, 1.    ]])
    """
    table, names = _table(values)
    found = _fairtte.nemenyi(table, _settings.flag(higher_is_better, "higher_is_better"))
    if not _inputs.is_frame(values):
        return found
    if _inputs.library(values) == "polars":
        import polars

        return polars.DataFrame({"model": names, **{name: found[:, k] for k, name in enumerate(names)}})
    import pandas

    return pandas.DataFrame(found, index=names, columns=names)


def wilcoxon(
    first: Any, second: Any, *, alternative: str = "two-sided", zeros: str = "drop", method: str = "exact"
) -> SignedRank:
    """Wilcoxon's signed-rank test of paired values.

    Parameters
    ----------
    first, second : array [n]
        Finite numbers in the same order.
    alternative : "two-sided", "greater" (the first values are larger) or "less"
    zeros : "drop", "pratt" or "split"
        Pairs without a difference.
    method : str
        ``"exact"`` (the permutation distribution given ties and zeros, up to 1,000 differences), ``"normal"``, ``"scipy-auto"``,
        ``"r-default"`` and ``"exact-unless-tied"`` (R's ``exact = TRUE``), both with R's correction for continuity, ``"untied-table"``
        (SciPy's ``exact``).

    Raises
    ------
    MetricError
        For values that differ in number or are not finite, unknown words, and where the test does not exist.

    Examples
    --------
    >>> from fairtte.stats import wilcoxon
    >>> found = wilcoxon([11, 12, 13, 14], [10, 10, 10, 18])
    >>> found.positive_rank_sum, found.negative_rank_sum, found.p_value
    (6.0, 4.0, 0.875)
    """
    _labels.refuse_permuted(first=first, second=second)
    of_method: Any = method
    corrections = {"normal": False, "scipy-auto": False, "exact-unless-tied": True, "r-default": True}
    if method in corrections:
        of_method = {method: {"continuity_correction": corrections[method]}}
    found = json.loads(
        _fairtte.wilcoxon(
            _inputs.numbers(first, "first"),
            _inputs.numbers(second, "second"),
            json.dumps(alternative),
            json.dumps(zeros),
            json.dumps(of_method),
        )
    )
    return SignedRank(**{name: found.get(name.replace("_", "-")) for name in SignedRank._fields})


def holm(p_values: Any, *, method: str = "holm") -> NDArray[np.float64]:
    """p values adjusted for their number, in the order given: ``"holm"``, ``"bonferroni"`` or ``"benjamini-hochberg"``.

    Raises :class:`fairtte.MetricError` for a value outside [0, 1] and another method.

    >>> from fairtte.stats import holm
    >>> holm([0.5, 0.125, 0.25])
    array([0.5  , 0.375, 0.5  ])
    """
    return np.array(_fairtte.adjust(_inputs.numbers(p_values, "p_values"), json.dumps(method)))


def cd_diagram(values: Any, *, alpha: float = 0.05, higher_is_better: bool = True, ax: Any = None) -> Any:
    """Draws the average ranks of the models on a line; bars join models whose ranks are within the critical difference of
    Nemenyi's test at ``alpha`` (Demšar 2006, figure 1). Needs matplotlib; returns the axes, best rank on the left.

    Raises :class:`fairtte.FairtteError` without matplotlib, and :class:`fairtte.MetricError` as :func:`friedman`.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from fairtte.stats import cd_diagram
    >>> cd_diagram([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]]).texts[-1].get_text()
    'critical difference 2.34'
    """
    table, names = _table(values)
    ranks, apart, groups = _fairtte.rank_groups(
        table, _settings.flag(higher_is_better, "higher_is_better"), _settings.number(alpha, "alpha")
    )
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise FairtteError("figures need matplotlib: pip install fairtte[plot]") from None
    n_models = len(names)
    ax = plt.subplots(figsize=(7, 1.2 + 0.22 * n_models))[1] if ax is None else ax
    order = sorted(range(n_models), key=lambda model: ranks[model])
    half = (n_models + 1) // 2
    bars = [group for group in groups if len(group) > 1]
    below = 0.6 + 0.25 * len(bars)
    for place, model in enumerate(order):
        on_left = place < half
        depth = below + 0.5 * (place if on_left else n_models - 1 - place)
        edge = 0.8 if on_left else n_models + 0.2
        ax.plot([ranks[model], ranks[model], edge], [0, -depth, -depth], color="0.3", linewidth=0.8)
        label = f"{names[model]} ({ranks[model]:.2f})"
        ax.text(edge, -depth, f"{label} " if on_left else f" {label}", ha="right" if on_left else "left", va="center")
    for place, group in enumerate(bars):
        ends = [ranks[group[0]] - 0.03, ranks[group[-1]] + 0.03]
        ax.plot(ends, [-0.3 - 0.25 * place] * 2, color="black", linewidth=3, solid_capstyle="butt", gid="group")
    ax.plot([1, n_models], [0, 0], color="black")
    for rank in range(1, n_models + 1):
        ax.plot([rank, rank], [0, 0.12], color="black")
        ax.text(rank, 0.2, str(rank), ha="center", va="bottom")
    ax.plot([1, 1 + apart], [1.1, 1.1], color="black", gid="critical difference")
    ax.text(1 + apart / 2, 1.2, f"critical difference {apart:.2f}", ha="center", va="bottom")
    ax.set_axis_off()
    return ax
