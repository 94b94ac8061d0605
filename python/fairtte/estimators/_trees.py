"""Forests and boosting."""

from __future__ import annotations

from typing import Any

from ._base import Estimator


class RandomSurvivalForest(Estimator):
    """Trees split by the log-rank statistic (Ishwaran et al. 2008). The risk is the expected mortality.

    Parameters
    ----------
    preset : "ranger", "rfsrc" or "scikit-survival"
        The package whose settings hold where another parameter is None.
    n_estimators : int
        Trees.
    max_features : int, "sqrt", "sqrt-rounded-up" or "all"
        Columns that are drawn for a split.
    constant_columns : "counted", "counted-once", "replaced" or "replaced-if-all"
        What happens if a drawn column is constant in the node.
    cuts_per_column : int
        Cuts of a column that are drawn; 0 = all are compared.
    node_sizes : "draws" or "samples"
        What a sample that was drawn several times counts in the three sizes that follow.
    min_samples_split, min_samples_leaf, min_events_leaf : int
        Of a node that may be split, and of a child.
    max_depth : int
        Splits on the way to a leaf.
    sampling : "bootstrap", "all" or {"subsample": share}
        What a tree is grown from.
    random_state : int
        Seed; results do not depend on ``n_jobs``.
    n_jobs : int
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import RandomSurvivalForest, surv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = surv(rng.exponential(np.exp(-2 * X[:, 0])), np.ones(200, bool))
    >>> forest = RandomSurvivalForest(n_estimators=20).fit(X, y)
    >>> forest.score(X, y) > 0.8
    True
    >>> low, high = forest.predict_survival_function([[-2.0, 0.0], [2.0, 0.0]])
    >>> low(0.5) > high(0.5)
    True
    """

    _name = "forest"

    def __init__(
        self,
        *,
        preset: str = "ranger",
        n_estimators: int | None = None,
        max_features: int | str | None = None,
        constant_columns: str | None = None,
        cuts_per_column: int | None = None,
        node_sizes: str | None = None,
        min_samples_split: int | None = None,
        min_samples_leaf: int | None = None,
        min_events_leaf: int | None = None,
        max_depth: int | None = None,
        sampling: str | dict[str, float] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.preset = preset
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.constant_columns = constant_columns
        self.cuts_per_column = cuts_per_column
        self.node_sizes = node_sizes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_events_leaf = min_events_leaf
        self.max_depth = max_depth
        self.sampling = sampling
        self.random_state = random_state
        self.n_jobs = n_jobs


class GradientBoostedCox(Estimator):
    """Regression trees fitted to the gradient of Cox's partial likelihood (Ridgeway 1999); scikit-survival's defaults.
    The risk is the log hazard ratio.

    Parameters
    ----------
    n_estimators : int
        Trees.
    learning_rate : float in (0, 1]
        What every tree is multiplied by.
    max_depth, min_samples_split, min_samples_leaf : int
        Splits on the way to a leaf; samples of a node that may be split, and of a child.
    max_features : int, "sqrt", "sqrt-rounded-up" or "all"
        Columns that are drawn for a split.
    subsample : float in (0, 1]
        Share of the samples that a tree is fitted to.
    dropout : float in [0, 1)
        Share of the earlier trees that a tree is fitted without.
    early_stopping : {"share": 0.1, "patience": 10, "tolerance": 1e-4}
        Samples that are held out and say when to stop. None: all trees are fitted.
    random_state : int
        Seed.
    n_jobs : int
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtte.estimators import GradientBoostedCox, surv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = surv(rng.exponential(np.exp(-2 * X[:, 0])), np.ones(200, bool))
    >>> GradientBoostedCox(n_estimators=20).fit(X, y).score(X, y) > 0.8
    True
    """

    _name = "boosting"

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int = 3,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_features: int | str = "all",
        subsample: float = 1.0,
        dropout: float = 0.0,
        early_stopping: dict[str, float] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.subsample = subsample
        self.dropout = dropout
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.n_jobs = n_jobs
