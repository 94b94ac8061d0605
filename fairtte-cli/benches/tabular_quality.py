"""Test C^td of `fairtte train` beside pycox on SUPPORT, METABRIC and GBSG: same folds, columns, network and optimiser.

usage: python tabular_quality.py FAIRTTE DATA WORK [--sets a,b] [--heads a,b] [--folds 5] [--only pycox|fairtte]

FAIRTTE is the binary, DATA the folder with `tabular/` and `tabular_fairness/`, WORK a folder for tables, runs and results
(a run that is there is not repeated). Needs pycox 0.3, torch, pandas, pyarrow.

Both sides read the same table per fold: columns already standardised, categories one-hot, on the training part. The
network is MLPVanilla with two layers of 32, batch norm and dropout 0.1, Adam with step 0.01 (GBSG, METABRIC) or 0.003,
batches of 256, at most 100 epochs, patience 10 on the validation loss; 30 cut points at Kaplan-Meier quantiles. The curves of both are read on the same finer grid
and scored by pycox's own `concordance_td("antolini")`; those of pycox's Cox models have a step at every event time. In
`cox-time` the time enters pycox's network in its first layer and ours in the classifier, which then has a hidden layer of
16. Standard errors are over the folds.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd

SETS = {
    "support": ("tabular_fairness/support_named.csv.gz", ["sex", "race", "cancer"], 0.003),
    "metabric": ("tabular/metabric.csv.gz", [], 0.01),
    "gbsg": ("tabular/gbsg.csv.gz", ["x3"], 0.01),
}
HEADS = ["pmf", "deephit", "nnet-survival", "cox", "cox-time", "pc-hazard"]
INTERVALS, FACTOR = 30, 10


def prepare(name, data, work, folds):
    """Per fold one table with encoded columns and one file of parts."""
    path, categories, _ = SETS[name]
    table = pd.read_csv(data / path)
    table = table[table.time > 0].reset_index(drop=True)
    order = np.random.default_rng(7).permutation(len(table))
    for fold in range(folds):
        folder = work / name / f"fold{fold}"
        if (folder / "parts.csv").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        part = np.full(len(table), "train", dtype=object)
        test = order[fold::folds]
        rest = np.setdiff1d(order, test, assume_unique=True)
        rest = np.random.default_rng(fold).permutation(rest)
        part[test] = "test"
        part[rest[: len(rest) // 5]] = "validation"
        train = part == "train"
        columns = {}
        for column in table.columns.drop(["time", "event"]):
            if column in categories:
                for level in sorted(table.loc[train, column].astype(str).unique())[1:]:
                    columns[f"{column}={level}"] = (table[column].astype(str) == level).astype(float)
            else:
                values = table[column].astype(float)
                values = values.fillna(values[train].mean())
                columns[column] = (values - values[train].mean()) / values[train].std(ddof=0)
        encoded = pd.DataFrame(columns)
        encoded.columns = [f"f{i}" for i in range(encoded.shape[1])]
        encoded.insert(0, "subject_id", np.arange(len(table)))
        encoded["time"], encoded["event"] = table.time, table.event.astype(int)
        encoded.to_csv(folder / "table.csv", index=False)
        pd.DataFrame({"subject_id": np.arange(len(table)), "part": part}).to_csv(folder / "parts.csv", index=False)


def score(survival, table):
    """C^td of curves (index: times, columns: the rows of `table`)."""
    from pycox.evaluation import EvalSurv

    return EvalSurv(survival, table.time.to_numpy(), table.event.to_numpy()).concordance_td("antolini")


def refine(survival):
    """Linear between the rows, FACTOR points per interval."""
    times = survival.index.to_numpy(dtype=float)
    fine = np.unique(np.concatenate([np.linspace(a, b, FACTOR + 1) for a, b in zip(times, times[1:])]))
    values = np.stack([np.interp(fine, times, survival.iloc[:, j]) for j in range(survival.shape[1])], 1)
    return pd.DataFrame(values, index=fine)


def run_pycox(name, head, fold, folder):
    import torch
    import torchtuples as tt
    from pycox.models import PMF, CoxPH, CoxTime, DeepHitSingle, LogisticHazard, PCHazard
    from pycox.models.cox_time import MLPVanillaCoxTime

    np.random.seed(fold)
    torch.manual_seed(fold)
    table = pd.read_csv(folder / "table.csv")
    part = pd.read_csv(folder / "parts.csv").part.to_numpy()
    features = [column for column in table if column.startswith("f")]
    x = {p: table.loc[part == p, features].to_numpy("float32") for p in ("train", "validation", "test")}
    outcome = {p: (table.time[part == p].to_numpy("float32"), table.event[part == p].to_numpy("float32")) for p in x}
    n = len(features)
    models = {"pmf": PMF, "deephit": DeepHitSingle, "nnet-survival": LogisticHazard, "pc-hazard": PCHazard}
    optimiser = tt.optim.Adam(SETS[name][2])
    net = lambda outputs, bias=True: tt.practical.MLPVanilla(n, [32, 32], outputs, True, 0.1, output_bias=bias)
    if head == "cox":
        model, y = CoxPH(net(1, False), optimiser), outcome
    elif head == "cox-time":
        transform = CoxTime.label_transform()
        y = {"train": transform.fit_transform(*outcome["train"]), "validation": transform.transform(*outcome["validation"])}
        model = CoxTime(MLPVanillaCoxTime(n, [32, 32], True, 0.1), optimiser, labtrans=transform)
    else:
        transform = models[head].label_transform(INTERVALS, "quantiles")
        y = {"train": transform.fit_transform(*outcome["train"]), "validation": transform.transform(*outcome["validation"])}
        model = models[head](net(transform.out_features), optimiser, duration_index=transform.cuts)
    validation = tt.tuplefy(x["validation"], y["validation"])
    if head == "cox-time":
        validation = validation.repeat(10).cat()
    stop = [tt.callbacks.EarlyStopping(patience=10, file_path=str(folder / "checkpoint.pt"))]
    log = model.fit(x["train"], y["train"], 256, 100, stop, verbose=False, val_data=validation)
    if head in ("cox", "cox-time"):
        model.compute_baseline_hazards()
        survival = model.predict_surv_df(x["test"])
    elif head == "pc-hazard":
        model.sub = FACTOR
        survival = model.predict_surv_df(x["test"])
    else:
        survival = refine(model.predict_surv_df(x["test"]))
    return score(survival, table[part == "test"]), len(log.to_pandas())


RUN = """name = "{name} {head} fold {fold}"
seed = {fold}
output = "run-{head}"
[data.tabular]
table = "table.csv"
subject = "subject_id"
sample = "subject_id"
features = "all"
[split]
file = "parts.csv"
[time]
intervals = {intervals}
grid = "quantile"
points-per-interval = {factor}
[model]
backbone = "mlp"
representation = 0
dropout = 0.0
hidden = {hidden}
mlp = {{ widths = [32, 32], dropout = 0.1 }}
[head.{head}]
[optimiser]
learning-rate = {rate}
weight-decay = 0.0
gradient-clip = 0.0
[training]
epochs = 100
batch-size = 256
patience = 10
[evaluation]
replicates = 0
"""


def run_fairtte(binary, name, head, fold, folder):
    config = folder / f"{head}.toml"
    hidden = 16 if head == "cox-time" else 0  # the time must pass a layer that is not linear
    settings = {"intervals": INTERVALS, "factor": FACTOR, "rate": SETS[name][2], "hidden": hidden}
    config.write_text(RUN.format(name=name, head=head, fold=fold, **settings))
    outcome = subprocess.run([binary, "train", "--config", config.name], cwd=folder, capture_output=True, text=True)
    if outcome.returncode != 0:
        raise SystemExit(f"{config}: exit {outcome.returncode}\n{outcome.stderr[-2000:]}")
    run = folder / f"run-{head}"
    table = pd.read_csv(folder / "table.csv", dtype={"subject_id": str}).set_index("subject_id")
    parts = pd.read_csv(folder / "parts.csv", dtype=str)
    test = parts.subject_id[parts.part == "test"]
    predictions = pd.read_parquet(run / "predictions.parquet").set_index("sample_id")
    predictions.index = predictions.index.astype(str)
    predictions = predictions.loc[test]
    survival = pd.DataFrame(predictions.to_numpy().T, index=predictions.columns.astype(float))
    epochs = sum(1 for _ in open(run / "steps.jsonl"))
    return score(survival, table.loc[test]), epochs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fairtte")
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--heads", default=",".join(HEADS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", choices=["pycox", "fairtte"])
    arguments = parser.parse_args()
    work = arguments.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    record = work / "results.json"
    results = json.loads(record.read_text()) if record.exists() else {}
    sides = [arguments.only] if arguments.only else ["pycox", "fairtte"]
    for name in arguments.sets.split(","):
        prepare(name, arguments.data, work, arguments.folds)
        for head in arguments.heads.split(","):
            for fold in range(arguments.folds):
                folder = work / name / f"fold{fold}"
                for side in sides:
                    key = f"{name}/{head}/{fold}/{side}"
                    if key in results:
                        continue
                    if side == "pycox":
                        value = run_pycox(name, head, fold, folder)
                    else:
                        value = run_fairtte(str(Path(arguments.fairtte).absolute()), name, head, fold, folder)
                    results[key] = value
                    record.write_text(json.dumps(results, indent=1))
            line = [f"{name:9}{head:14}"]
            for side in ("pycox", "fairtte"):
                values = [results.get(f"{name}/{head}/{fold}/{side}") for fold in range(arguments.folds)]
                if all(values):
                    c = np.array([value[0] for value in values])
                    epochs = np.mean([value[1] for value in values])
                    line.append(f"{side} {c.mean():.4f} (se {c.std(ddof=1) / len(c) ** 0.5:.4f}, {epochs:.0f} epochs)")
            print("  ".join(line), flush=True)


if __name__ == "__main__":
    main()
