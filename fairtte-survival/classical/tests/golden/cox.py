"""Records what lifelines and scikit-survival compute for the tests of Cox regression: python cox.py > cox.json

Made-up samples; times with ties are whole numbers.
"""

import json
import sys

import lifelines
import numpy as np
import pandas as pd
import sksurv
from lifelines import CoxPHFitter, CoxTimeVaryingFitter, KaplanMeierFitter
from lifelines.statistics import proportional_hazard_test
from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis
from sksurv.util import Surv

N, NAMES = 90, ["a", "b", "c", "d"]
EXACT = {"precision": 1e-13, "step_size": 1.0}

rng = np.random.default_rng(12)
x = np.round(rng.normal(size=(N, 4)) * [1.0, 2.0, 1.0, 0.5] + [0.0, 5.0, 0.0, 1.0], 3)
x[:, 2] = (x[:, 2] > 0.3).astype(float)
x[:, 3] = np.round(x[:, 3] + 0.4 * x[:, 0], 3)
eta = 0.6 * x[:, 0] - 0.25 * x[:, 1] + 0.5 * x[:, 2]
waited = rng.exponential(size=N) * np.exp(-eta) * 2.0
censored = rng.exponential(size=N) * 12.0
distinct = np.round(np.minimum(waited, censored) + 1e-3 * (1 + np.arange(N)), 6)
event = waited <= censored
tied = np.clip(np.ceil(4.0 * np.log1p(distinct)), 1, 9)
stratum = np.arange(N) * 7 % 3
subject = np.arange(N) // 2 * 11 % 45
assert len(set(distinct)) == N


def frame(time, **more):
    return pd.DataFrame(x, columns=NAMES).assign(time=time, event=event, **more)


def fitted(fitter, data, **kwargs):
    fitter.fit(data, "time", "event", fit_options=EXACT, **kwargs)
    return fitter


def summary(fitter):
    return {
        "coefficients": list(fitter.params_),
        "errors": list(fitter.standard_errors_),
        "log-likelihood": float(fitter.log_likelihood_),
    }


def tests(fitter, data, transform):
    return list(proportional_hazard_test(fitter, data, time_transform=transform).test_statistic)


def left_continuous_km(t, c, w):
    curve = KaplanMeierFitter().fit(t, c).survival_function_["KM_estimate"]
    return pd.Series([1 - curve[curve.index < time].iloc[-1] for time in t], index=t.index)


def average_rank(t, c, w):
    ranks = t[c.astype(bool)].rank()
    return ranks.reindex(t.index)


def split_rows(time, columns):
    """Rows of every sample between event times, with columns(x, stop)."""
    stops = np.unique(time[event])
    rows = []
    for k in range(N):
        start = 0.0
        for stop in [*stops[stops < time[k]], time[k]]:
            # The last row ends at the time of the sample; only event times are compared.
            rows.append([k, start, stop, bool(event[k] and stop == time[k]), *columns(x[k], stop)])
            start = stop
    names = [f"v{j}" for j in range(len(rows[0]) - 4)]
    return pd.DataFrame(rows, columns=["id", "start", "stop", "event", *names])


def varying(time, columns):
    fitter = CoxTimeVaryingFitter()
    fitter.fit(split_rows(time, columns), id_col="id", event_col="event", start_col="start", stop_col="stop", fit_options=EXACT)
    return summary(fitter)


KNOTS = [3.0, 6.0]
with_ties, without = frame(tied), frame(distinct)
efron, plain = fitted(CoxPHFitter(), with_ties), fitted(CoxPHFitter(), without)
standard = (x - x.mean(0)) / x.std(0)
outcomes = {"tied": Surv.from_arrays(event, tied), "distinct": Surv.from_arrays(event, distinct)}

ridge = []
for ties in ["breslow", "efron"]:
    model = CoxPHSurvivalAnalysis(alpha=7.5, ties=ties, n_iter=200, tol=1e-15).fit(standard, outcomes["tied"])
    ridge.append({"ties": ties, "alpha": 7.5, "coefficients": list(model.coef_)})

coxnet = []
for times in ["tied", "distinct"]:
    for l1_ratio in [0.05, 0.5, 0.9, 1.0]:
        path = CoxnetSurvivalAnalysis(l1_ratio=l1_ratio, n_alphas=12, alpha_min_ratio=0.01, tol=1e-15, max_iter=10_000_000)
        path.fit(standard, outcomes[times])
        coxnet.append({
            "times": times,
            "l1-ratio": l1_ratio,
            "lambdas": list(path.alphas_),
            "coefficients": path.coef_.T.tolist(),
            "deviance-ratio": list(path.deviance_ratio_),
        })

record = {
    "provenance": {
        "lifelines": lifelines.__version__,
        "scikit-survival": sksurv.__version__,
        "numpy": np.__version__,
        "call": "cox.py in this folder: CoxPHFitter, CoxTimeVaryingFitter and proportional_hazard_test of lifelines; "
        "CoxPHSurvivalAnalysis and CoxnetSurvivalAnalysis of scikit-survival on standardised columns",
        "data": "made up, numpy.random.default_rng(12)",
    },
    "names": NAMES,
    "x": x.tolist(),
    "tied": tied.tolist(),
    "distinct": distinct.tolist(),
    "event": event.tolist(),
    "stratum": stratum.tolist(),
    "subject": subject.tolist(),
    "efron": summary(efron),
    "distinct-plain": summary(plain),
    "likelihood-ratio": float(efron.log_likelihood_ratio_test().test_statistic),
    "strata": summary(fitted(CoxPHFitter(strata=["stratum"]), frame(tied, stratum=stratum))),
    "robust": summary(fitted(CoxPHFitter(), without, robust=True)),
    "clustered": summary(fitted(CoxPHFitter(), frame(distinct, subject=subject), cluster_col="subject")),
    "robust-strata": summary(fitted(CoxPHFitter(strata=["stratum"]), frame(distinct, stratum=stratum), robust=True)),
    "penalised": {"penalizer": 0.1, **summary(fitted(CoxPHFitter(penalizer=0.1), with_ties))},
    "ridge": ridge,
    "schoenfeld": efron.compute_residuals(with_ties, "schoenfeld").sort_index().to_numpy().tolist(),
    "scaled-schoenfeld": efron.compute_residuals(with_ties, "scaled_schoenfeld").sort_index().to_numpy().tolist(),
    "proportionality": {
        "identity": tests(efron, with_ties, "identity"),
        "log": tests(efron, with_ties, "log"),
        "rank": tests(efron, with_ties, average_rank),
        "km": tests(efron, with_ties, left_continuous_km),
        "rank-distinct": tests(plain, without, "rank"),
    },
    "coxnet": coxnet,
    "time-varying": {
        "knots": KNOTS,
        "identity": varying(tied, lambda row, t: [*row, *(row * t)]),
        "log": varying(distinct, lambda row, t: [*row, *(row * np.log(t + 0.01))]),
        "steps": varying(tied, lambda row, t: [*row, *np.outer(row, [t > knot for knot in KNOTS]).ravel()]),
        "only-b": varying(tied, lambda row, t: [*row, row[1] * t]),
    },
}
json.dump(record, sys.stdout)
