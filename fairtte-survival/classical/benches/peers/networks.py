"""Networks in the benchmark of known hazards: trains the heads of the program on the people that the example `survival_benchmark` wrote.

    cargo build --release -p fairtte-cli; cargo build --release -p fairtte-classical --example survival_benchmark
    EXAMPLE 500 2 --write FOLDER
    python networks.py PROGRAM FOLDER [HEAD ..]
    EXAMPLE 500 2 --read FOLDER

PROGRAM is the built `fairtte`; every HEAD (default nnet-survival, cox, cox-time, deephit) is trained with its defaults and the backbone
mlp on 80 % of the people of `fit.csv` of every scenario and setting of subgroups (folders that are removed are left out); 19 % choose the epoch. Curves are read on straight lines at the times of `grid.txt`. The
Python has NumPy, pandas and pyarrow. A curve that is there is not made again.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

HEADS = ["nnet-survival", "cox", "cox-time", "deephit"]
RUN_FILE = """
[data.tabular]
table = "{table}"
sample = "sample_id"
subject = "subject_id"
time-unit = "units"
features = "all"
[split]
train = 0.8
validation = 0.19
test = 0.01
[head.{head}]
[model]
backbone = "mlp"
"""


def curves(path, people, grid):
    # Every column but the name of the person is a time.
    table = pd.read_parquet(path).set_index("sample_id").loc[people]
    times, values = table.columns.to_numpy(dtype=float), table.to_numpy(dtype=float)
    if times[0] > 0:
        times, values = np.r_[0.0, times], np.c_[np.ones(len(values)), values]
    return np.array([np.interp(grid, times, row) for row in values])


def main(program, folder, *heads):
    heads = list(heads) or HEADS
    for scenario in sorted(path for path in Path(folder).resolve().iterdir() if path.is_dir()):
        people = pd.read_csv(scenario / "others.csv")["sample_id"]
        grid = np.loadtxt(scenario / "grid.txt")
        for head in heads:
            if (scenario / f"network {head}.csv").exists():
                continue
            with tempfile.TemporaryDirectory() as work:
                run, config = Path(work) / "run", Path(work) / "run.toml"
                config.write_text(RUN_FILE.format(table=scenario / "fit.csv", head=head))
                subprocess.run([program, "train", "--config", config, "--output", run], check=True, capture_output=True)
                made = Path(work) / "predicted"
                subprocess.run([program, "predict", run, "--table", scenario / "others.csv", "--output", made], check=True, capture_output=True)
                np.savetxt(scenario / f"network {head}.csv", curves(made / "predictions.parquet", people, grid), delimiter=",")
        print(scenario.name, flush=True)
    (Path(folder) / "models.txt").write_text("\n".join(f"network {head}" for head in heads) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
