"""What Python adds to the call of Rust behind `evaluate`: `RAYON_NUM_THREADS=1 python benches/overhead.py [REPLICATES]`, 54,000 samples by 128
times, two attributes; CPU seconds, the least of five calls. The call of Rust is the compiled function less a copy and the checks of the
curves, which are timed by themselves: an upper bound, since `evaluate` reads these curves without a copy."""

import sys
import time

import numpy as np

import fairtte
from fairtte import _fairtte

N, K, CALLS = 54_000, 128, 5


def main(replicates):
    rng = np.random.default_rng(0)
    risk, times = rng.normal(size=N), np.linspace(0.01, 3.0, K)
    event_time, censored = rng.exponential(np.exp(-risk)), rng.exponential(2.0, size=N)
    observed, event = np.minimum(event_time, censored), event_time <= censored
    survival = np.exp(-np.outer(np.exp(risk), times))
    groups = {"sex": rng.choice(["F", "M"], N), "age": rng.integers(40, 80, N)}
    compiled, inside = _fairtte.evaluate, []

    def timed(*arguments):
        begin = time.process_time()
        found = compiled(*arguments)
        inside.append(time.process_time() - begin)
        return found

    whole, copies = [], []
    _fairtte.evaluate = timed
    for _ in range(CALLS):
        begin = time.process_time()
        fairtte.evaluate(survival, times, observed, event, groups=groups, cuts={"age": [60]}, replicates=replicates)
        whole.append(time.process_time() - begin)
        begin = time.process_time()
        _fairtte.SurvivalEvaluator(survival, times, observed, event)
        copies.append(time.process_time() - begin)
    rust = min(inside) - min(copies)
    python = min(total - part for total, part in zip(whole, inside, strict=True))
    print(f"{replicates} replicates: {min(whole):.3f} s, of it {min(inside):.3f} s compiled, with {min(copies):.3f} s of copies and checks")
    print(f"  above the call of Rust: {100 * (python + min(copies)) / rust:.1f} %, of it in Python {100 * python / rust:.1f} %")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
