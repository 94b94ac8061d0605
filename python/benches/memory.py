"""Peak memory of `evaluate` above that before it, in copies of the matrix of double precision: `python benches/memory.py
C|F|float32 [REPLICATES]`, 54,000 samples by 128 times, two groups; one line, each in a process of its own (of Linux)."""

import sys
from pathlib import Path

import numpy as np

import fairtte


def peak():
    # Not `ru_maxrss`, which begins with the peak of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main(kind, replicates):
    n, k = 54_000, 128
    rng = np.random.default_rng(0)
    risk, grid = rng.normal(size=n), np.linspace(0.01, 3.0, k)
    time, event = rng.exponential(np.exp(-risk)), rng.random(n) < 0.7
    # What the package and the sample itself take is not counted.
    small = np.exp(-np.outer(np.exp(risk[:500]), grid))
    fairtte.evaluate(small, grid, time[:500], event[:500], replicates=min(replicates, 64), permutations=0)
    survival = np.empty((n, k), np.float32 if kind == "float32" else np.float64, order="F" if kind == "F" else "C")
    for row in range(n):
        survival[row] = np.exp(-np.exp(risk[row]) * grid)
    before = peak()
    fairtte.evaluate(survival, grid, time, event, groups={"half": risk > 0}, replicates=replicates, permutations=0)
    of_one = n * k * 8
    print(f"{kind}, {replicates} replicates: {(peak() - before) / 1e6:.0f} MB = {(peak() - before) / of_one:.2f} copies of {of_one / 1e6:.0f} MB")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
