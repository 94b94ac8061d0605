"""Estimators beside those of scikit-survival: CPU seconds of the fit and of the risks of the test sample, peak memory, and Harrell's C
on it, over 20 seeds of a made-up sample: `RAYON_NUM_THREADS=1 python benches/estimators.py [N] [SEEDS]`. Each estimator runs in a process
of its own, one thread."""

import json
import resource
import subprocess
import sys
import time

import numpy as np

PAIRS = [("CoxPH", "CoxPHSurvivalAnalysis"), ("RandomSurvivalForest",) * 2, ("GradientBoostedCox", "GradientBoostingSurvivalAnalysis")]
SETTINGS = {
    "CoxPH": {"ties": "efron"},
    "CoxPHSurvivalAnalysis": {"ties": "efron"},
    "RandomSurvivalForest": {"n_estimators": 100, "max_features": "sqrt", "min_samples_split": 6, "min_samples_leaf": 3},
    "GradientBoostedCox": {"n_estimators": 100, "learning_rate": 0.1, "max_depth": 3},
    "GradientBoostingSurvivalAnalysis": {"n_estimators": 100, "learning_rate": 0.1, "max_depth": 3},
}


def sample(n, seed):
    """Ten covariates: one linear, one of an interaction and one that is curved matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    log_hazard = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + 0.5 * X[:, 3] ** 2
    event_time, censored = rng.exponential(np.exp(-log_hazard)), rng.exponential(2.0, size=n)
    y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = event_time <= censored, np.ceil(100 * np.minimum(event_time, censored)) / 100
    return X, y


def estimator(library, name, seed):
    settings = dict(SETTINGS[name])
    if library == "fairtte":
        from fairtte import estimators

        found = getattr(estimators, name)
        if name == "RandomSurvivalForest":
            settings |= {"random_state": seed, "n_jobs": 1, "min_events_leaf": 0}
        return found(**settings)
    if name == "CoxPHSurvivalAnalysis":
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        return CoxPHSurvivalAnalysis(**settings)
    from sksurv import ensemble

    return getattr(ensemble, name)(random_state=seed, **settings)


def run(library, name, n, seeds):
    from fairtte.sksurv import concordance_index_censored

    seconds, c = [], []
    estimator(library, name, 0).fit(*sample(50, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(seeds):
        (X, y), (X_test, y_test) = sample(n, seed), sample(1000, 10_000 + seed)
        model, begin = estimator(library, name, seed), time.process_time()
        risk = model.fit(X, y).predict(X_test)
        seconds.append(time.process_time() - begin)
        c.append(concordance_index_censored(y_test["event"], y_test["time"], risk)[0])
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps({"seconds": sum(seconds) / seeds, "MB": megabytes, "C": c}))


if len(sys.argv) > 3:
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    n, seeds = (sys.argv[1:] + ["1000", "20"][len(sys.argv) - 1 :])[:2]
    for own, other in PAIRS:
        found = []
        for library, name in (("fairtte", own), ("scikit-survival", other)):
            output = subprocess.run([sys.executable, __file__, library, name, n, seeds], capture_output=True, text=True, check=False)
            if output.returncode:
                sys.exit(output.stderr)
            found.append(json.loads(output.stdout.splitlines()[-1]))
            c = np.array(found[-1]["C"])
            print(f"{library} {name}: {found[-1]['seconds']:.3f} CPU s, {found[-1]['MB']:.0f} MB, C {c.mean():.4f} (sd {c.std(ddof=1):.4f})", flush=True)
        difference = np.subtract(found[0]["C"], found[1]["C"])
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        ratio = found[1]["seconds"] / found[0]["seconds"]
        print(f"  {ratio:.1f} times as fast; difference of C {difference.mean():+.4f} (standard error {error:.4f})", flush=True)
