"""Is a planted source of bias the largest one in the features of a network that was trained on the films? (Python standard library.)

usage: python planted_bias.py FAIRTTE WORK [--seeds 10] [--without 20] [--knobs a,b] [--knob 1] [--people 1400] [--traces]
       python planted_bias.py FAIRTTE WORK --summary

FAIRTTE is the binary, WORK a folder; a cell that is there is not computed again, and its run and films are removed when its
numbers are kept. A cell is one simulation of films of 64 x 64 with one knob (or none, with --without seeds), half of the
people in the group on which the knob acts, 10 % censored before the knobs act, `small-2d` with `nnet-survival` trained on it
for 12 epochs, and `fairtte bias RUN --layer backbone --permutations 199` on all samples. `--summary` prints the table of
docs/src/bias.md of all cells, one per setting (people, knob, traces), with the processor time.
"""

import argparse
import csv
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

KNOBS = ["image-features", "mi-time", "mi-censoring", "time-distribution", "censoring-rate"]
NONE = "none"
RUN = """
name = "planted bias"
seed = {seed}
[data.simulated]
n-subjects = {people}
size = [64, 64]
censoring-rate-base = 0.1
traces = {traces}
{bias}
[[attribute]]
name = "sex"
levels = ["F", "M"]
[image]
size = [64, 64]
channels = 1
[time]
intervals = 20
[model]
backbone = "small-2d"
[head.nnet-survival]
[strategy.erm]
[optimiser]
learning-rate = 2e-3
weight-decay = 1e-5
[training]
epochs = 12
batch-size = 32
patience = 12
[evaluation]
replicates = 2
"""


def call(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def processor_seconds():
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime


def measure(fairtte, work, setting):
    """One cell: its sources and separability, kept in a file of its own."""
    kept = work / ("-".join(str(value) for value in setting.values()) + ".json")
    if kept.exists():
        return
    folder = work / f"running-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    name, seed = setting["knob"], setting["seed"]
    bias = "" if name == NONE else f"[data.simulated.bias]\n{name} = {setting['value']}"
    traces = "true" if setting["traces"] else "false"
    config = folder / "run.toml"
    config.write_text(RUN.format(seed=seed, people=setting["people"], traces=traces, bias=bias))
    before = processor_seconds()
    call(fairtte, "train", "--config", config, "--output", folder / "run", "--set", f"cache={folder / 'cache'}", "--threads", 1)
    call(fairtte, "bias", folder / "run", "--permutations", 199, "--set", "n-replicates=0", "--threads", 1)
    spent = processor_seconds() - before
    with open(folder / "run" / "bias.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] in ("source", "separability")]
    keys = ("value", "chance", "above-chance", "p", "p-holm")
    sources = {row["name"]: {key: float(row[key]) if row[key] else None for key in keys} for row in rows}
    kept.with_suffix(".tmp").write_text(json.dumps({**setting, "seconds": spent, "sources": sources}))
    kept.with_suffix(".tmp").rename(kept)
    shutil.rmtree(folder)


def above(cell, name):
    return cell["sources"][name]["above-chance"] or 0.0


def summary(work):
    cells = [json.loads(path.read_text()) for path in sorted(work.glob("*.json"))]
    settings = sorted({(cell["traces"], cell["people"]) for cell in cells})
    for traces, people in settings:
        of_setting = [cell for cell in cells if (cell["traces"], cell["people"]) == (traces, people)]
        hours = sum(cell["seconds"] for cell in of_setting) / 3600
        print(f"\n{people} people, traces = {str(traces).lower()}, {len(of_setting)} trainings, {hours:.2f} hours of processor time\n")
        print("| knob | seeds | planted source largest | " + " | ".join(KNOBS) + " | separability (AUC) |")
        print("|---" * (4 + len(KNOBS)) + "|")
        kinds = {(cell["knob"], cell["value"]) for cell in of_setting}
        for knob, value in sorted(kinds, key=lambda kind: ([NONE, *KNOBS].index(kind[0]), kind[1])):
            print(line(knob, value, [cell for cell in of_setting if (cell["knob"], cell["value"]) == (knob, value)]))
        without = [cell for cell in of_setting if cell["knob"] == NONE]
        n_any = sum(any(cell["sources"][name]["p-holm"] <= 0.05 for name in KNOBS) for cell in without)
        n_raw = sum(any(cell["sources"][name]["p"] <= 0.05 for name in KNOBS) for cell in without)
        print(f"\nWithout a knob: p <= 0.05 after Holm's adjustment in {n_any} of {len(without)} seeds, before it in {n_raw}.")


def line(knob, value, cells):
    largest = sum(max(KNOBS, key=lambda name: above(cell, name)) == knob for cell in cells)
    words = []
    for name in KNOBS:
        values = [above(cell, name) for cell in cells]
        n = sum(cell["sources"][name]["p"] <= 0.05 for cell in cells)
        text = f"{min(values):.3f} to {max(values):.3f} ({n})"
        words.append(f"**{text}**" if name == knob else text)
    separable = [cell["sources"]["separability"]["value"] for cell in cells]
    first = NONE if knob == NONE else f"`{knob}` {value:g}"
    of = "" if knob == NONE else f"{largest} of {len(cells)}"
    words.append(f"{min(separable):.2f} to {max(separable):.2f}")
    return f"| {first} | {len(cells)} | {of} | " + " | ".join(words) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fairtte", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--without", type=int, default=20, help="seeds without a knob")
    parser.add_argument("--knobs", type=lambda text: text.split(","), default=KNOBS)
    parser.add_argument("--knob", type=float, default=1.0, help="value of the knob")
    parser.add_argument("--people", type=int, default=1400)
    parser.add_argument("--traces", action="store_true", help="films that show sex, age and race, as by default")
    parser.add_argument("--summary", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    # Seed by seed, so that what an interrupted call has is as large for every knob.
    without = iter(range(1, args.without + 1))
    per_round = -(-args.without // max(args.seeds, 1))
    for seed in range(1, args.seeds + 1) if not args.summary else []:
        cells = [(knob, seed, args.knob) for knob in args.knobs]
        cells += [(NONE, other, 0.0) for _, other in zip(range(per_round), without)]
        for knob, of_cell, value in cells:
            cell = {"knob": knob, "value": value, "people": args.people, "traces": args.traces, "seed": of_cell}
            measure(args.fairtte.absolute(), args.work.absolute(), cell)
            print(knob, of_cell, flush=True)
    summary(args.work)


main()
