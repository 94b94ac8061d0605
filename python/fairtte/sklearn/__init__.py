"""Scorers for scikit-learn's model selection, such as ``GridSearchCV`` over a pipeline with a survival model.

:class:`concordance_scorer` and :class:`gap_scorer` are passed as ``scoring``. The scores with weights for censoring need the outcomes of the
training folds: as in scikit-survival, ``as_*_scorer`` wraps the estimator, whose ``score`` it replaces.
"""

from ._refitted import as_concordance_index_ipcw_scorer, as_cumulative_dynamic_auc_scorer, as_integrated_brier_score_scorer
from ._scorers import concordance_scorer, gap_scorer

__all__ = [
    "as_concordance_index_ipcw_scorer",
    "as_cumulative_dynamic_auc_scorer",
    "as_integrated_brier_score_scorer",
    "concordance_scorer",
    "gap_scorer",
]
