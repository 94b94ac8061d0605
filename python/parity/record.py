"""Prints the values in tests/test_packages.py from scikit-survival and pycox: `PYTHONPATH=tests python parity/record.py`.

The metrics of pycox do not use torch; where it is not installed, an empty module in its place does."""

import numpy as np
import pandas as pd
from conftest import Cohort
from pycox.evaluation import EvalSurv
from sksurv import metrics

c = Cohort(n=60, k=8, seed=3)
grid = np.linspace(0.2, 1.5, 9)
at = np.exp(-np.outer(np.exp(c.risk), grid))
rising = at[:, ::-1].copy()
print("harrell", [float(v) for v in metrics.concordance_index_censored(c.event, c.time, np.round(c.risk, 1))])
train = c.y.copy()
train["time"][np.argmax(train["time"])] += 1
print("uno", [float(v) for v in metrics.concordance_index_ipcw(train, c.y, c.risk, tau=1.5)])
auc, mean = metrics.cumulative_dynamic_auc(train, c.y, np.round(1 - at, 1), grid)
print("auc", auc.tolist(), float(mean))
print("auc of one risk", float(metrics.cumulative_dynamic_auc(train, c.y, c.risk, grid)[1]))
print("brier", metrics.brier_score(train, c.y, at, grid)[1].tolist())
print("rising", metrics.brier_score(train, c.y, rising, grid)[1].tolist())
print("ibs", float(metrics.integrated_brier_score(train, c.y, at, grid)))
for steps in ("post", "pre"):
    found = EvalSurv(pd.DataFrame(c.survival.T, index=c.times), c.time, c.event.astype(int), censor_surv="km", steps=steps)
    print(steps, "adj", float(found.concordance_td()), "antolini", float(found.concordance_td("antolini")))
    print(steps, "brier", found.brier_score(grid).tolist())
    print(steps, "nbll", found.nbll(grid).tolist())

part = EvalSurv(pd.DataFrame(c.survival.T, index=c.times), c.time, c.event.astype(int), censor_surv="km")[10:50]
print("pycox of 40 samples", part.brier_score(grid).tolist(), float(part.concordance_td()), part.idx_at_times(grid).tolist())

# scikit-survival's scorers of a Cox model.
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import as_concordance_index_ipcw_scorer, as_cumulative_dynamic_auc_scorer, as_integrated_brier_score_scorer

features, times = np.column_stack([c.risk, c.age]), grid[2:7]
for scorer in (
    as_concordance_index_ipcw_scorer(CoxPHSurvivalAnalysis(ties="efron"), tau=1.2),
    as_cumulative_dynamic_auc_scorer(CoxPHSurvivalAnalysis(ties="efron"), times),
    as_integrated_brier_score_scorer(CoxPHSurvivalAnalysis(ties="efron"), times),
):
    print(type(scorer).__name__, float(scorer.fit(features[:40], c.y[:40]).score(features[40:], c.y[40:])))

# Of SurvivalEVAL, whose requirements fix another version of torch: pip install --no-deps SurvivalEVAL
try:
    from SurvivalEVAL import SurvivalEvaluator
except ImportError:
    raise SystemExit("SurvivalEVAL is not installed") from None
evaluator = SurvivalEvaluator(c.survival, c.times, c.time, c.event.astype(int), train["time"], train["event"].astype(int))
tied = SurvivalEvaluator(np.round(c.survival, 1), c.times, np.ceil(4 * c.time) / 4, c.event.astype(int))
for ties in ("None", "Risk", "Time", "All"):
    print("SurvivalEVAL concordance", ties, [float(v) for v in tied.concordance_time_dependent(ties=ties)])
print("SurvivalEVAL auc", float(evaluator.auc()), float(evaluator.auc(0.7)), float(evaluator.auc(0.7, "IPCW")))
print("SurvivalEVAL brier", float(evaluator.brier_score()), evaluator.brier_score_multiple_points(grid).tolist())
print("SurvivalEVAL brier without weights", evaluator.brier_score_multiple_points(grid, False).tolist())
print("SurvivalEVAL ibs", *(float(evaluator.integrated_brier_score(**how)) for how in ({}, {"num_points": 5}, {"target_times": grid})))
p, mass = evaluator.d_calibration()
print("SurvivalEVAL d-calibration", float(p), mass.tolist())
for how in ({"target_time": 0.7, "num_bins": 4}, {"num_bins": 4, "adjust_variance": False}):
    print("SurvivalEVAL one-calibration", how, evaluator.one_calibration(**how))
print("SurvivalEVAL KM calibration", float(evaluator.km_calibration()))
