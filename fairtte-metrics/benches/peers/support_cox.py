"""Curves of a Cox model on one half of SUPPORT for the other half, and what Python packages say of them.

Writes support_cox.csv (curves, outcomes, race, sex) and support_train.csv (outcomes) for the command of
docs/src/results/against_python.md, and prints the evaluation times and the numbers beside ours.

    python3 -m venv V && V/bin/pip install lifelines==0.30.3 scikit-survival==0.28.0
    V/bin/python support_cox.py support_named.csv.gz FOLDER
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter, KaplanMeierFitter
from sksurv.metrics import (
    brier_score,
    concordance_index_censored,
    concordance_index_ipcw,
    cumulative_dynamic_auc,
    integrated_brier_score,
)
from sksurv.util import Surv

HORIZON = 365.0
COLUMNS = ["age", "num_co", "diabetes", "dementia", "meanbp", "hr", "rr", "temp", "sodium", "wbc", "creatinine"]


def main(table, folder):
    data = pd.read_csv(table)
    order = np.random.default_rng(0).permutation(len(data))
    train, test = data.iloc[order[: len(data) // 2]], data.iloc[order[len(data) // 2 :]]
    model = CoxPHFitter().fit(train[[*COLUMNS, "time", "event"]], "time", "event")
    grid = np.unique(np.quantile(train.time, np.linspace(0.01, 0.97, 60)))
    curves = model.predict_survival_function(test[COLUMNS], times=grid).to_numpy().T

    columns = {repr(float(time)): curves[:, place] for place, time in enumerate(grid)}
    rows = {"sample": test.index, "time": test.time, "event": test.event, "race": test.race, "sex": test.sex}
    pd.DataFrame({**{name: np.asarray(cells) for name, cells in rows.items()}, **columns}).to_csv(
        folder / "support_cox.csv", index=False
    )
    train[["time", "event"]].to_csv(folder / "support_train.csv", index=False)

    times = grid[12:48:3]
    print(f"{len(train)} patients for the fit, {len(test)} scored at")
    print([float(time) for time in times])
    compare(train, test, grid, curves, times)


def at(grid, curves, time):
    """The curves as steps."""
    place = np.searchsorted(grid, time, side="right") - 1
    return curves[:, place] if place >= 0 else curves[:, 0]


def compare(train, test, grid, curves, times):
    outcomes = Surv.from_arrays
    fitted = outcomes(train.event == 1, train.time)

    def of_rows(name, rows):
        part, own = test[rows], curves[rows]
        truth = outcomes(part.event == 1, part.time)
        survival = np.column_stack([at(grid, own, time) for time in times])
        risk = 1 - at(grid, own, HORIZON)
        aucs = cumulative_dynamic_auc(fitted, truth, 1 - survival, times)[0]
        mean_auc = np.trapezoid(aucs, times) / (times[-1] - times[0])
        km = KaplanMeierFitter().fit(part.time, part.event)
        print(f"{name} ({rows.sum()})")
        print("  ibs", repr(float(integrated_brier_score(fitted, truth, survival, times))))
        print("  brier", repr(float(brier_score(fitted, truth, 1 - risk, HORIZON)[1][0])))
        print("  auc", repr(float(cumulative_dynamic_auc(fitted, truth, risk, HORIZON)[0][0])))
        print("  auc-td", repr(float(mean_auc)))
        print("  harrell-c", repr(float(concordance_index_censored(part.event == 1, part.time, risk)[0])))
        print("  uno-c", repr(float(concordance_index_ipcw(fitted, truth, risk, tau=times[-1])[0])))
        print("  observed-expected", repr(float((1 - km.predict(HORIZON)) / risk.mean())))

    of_rows("all", np.ones(len(test), bool))
    for column in ("sex", "race"):
        for level in sorted(test[column].dropna().unique()):
            of_rows(f"{column}: {level}", (test[column] == level).to_numpy())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
