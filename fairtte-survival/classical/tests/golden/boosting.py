"""Records gradient-boosted Cox regression of scikit-survival: boosting.json.

Columns and times are exact in single precision, to which scikit-survival rounds columns. No two columns have the same best split, which
is checked by fits with other random states: chance decides nothing but what is recorded (subsamples, dropped trees, held-out rows).
Run in this folder with scikit-survival installed.
"""

import json

import numpy as np
import sklearn
import sksurv
import sksurv.ensemble.boosting as boosting
from sksurv.ensemble import GradientBoostingSurvivalAnalysis
from sksurv.util import Surv

N, P = 120, 4
rng = np.random.default_rng(20261125)
x = np.round(rng.normal(size=(N, P)) * 1024) / 1024
x[:, 3] = rng.integers(0, 6, N)
eta = 1.2 * x[:, 0] - 0.8 * (x[:, 1] > 0.3) + 0.4 * x[:, 2] ** 2
waited = np.ceil(rng.exponential(np.exp(-eta)) * 64) / 16
censored = np.ceil(rng.exponential(2.0, N) * 64) / 16
time, event = np.minimum(waited, censored), waited <= censored
y = Surv.from_arrays(event, time)
new = np.round(rng.normal(size=(15, P)) * 1024) / 1024
new[:, 3] = rng.integers(0, 6, 15)


def settings(rate, trees, depth, split, leaf, **more):
    shape = {
        "learning-rate": rate,
        "n-estimators": trees,
        "max-depth": depth,
        "min-samples-split": split,
        "min-samples-leaf": leaf,
    }
    return {**shape, **{name.replace("_", "-"): value for name, value in more.items()}}


def fit(case, state, **more):
    named = {name.replace("-", "_"): value for name, value in case.items()}
    return GradientBoostingSurvivalAnalysis(loss="coxph", random_state=state, **named, **more).fit(x, y)


def risks(model):
    return {"risk": model.predict(x).tolist(), "risk-new": model.predict(new).tolist()}


def whole(case):
    model = fit(case, 0)
    for state in range(1, 5):
        assert np.abs(fit(case, state).predict(x) - model.predict(x)).max() < 1e-9, (case, state)
    staged, staged_new = list(model.staged_predict(x)), list(model.staged_predict(new))
    after = [k for k in (1, 10, 100) if k <= case["n-estimators"]]
    root = model.estimators_[0, 0].tree_
    return {
        **case,
        "after": after,
        "risk": [staged[k - 1].tolist() for k in after],
        "risk-new": [staged_new[k - 1].tolist() for k in after],
        "losses": model.train_score_.tolist(),
        "times": model.unique_times_.tolist(),
        "survival-new": model.predict_survival_function(new[:4], return_array=True).tolist(),
        "first-column": int(root.feature[0]),
        "first-threshold": float(root.threshold[0]),
    }


def subsample():
    case, masks, draw = settings(0.2, 12, 3, 2, 5, subsample=0.7), [], boosting._random_sample_mask

    def keep(*arguments):
        masks.append(draw(*arguments).copy())
        return masks[-1]

    boosting._random_sample_mask = keep
    model = fit(case, 0)
    drawn = iter(masks)
    boosting._random_sample_mask = lambda *arguments: next(drawn)
    assert np.abs(fit(case, 3).predict(x) - model.predict(x)).max() < 1e-9
    boosting._random_sample_mask = draw
    return {**case, "masks": [[int(value) for value in mask] for mask in masks], **risks(model)}


def dropout():
    case, dropped, draw = settings(0.3, 12, 2, 2, 5, dropout_rate=0.3), [], boosting._sample_binomial_plus_one

    def keep(*arguments):
        mask, n = draw(*arguments)
        dropped.append(np.flatnonzero(mask).tolist())
        return mask, n

    boosting._sample_binomial_plus_one = keep
    model = fit(case, 0)
    boosting._sample_binomial_plus_one = draw
    return {**case, "dropped": dropped, **risks(model), "scale": model._scale.tolist()}


def early_stopping():
    case, held_out, split = settings(0.3, 200, 2, 2, 5), [], boosting.train_test_split

    def keep(*arrays, **named):
        _, test = split(np.arange(N), **named)
        held_out.extend(sorted(test.tolist()))
        return split(*arrays, **named)

    boosting.train_test_split = keep
    model = fit(case, 0, validation_fraction=0.25, n_iter_no_change=4, tol=1e-4)
    boosting.train_test_split = split
    stopping = {"validation-fraction": 0.25, "patience": 4, "tolerance": 1e-4, "held-out": held_out}
    return {**case, **stopping, "trees": int(model.n_estimators_), **risks(model)}


recorded = {
    "provenance": f"scikit-survival {sksurv.__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}: "
    "GradientBoostingSurvivalAnalysis(loss='coxph', random_state=0, settings of each case); data numpy.random.default_rng(20261125). "
    "The same predictions to 1e-9 with random_state 1 to 4: no two columns have the same best split",
    "x": x.tolist(),
    "time": time.tolist(),
    "event": event.tolist(),
    "x-new": new.tolist(),
    "cases": [whole(case) for case in [settings(0.1, 100, 3, 2, 5), settings(0.5, 100, 2, 30, 8), settings(1.0, 10, 1, 2, 1)]],
    "subsample": subsample(),
    "dropout": dropout(),
    "early-stopping": early_stopping(),
}
json.dump(recorded, open("boosting.json", "w"))
