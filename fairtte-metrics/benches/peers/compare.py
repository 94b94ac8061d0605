"""Times this crate beside pycox and scikit-survival on the same input, and prints the ratios.

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install scikit-survival==0.28.0 numba pandas
    /tmp/peers/bin/pip install --no-deps pycox==0.3.0
    /tmp/peers/bin/python fairtte-metrics/benches/peers/compare.py

54,000 samples of 20,000 subjects, 128 columns, 30 % events, two groups; continuous times, then times on the grid.
One-off metrics: CPU seconds of the other package against seconds of this crate on one thread. Everything with 1,000
replicates: wall seconds on two threads against the wall seconds of one pycox call. The machine should be otherwise idle.
"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
import pandas as pd
from sksurv.metrics import cumulative_dynamic_auc, integrated_brier_score
from sksurv.util import Surv

N, N_SUBJECTS, N_COLUMNS, HORIZON = 54_000, 20_000, 128, 10.0


def eval_surv():
    """pycox.evaluation without pycox's own imports, which need PyTorch."""
    spec = importlib.machinery.PathFinder.find_spec("pycox", sys.path)
    package = types.ModuleType("pycox")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["pycox"] = package
    return importlib.import_module("pycox.evaluation").EvalSurv


def simulate(on_grid, folder):
    rng = np.random.default_rng(1)
    subject = np.sort(np.concatenate([np.arange(N_SUBJECTS), rng.integers(0, N_SUBJECTS, N - N_SUBJECTS)]))
    rate = 0.1 * np.exp(0.8 * (rng.normal(size=N_SUBJECTS)[subject] + 0.3 * rng.normal(size=N)))
    event_time, censored_at = rng.exponential(1 / rate), np.minimum(rng.exponential(4.0, N), HORIZON)
    grid = np.linspace(0, HORIZON, N_COLUMNS)
    observed = np.minimum(event_time, censored_at)
    if on_grid:
        observed = grid[np.clip(np.searchsorted(grid, observed), 1, N_COLUMNS - 1)]
    scale, shape = np.exp(0.15 * rng.normal(size=N)), np.exp(0.15 * rng.normal(size=N))
    survival = np.exp(-((rate * scale)[:, None] * grid[None, :]) ** shape[:, None])
    arrays = {
        "time": observed,
        # Everybody leaves at the horizon: an event there, where the times were rounded to the grid, has no weight.
        "event": (event_time <= censored_at) & (observed < HORIZON),
        "subject": subject,
        "group": rng.integers(0, 2, N_SUBJECTS)[subject],
        "grid": grid,
        "surv": survival,
        "tau": grid[(grid >= observed.min()) & (grid < observed.max())],
    }
    for name, values in arrays.items():
        np.save(Path(folder) / f"{name}.npy", np.ascontiguousarray(values, dtype=float))
    return arrays


def clock(call):
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def peers(arrays):
    grid, survival, tau = arrays["grid"], arrays["surv"], arrays["tau"]
    observed, event = arrays["time"], arrays["event"].astype(bool)
    column = np.searchsorted(grid, tau, side="right") - 1
    at_tau, outcome = survival[:, column], Surv.from_arrays(event, observed)
    evaluation = eval_surv()
    small = evaluation(pd.DataFrame(survival[:50].T, index=grid), observed[:50], event[:50].astype(int))
    small.concordance_td("antolini")  # compiled here, not in the timed call
    whole = evaluation(pd.DataFrame(survival.T, index=grid), observed, event.astype(int))
    return {
        "c_td": clock(lambda: whole.concordance_td("antolini")),
        "auc_td": clock(lambda: cumulative_dynamic_auc(outcome, outcome, 1 - at_tau, tau)),
        "ibs": clock(lambda: integrated_brier_score(outcome, outcome, at_tau, tau)),
    }


def ours(folder, threads):
    command = ["cargo", "bench", "--quiet", "-p", "fairtte-metrics", "--bench", "peers", "--", str(folder)]
    here = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    return json.loads(subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True).stdout)


def main():
    for on_grid in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            arrays = simulate(on_grid, folder)
            other, one, two = peers(arrays), ours(folder, 1), ours(folder, 2)
        matrix = arrays["surv"].nbytes / 2**20
        print(f"\n{'times on the grid' if on_grid else 'continuous times'}; {arrays['event'].mean():.0%} events, "
              f"{len(arrays['tau'])} evaluation times, input matrix {matrix:.0f} MB")
        print(f"{'':8}{'other':>24}{'CPU s':>9}{'ours, s':>10}{'ratio':>8}{'memory / matrix':>17}")
        for name, package in (("c_td", "pycox antolini"), ("auc_td", "scikit-survival"), ("ibs", "scikit-survival")):
            value, _, cpu = other[name]
            mine = one[f"{name} step"]
            if name != "auc_td":  # scikit-survival weighs its mean differently
                assert abs(value - mine["value"]) < 1e-12, (name, value, mine)
            print(f"{name:8}{package:>24}{cpu:9.3f}{mine['seconds']:10.4f}{cpu / mine['seconds']:8.1f}"
                  f"{mine['megabytes'] / matrix:17.2f}")
        for name in ("c_td", "auc_td", "ibs"):
            seconds = ", ".join(f"{reading} {one[f'{name} {reading}']['seconds']:.3f} s" for reading in ("refined x10", "linear"))
            print(f"{name:8}{seconds}")
        wall = other["c_td"][1]
        for reading in ("step", "refined x10"):
            mine = two[f"everything {reading}"]
            print(f"everything, 1,000 replicates, 2 threads, {reading}: {mine['seconds']:.2f} s; one pycox C^td: {wall:.2f} s; "
                  f"ratio {wall / mine['seconds']:.2f}; memory / matrix {mine['megabytes'] / matrix:.2f}")


if __name__ == "__main__":
    main()
