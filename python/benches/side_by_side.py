"""CPU seconds and peak memory of this package beside scikit-survival, pycox, SurvivalEVAL and torchsurv for the same numbers.

`RAYON_NUM_THREADS=1 python benches/side_by_side.py` runs every line in a process of its own, one after the other, and prints CPU
seconds, peak memory above the inputs, and values; a package that is not installed is left out. `.. side_by_side.py WHAT` runs one.
N samples and K times are set with FAIRTTE_N and FAIRTTE_K (54,000 and 128); pycox, whose memory grows with N x N, gets 10,000 at most.
"""

import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

N, K = int(os.environ.get("FAIRTTE_N", "54000")), int(os.environ.get("FAIRTTE_K", "128"))
# What computes the same numbers, the package of this project first, and the most samples.
PAIRS = [
    ("fairtte.sksurv", "scikit-survival", N),
    ("fairtte.pycox", "pycox", 10_000),
    ("fairtte.survival_eval", "SurvivalEVAL", N),
    ("fairtte.sksurv (AUC)", "torchsurv (AUC)", N),
    ("evaluate 0", "evaluate 1000", N),
]


def inputs():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=N)
    event_time, censored = rng.exponential(np.exp(-risk)), rng.exponential(2.0, size=N)
    observed, event = np.minimum(event_time, censored), event_time <= censored
    grid = np.linspace(0.0, 3.0, K)
    # In place: a temporary matrix would raise the peak that memory is counted from.
    survival = np.outer(-np.exp(risk), grid)
    np.exp(survival, out=survival)
    return risk, observed, event, grid, survival


def structured(event, observed):
    return np.array(list(zip(event, observed, strict=True)), dtype=[("event", "?"), ("time", "f8")])


def of_scikit_survival(metrics):
    risk, observed, event, grid, survival = inputs()
    y, at, columns = structured(event, observed), grid[3:100], slice(3, 100)
    estimate = survival[:, columns]
    yield
    c = metrics.concordance_index_censored(event, observed, risk)[0]
    auc = metrics.cumulative_dynamic_auc(y, y, 1 - estimate, at)[1]
    yield {"C": c, "AUC": auc, "IBS": metrics.integrated_brier_score(y, y, estimate, at)}


def of_pycox(evaluation):
    import pandas

    _, observed, event, grid, survival = inputs()
    frame, at = pandas.DataFrame(survival.T, index=grid), np.linspace(0.05, 2.5, 101)
    yield
    found = evaluation.EvalSurv(frame, observed, event.astype(int), censor_surv="km")
    yield {"C^td": found.concordance_td("antolini"), "Brier": float(found.brier_score(at).mean())}


def of_survival_eval(evaluator):
    _, observed, event, grid, survival = inputs()
    at = np.linspace(0.05, 2.5, 100)
    yield
    found = evaluator(survival, grid, observed, event.astype(int), observed, event.astype(int))
    yield {"IBS": found.integrated_brier_score(target_times=at), "D-calibration p": found.d_calibration()[0]}


def of_auc_alone(metrics):
    risk, observed, event, grid, _ = inputs()
    y, at = structured(event, observed), grid[3:100:8]
    yield
    yield {"AUC(t)": [float(value) for value in metrics.cumulative_dynamic_auc(y, y, risk, at)[0]]}


def of_torchsurv():
    import torch
    from torchsurv.metrics.auc import Auc
    from torchsurv.stats.ipcw import get_ipcw

    torch.set_num_threads(1)
    risk, observed, event, grid, _ = inputs()
    risk, observed, event = torch.tensor(risk), torch.tensor(observed), torch.tensor(event)
    at = torch.tensor(grid[3:100:8])
    yield
    weights = get_ipcw(event, observed, observed)
    at_times = get_ipcw(event, observed, at)
    found = Auc()(risk, event, observed, new_time=at, weight=weights, weight_new_time=at_times)
    yield {"AUC(t)": [float(value) for value in found]}


def of_evaluate(replicates):
    import fairtte

    risk, observed, event, grid, survival = inputs()
    yield
    found = fairtte.evaluate(survival, grid, observed, event, replicates=replicates, permutations=0, groups={"half": risk > 0})
    yield {m["name"]: m["overall"]["value"] for m in found.to_dict()["metrics"]}


def steps(what):
    if what.startswith("evaluate"):
        return of_evaluate(int(what.split()[1]))
    if what == "fairtte.sksurv":
        from fairtte import sksurv

        return of_scikit_survival(sksurv)
    if what == "scikit-survival":
        from sksurv import metrics

        return of_scikit_survival(metrics)
    if what == "fairtte.pycox":
        import fairtte.pycox

        return of_pycox(fairtte.pycox)
    if what == "pycox":
        import pycox.evaluation
        import scipy.integrate

        # pycox 0.3.0 asks for a name that SciPy 1.14 removed.
        scipy.integrate.simps = getattr(scipy.integrate, "simps", scipy.integrate.simpson)
        return of_pycox(pycox.evaluation)
    if what == "fairtte.survival_eval":
        from fairtte.survival_eval import SurvivalEvaluator

        return of_survival_eval(SurvivalEvaluator)
    if what == "SurvivalEVAL":
        from SurvivalEVAL import SurvivalEvaluator

        return of_survival_eval(SurvivalEvaluator)
    if what == "fairtte.sksurv (AUC)":
        from fairtte import sksurv

        return of_auc_alone(sksurv)
    return of_torchsurv()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if len(sys.argv) > 1:
    running = steps(sys.argv[1])
    next(running)
    before, begin = peak(), time.process_time()
    values = next(running)
    used = {"seconds": time.process_time() - begin, "MB": peak() - before, "values": values}
    print(json.dumps(used))
else:
    for *pair, most in PAIRS:
        found, n = {}, min(N, most)
        for what in pair:
            command, setting = [sys.executable, __file__, what], {**os.environ, "FAIRTTE_N": str(n)}
            run = subprocess.run(command, env=setting, capture_output=True, text=True, check=False)
            if run.returncode:
                said = run.stderr.strip().splitlines() or [f"ended with code {run.returncode}"]
                print(f"{what}: {said[-1][:200]}")
                continue
            found[what] = json.loads(run.stdout.splitlines()[-1])
            used = found[what]
            print(f"{what}, n = {n}: {used['seconds']:.2f} CPU s, {used['MB']:.0f} MB above the inputs; {used['values']}", flush=True)
        if len(found) == 2:
            own, other = found.values()
            differences = [np.max(np.abs(np.subtract(own["values"][key], other["values"][key]))) for key in own["values"]]
            # What needs less than was in use before is counted as 1 MB.
            time_ratio, memory_ratio = (other[key] / max(own[key], least) for key, least in (("seconds", 1e-3), ("MB", 1.0)))
            print(f"  ratio of time {time_ratio:.1f}, of memory {memory_ratio:.1f}; largest difference {max(differences):.1e}", flush=True)
