"""The planted tables `visible`, `minority` and `subgroup` (Python standard library only).

usage: python planted.py FOLDER

Eight normal columns; the hazard is the exponential of a linear predictor, censoring is uniform up to 3. As the simulated
tables of `fairtte-fairness/tests/fairness/common/mod.rs`, with other random numbers.
"""

import math
import random
import sys
from pathlib import Path


def write(path, n, seed, member, shift, predictor):
    """`member` of the row number says who is in group b; `shift` moves column 0 in opposite directions in the two groups."""
    stream = random.Random(seed)
    with open(path, "w") as file:
        file.write("group,time,event," + ",".join(f"x{k}" for k in range(8)) + "\n")
        for i in range(n):
            is_b = member(i)
            x = [stream.gauss(0, 1) for _ in range(8)]
            x[0] = (1 if is_b else -1) * shift + 0.5 * x[0]
            time = -math.log(max(stream.random(), 1e-9)) / math.exp(predictor(is_b, x))
            censoring = 3 * stream.random()
            cells = ",".join(f"{value:.5f}" for value in x)
            file.write(f"{'b' if is_b else 'a'},{max(min(time, censoring), 1e-3):.6f},{int(time <= censoring)},{cells}\n")


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
every = lambda share: lambda i: math.floor((i + 1) * share) > math.floor(i * share)
write(folder / "visible.csv", 2400, 1, every(0.5), 1, lambda is_b, x: x[1] + 0.5 * x[2])
write(folder / "minority.csv", 4000, 2, every(0.15), 0, lambda is_b, x: (-x[1] if is_b else x[1]) + 0.5 * x[2])
write(folder / "subgroup.csv", 4000, 5, lambda i: i % 10 == 0, 1, lambda is_b, x: (1.5 * x[3] if is_b else x[1]) + 0.5 * x[2])
