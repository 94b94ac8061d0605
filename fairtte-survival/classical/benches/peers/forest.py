"""Forests of this crate beside those of scikit-survival, R ranger and R randomForestSRC on tables: Harrell's C of held-out rows.

    cargo build --release -p fairtte-classical --example forest
    python forest.py PROGRAM PACKAGE TABLE.csv[.gz] ..

PROGRAM is the built example; PACKAGE is scikit-survival, ranger or rfsrc, whose settings the preset of that name has. The Python has
scikit-survival 0.28; R (`Rscript`) has the package. A table has the columns time and event; other columns are numbers, or have levels,
which become a column each but the most frequent. 30 % of the rows, the same for both, are held out; both grow 100 trees from each of
20 seeds (FAIRTTE_SEEDS). Harrell's C is scikit-survival's. Prints a row of a Markdown table per table: mean C (standard deviation over seeds) of both,
the difference of the means in standard errors.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sksurv.ensemble import RandomSurvivalForest
from sksurv.metrics import concordance_index_censored
from sksurv.util import Surv

TREES, SEEDS = 100, int(os.environ.get("FAIRTTE_SEEDS", "20"))

# Risks: expected mortality, the sum of the cumulative hazard over the event times.
R_FOREST = {
    "ranger": """
        library(ranger)
        # One column of the curves per time that was seen: only those with an event count.
        times <- sort(unique(train$time))
        has_event <- times %in% train$time[train$event == 1]
        risk <- function(seed) {
            forest <- ranger(Surv(time, event) ~ ., train, num.trees = TREES, seed = seed + 1, num.threads = 1)
            found <- predict(forest, test, num.threads = 1)
            stopifnot(length(found$unique.death.times) == length(times))
            rowSums(found$chf[, has_event, drop = FALSE])
        }
    """,
    "rfsrc": """
        library(randomForestSRC)
        options(rf.cores = 1, mc.cores = 1)
        # ntime = 0: curves at all event times.
        risk <- function(seed) {
            forest <- rfsrc(Surv(time, event) ~ ., train, ntree = TREES, seed = -seed - 1, ntime = 0)
            predict(forest, test)$predicted
        }
    """,
}


def numbers(table):
    columns = {}
    for name in table.columns.drop(["time", "event"]):
        column = table[name]
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column.astype(float)
        else:
            most = column.value_counts().idxmax()
            for level in sorted(set(column) - {most}):
                columns[f"{name}={level}"] = (column == level).astype(float)
    x = pd.DataFrame(columns)
    x.columns = [f"x{k}" for k in range(x.shape[1])]
    return x


def of_r(package, file):
    script = f"""
        TREES <- {TREES}
        table <- read.csv("{file}")
        train <- table[table$mark == 0, names(table) != "mark"]
        test <- table[table$mark == 1, names(table) != "mark"]
        suppressMessages(library(survival))
        {R_FOREST[package]}
        for (seed in 0:{SEEDS - 1}) cat(paste(format(risk(seed), digits = 17, trim = TRUE), collapse = ","), "\\n", sep = "")
    """
    return lines(["Rscript", "-e", script])


def of_scikit_survival(table, train, outcomes):
    # Without the curves of the leaves: the same trees and risks in less memory.
    settings = {"n_estimators": TREES, "min_samples_split": 6, "min_samples_leaf": 3, "max_features": "sqrt", "low_memory": True}
    risks = []
    for seed in range(SEEDS):
        forest = RandomSurvivalForest(**settings, random_state=seed, n_jobs=1).fit(table[train], outcomes[train])
        risks.append(forest.predict(table[~train]))
    return risks


def lines(command):
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [np.array(line.split(","), dtype=float) for line in text.splitlines()]


def main(program, package, *tables):
    for path in tables:
        table = pd.read_csv(path)
        x = numbers(table)
        n = len(x)
        held_out = np.zeros(n, dtype=bool)
        held_out[np.random.default_rng(0).permutation(n)[: int(0.3 * n)]] = True
        event = table["event"].astype(bool).to_numpy()
        outcomes = Surv.from_arrays(event, table["time"].to_numpy(dtype=float))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "table.csv"
            x.assign(time=outcomes["time"], event=event.astype(int), mark=held_out.astype(int)).to_csv(file, index=False)
            settings = json.dumps({"preset": package, "trees": TREES})
            here = lines([program, "--risks", str(file), settings, str(SEEDS)])
            if package == "scikit-survival":
                there = of_scikit_survival(x.to_numpy(), ~held_out, outcomes)
            else:
                there = of_r(package, file)
        test = outcomes[held_out]
        c = [np.array([concordance_index_censored(test["event"], test["time"], risk)[0] for risk in risks]) for risks in (here, there)]
        error = np.sqrt(sum(values.var(ddof=1) / SEEDS for values in c))
        cells = [f"{values.mean():.4f} ({values.std(ddof=1):.4f})" for values in c]
        difference = (c[0].mean() - c[1].mean()) / error
        print(f"| {Path(path).name.split('.')[0]} | {n:,}, {x.shape[1]} | {' | '.join(cells)} | {difference:+.1f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
