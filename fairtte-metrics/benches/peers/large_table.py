"""A made-up table of curves for measurements: python3 large_table.py N_SAMPLES N_TIMES FILE

A name that ends in .parquet is written so (needs numpy and pyarrow; curves in 32 bits), any other as CSV (standard library).
"""

import math
import random
import sys


def csv_table(n, times, path):
    random.seed(1)
    with open(path, "w") as file:
        file.write("sample,subject,time,event,sex,race," + ",".join(map(str, times)) + "\n")
        for row in range(n):
            x = random.gauss(0, 1)
            event, censored = random.expovariate(0.06 * math.exp(x)), random.uniform(0.5, 10)
            rate = 0.06 * math.exp(x + random.gauss(0, 0.8))
            cells = [f"s{row}", f"p{row // 2}", f"{min(event, censored):.5f}", int(event <= censored), random.choice("FM"), random.choice("ABCD")]
            file.write(",".join(map(str, cells)) + "," + ",".join(f"{math.exp(-rate * t):.5f}" for t in times) + "\n")


def parquet_table(n, times, path):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    event, censored = rng.exponential(1 / (0.06 * np.exp(x))), rng.uniform(0.5, 10, n)
    rate = 0.06 * np.exp(x + rng.normal(0, 0.8, n))
    columns = {
        "sample": [f"s{row}" for row in range(n)],
        "subject": [f"p{row // 2}" for row in range(n)],
        "time": np.minimum(event, censored).round(5),
        "event": (event <= censored).astype("int8"),
        "sex": rng.choice(["F", "M"], n),
        "race": rng.choice(list("ABCD"), n),
    }
    columns |= {str(t): np.exp(-rate * t).astype("float32") for t in times}
    pq.write_table(pa.table(columns), path)


def main():
    n, n_times, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    times = [round(10 * (k + 1) / n_times, 4) for k in range(n_times)]
    (parquet_table if path.endswith(".parquet") else csv_table)(n, times, path)


main()
