"""Scorers for scikit-learn's model selection, such as ``GridSearchCV`` over a pipeline with a survival model."""

from ._scorers import concordance_scorer, gap_scorer

__all__ = ["concordance_scorer", "gap_scorer"]
