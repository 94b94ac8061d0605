"""CPU seconds and peak memory of this package and of scikit-survival and pycox for the same numbers, one line each.

`RAYON_NUM_THREADS=1 python benches/side_by_side.py fairtte|fairtte-sksurv|scikit-survival|pycox [REPLICATES]`; each in a process of
its own, so that the memory is that of one.
"""

import resource
import sys
import time

import numpy as np

N, K = 54_000, 128
rng = np.random.default_rng(0)
risk = rng.normal(size=N)
event_time = rng.exponential(np.exp(-risk))
censored = rng.exponential(2.0, size=N)
observed, event = np.minimum(event_time, censored), event_time <= censored
grid = np.linspace(0.01, 3.0, K)
survival = np.exp(-np.outer(np.exp(risk), grid))
y = np.array(list(zip(event, observed, strict=True)), dtype=[("event", "?"), ("time", "f8")])
at = np.linspace(0.05, 2.5, 100)
survival_at = np.exp(-np.outer(np.exp(risk), at))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scikit_survival(metrics):
    c = metrics.concordance_index_censored(event, observed, risk)[0]
    auc = metrics.cumulative_dynamic_auc(y, y, 1 - survival_at, at)[1]
    return {"C": c, "AUC": auc, "IBS": metrics.integrated_brier_score(y, y, survival_at, at)}


def eval_surv(evaluation, pandas):
    found = evaluation.EvalSurv(pandas.DataFrame(survival.T, index=grid), observed, event.astype(int), censor_surv="km")
    return {"C^td": found.concordance_td("antolini"), "Brier": float(found.brier_score(at).mean())}


def run(what, replicates):
    if what == "fairtte":
        import fairtte

        found = fairtte.evaluate(
            survival, grid, observed, event, replicates=replicates, permutations=0, eval_times=at, groups={"half": risk > 0}
        )
        return {m["name"]: m["overall"]["value"] for m in found.to_dict()["metrics"]}
    if what == "fairtte-sksurv":
        from fairtte import sksurv

        return scikit_survival(sksurv)
    if what == "fairtte-pycox":
        import pandas

        import fairtte.pycox

        return eval_surv(fairtte.pycox, pandas)
    if what == "scikit-survival":
        from sksurv import metrics

        return scikit_survival(metrics)
    import pandas
    import pycox.evaluation

    return eval_surv(pycox.evaluation, pandas)


what = sys.argv[1]
before, begin = peak(), time.process_time()
found = run(what, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
seconds = time.process_time() - begin
print(f"{what}: {seconds:.2f} CPU s, peak {peak() - before:.0f} MB above {before:.0f} MB before; {found}")
