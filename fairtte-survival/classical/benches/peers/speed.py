"""CPU seconds and memory of a fit on one thread beside scikit-survival 0.28 and lifelines 0.30: Cox regressions, forests, boosting.

    cargo build --release -p fairtte-classical --example cox --example forest --example boosting
    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1
    python speed.py cox COX 1000 10000 50000
    python speed.py forest FOREST 1000x100x3 1000x100x15 10000x5x3 10000x5x15 50000x1x15
    python speed.py boosting BOOSTING 1000x100 10000x10 50000x2

COX, FOREST and BOOSTING are the built examples. `cox` fits the same samples, best of three fits in turn. `forest` takes SAMPLES x TREES x
smallest leaf, `boosting` SAMPLES x TREES; their samples have the distribution of the examples. A forest of scikit-survival keeps a
curve per leaf: 100 trees of 10,000 samples would take tens of GB, hence few trees. Of forests and boosting the seconds here are those of
the whole process, which also draws the samples and predicts them; those of scikit-survival are of the fit. Memory is that at the peak of
a process of its own, here from its start, there beyond it.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def run(*command):
    """CPU seconds, output and peak memory in MB of a command."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with {status}")
    return usage.ru_utime + usage.ru_stime, output, usage.ru_maxrss / 1024


def best(fit, repeats=3):
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        fit()
        seconds.append(time.process_time() - start)
    return min(seconds)


def in_child(work):
    """CPU seconds of `work`, and by how many MB the peak of a process of its own rises."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        work()
        seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.write(writer, f"{seconds} {(peak - before) / 1024}".encode())
        os._exit(0)
    os.close(writer)
    words = os.read(reader, 100).decode().split()
    os.waitpid(child, 0)
    return float(words[0]), float(words[1])


def samples(n):
    """Ten columns of which three matter, exponential times, many censored, as in the examples."""
    random = np.random.default_rng(1)
    x = random.random((n, 10))
    event = random.exponential(size=n) / np.exp(2 * x[:, 0] - x[:, 1] + x[:, 2] ** 2)
    censored = random.exponential(size=n)
    return x, np.array(list(zip(event <= censored, np.minimum(event, censored))), dtype=[("event", bool), ("time", float)])


def cox(program, *sizes):
    from lifelines import CoxPHFitter
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.util import Surv

    print("| samples | here | lifelines | scikit-survival |\n|---|---|---|---|")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "samples.csv")
            run(program, "--write", file, n)
            table = pd.read_csv(file)
        x, y = table.iloc[:, :-2].to_numpy(), Surv.from_arrays(table["event"].astype(bool), table["time"])
        lines = [run(program, n)[1].splitlines()[0] for _ in range(3)]
        here = min(float(line.split("events: ")[1].split(" s")[0]) for line in lines)
        others = [
            best(lambda: CoxPHFitter().fit(table, "time", "event")),
            best(lambda: CoxPHSurvivalAnalysis(ties="efron").fit(x, y)),
        ]
        cells = [f"{seconds:.3f} ({seconds / here:.0f} times)" for seconds in others]
        print(f"| {int(n):,} | {here:.5f} | {' | '.join(cells)} |", flush=True)


def forest(program, *sizes):
    from sksurv.ensemble import RandomSurvivalForest

    print("| samples | trees | smallest leaf | here | scikit-survival | time |\n|---|---|---|---|---|---|")
    for size in sizes:
        n, trees, leaf = (int(word) for word in size.split("x"))
        x, y = samples(n)
        settings = f'{{"preset": "scikit-survival", "trees": {trees}, "min-samples-leaf": {leaf}, "min-samples-split": {2 * leaf}}}'
        here, lines, peak = run(program, "--grow", settings, str(n))
        kept = float(lines.splitlines()[1].split(" MB")[0])
        other = RandomSurvivalForest(trees, min_samples_leaf=leaf, min_samples_split=2 * leaf, random_state=0, n_jobs=1)
        seconds, memory = in_child(lambda: other.fit(x, y))
        print(
            f"| {n:,} | {trees} | {leaf} | {here:.3f} s, {peak:.1f} MB, trees {kept:.1f} MB | {seconds:.2f} s, {memory:,.0f} MB | 1 : {seconds / here:.0f} |",
            flush=True,
        )


def boosting(program, *sizes):
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    print("| samples | trees | here | scikit-survival | time |\n|---|---|---|---|---|")
    for size in sizes:
        n, trees = size.split("x")
        x, y = samples(int(n))
        here = min(run(program, trees, n)[0] for _ in range(3))
        other = GradientBoostingSurvivalAnalysis(n_estimators=int(trees), random_state=0)
        seconds, _ = in_child(lambda: other.fit(x, y))
        print(f"| {int(n):,} | {trees} | {here:.3f} | {seconds:.2f} | 1 : {seconds / here:.0f} |", flush=True)


if __name__ == "__main__":
    {"cox": cox, "forest": forest, "boosting": boosting}[sys.argv[1]](*sys.argv[2:])
