"""Regressions of this crate beside those of other packages on the same samples: CPU seconds of a fit on one thread.

    cargo build --release -p fairtte-classical --example cox --example parametric
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python linear.py net COX 1000x10 10000x10 1000x100
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python linear.py aft PARAMETRIC 1000 10000 50000

`net`: a path of up to 100 values of lambda (l1-ratio 0.9) beside `CoxnetSurvivalAnalysis` of scikit-survival 0.28, without cross-validation
and tied times, as many as Coxnet fits before it ends; with the largest difference between coefficients of standardised columns, of scikit-survival's default tolerance
and of a fine one. `aft`: beside `WeibullAFTFitter` and its relatives of lifelines 0.30. COX and PARAMETRIC are the built examples. Times are
the best of several fits, here and there in turn.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def best(fit, repeats):
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        found = fit()
        seconds.append(time.process_time() - start)
    return min(seconds), found


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def net(program, *sizes):
    from sksurv.linear_model import CoxnetSurvivalAnalysis
    from sksurv.util import Surv

    print("| samples x columns | values | here | default tolerance | ratio | difference | tolerance 1e-13 | ratio | difference |")
    for size in sizes:
        n, p = size.split("x")
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "samples.csv")
            run(program, "--write", file, n, p)
            table = pd.read_csv(file)
        x = table.iloc[:, :-2].to_numpy()
        x = (x - x.mean(0)) / x.std(0)
        y = Surv.from_arrays(table["event"].astype(bool), table["time"])
        lambdas = json.loads(run(program, "--path", n, p, "100"))["lambdas"]
        cells = []
        for tolerance in [1e-7, 1e-13]:
            model = CoxnetSurvivalAnalysis(l1_ratio=0.9, alphas=lambdas, tol=tolerance, max_iter=1_000_000)
            seconds, fitted = best(lambda: model.fit(x, y), 5)
            # It ends where the deviance hardly changes; the same values are fitted here.
            here = json.loads(run(program, "--path", n, p, str(fitted.coef_.shape[1])))
            cells = cells or [str(fitted.coef_.shape[1]), f"{here['seconds'] * 1000:.2f} ms"]
            difference = np.abs(fitted.coef_.T - np.array(here["path"])).max()
            cells += [f"{seconds * 1000:.2f} ms", f"1 : {seconds / here['seconds']:.1f}", f"{difference:.0e}"]
        print(f"| {int(n):,} x {p} | {' | '.join(cells)} |", flush=True)


def aft(program, *sizes):
    import lifelines

    fitters = {
        "Weibull": lifelines.WeibullAFTFitter,
        "LogNormal": lifelines.LogNormalAFTFitter,
        "LogLogistic": lifelines.LogLogisticAFTFitter,
    }
    print("| samples | distribution | here | lifelines | ratio | log likelihoods |")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            outputs = [run(program, n, "--write", folder) for _ in range(3)]
            table = pd.read_csv(Path(folder) / f"parametric-{n}.csv")
        for name, fitter in fitters.items():
            lines = [line.split(name + ":")[1] for text in outputs for line in text.splitlines() if name + ":" in line]
            here = min(float(line.split(" s,")[0]) for line in lines)
            value = float(lines[0].split("log-likelihood ")[1].split(",")[0])
            seconds, fitted = best(lambda: fitter().fit(table, "time", "event"), 2)
            print(
                f"| {int(n):,} | {name} | {here:.4f} s | {seconds:.3f} s | 1 : {seconds / here:.0f} "
                f"| {value:.3f}, {fitted.log_likelihood_:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    {"net": net, "aft": aft}[sys.argv[1]](*sys.argv[2:])
