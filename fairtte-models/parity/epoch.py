"""Wall time of whole epochs on GRAPE: `fairtte train` beside a PyTorch script with a DataLoader and Pillow, in turn.

    cargo build --release -p fairtte-cli
    python epoch.py TARGET/release/fairtte [--config configs/grape.toml] [--epochs N] [--rounds N] [--threads N]
                    [--workers N] [--device tch] [--only CASE ..] [--lock FILE]

Needs torch, torchvision and Pillow, and the photographs (docs/src/datasets/grape.md). An epoch is: batches in a new order, a
training step on each (forward pass, gradients, clipping, AdamW), then the validation part in evaluation mode with its
likelihood and C^td. Both sides train the same network from random weights (backbone, Linear to 64, dropout, Linear to 16,
ReLU, Linear to the intervals) with the loss of nnet-survival on the same samples, the split that `fairtte train` wrote, with the
image size, batch size and settings of the run file, and the same number of threads.

What they do differently is the point of the comparison. FairTTE decodes every photograph once, into a store that all later runs
and epochs read; the two are shown apart ("before the first epoch", with an empty cache and with a full one). The script
decodes in every epoch, as most training scripts do, in `--workers` processes (kept between epochs; as many as there are threads
unless told otherwise): Pillow, one bilinear resize, ToTensor. To separate decoding from arithmetic, a second PyTorch column holds the decoded pictures in
memory and reads no file in an epoch.

Each side runs `--epochs` epochs per process and the processes take turns. The first epoch of a process warms up (memory,
LibTorch's choice of kernels, start of the workers) and has a line of its own; "epoch" is the median of all later ones. Both
sides write weights and optimiser to a file after each epoch; "with checkpoint" adds that. Start-up of Python is not counted.
What share of the processors other processes took meanwhile is printed: on a busy machine the ratios say nothing (step_time.py
tells why).
"""

import argparse
import csv
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from step_time import alone, busy

REPOSITORY = Path(__file__).parent.parent.parent
CASES = {  # backbone and image size, None for that of the run file
    "small-2d": ("small-2d", None),
    "efficientnet-b0": ("efficientnet-b0", None),
    "small-2d 224 x 224": ("small-2d", [224, 224]),
    "efficientnet-b0 224 x 224": ("efficientnet-b0", [224, 224]),
}
TARGET = 0.8


# PyTorch's side: a process that reads a task from standard input and prints its times as JSON.


def backbone(name):
    from torch import nn

    if name == "efficientnet-b0":
        from torchvision.models import efficientnet_b0

        net = efficientnet_b0()
        net.classifier = nn.Identity()
        return net, 1280
    widths, layers = [3, 16, 32, 64, 64], []
    for channels, more in zip(widths, widths[1:]):
        convolution = nn.Conv2d(channels, more, 3, stride=2, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(more), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), 64


def pictures(samples, size, task):
    import numpy as np
    import torch
    from PIL import Image

    mean, deviation = (torch.tensor(task[key])[:, None, None] for key in ("mean", "deviation"))

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return len(samples)

        def __getitem__(self, at):
            sample = samples[at]
            with Image.open(sample["image"]) as image:
                image = image.convert("RGB").resize((size[1], size[0]), Image.BILINEAR)
            # What torchvision's ToTensor and Normalize do.
            x = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).contiguous().float().div_(255)
            return x.sub_(mean).div_(deviation), sample["index"], sample["event"], sample["time"]

    return Pictures()


def survival_loss(logits, index, event):
    """Nnet-survival, per sample."""
    import torch
    from torch.nn import functional as F

    place = torch.arange(logits.shape[1])[None]
    up_to, at_event = place <= index[:, None], (place == index[:, None]) & event[:, None]
    return (F.softplus(logits) * up_to - logits * at_event).sum(1)


def concordance(survival, index, time, event):
    """C^td of Antolini et al.: of comparable pairs, the share whose curves at the event time stand in the right order."""
    at_event = survival[:, index].T  # [i, j]: S of sample j at the time of sample i
    own = at_event.diagonal()[:, None]
    comparable = event[:, None] & (time[:, None] < time[None])
    return ((own < at_event) & comparable).sum().item() / max(1, comparable.sum().item())


class InMemory:
    """Decoded pictures; batches are gathered from them."""

    def __init__(self, loader, shuffle):
        import torch

        self.all, self.batch, self.shuffle = [torch.cat(part) for part in zip(*loader)], loader.batch_size, shuffle

    def __iter__(self):
        import torch

        n = len(self.all[0])
        order = torch.randperm(n) if self.shuffle else torch.arange(n)
        for places in order.split(self.batch):
            yield [part[places] for part in self.all]


def train(task):
    import torch
    from torch import nn

    torch.set_num_threads(task["threads"])
    torch.manual_seed(1)
    start = time.time()
    samples = {part: [s for s in task["samples"] if s["part"] == part] for part in ("train", "validation")}
    loaders = {}
    for part, of_part in samples.items():
        dataset = pictures(of_part, task["size"], task)
        loaders[part] = torch.utils.data.DataLoader(dataset, task["batch"], shuffle=part == "train",
                                                    num_workers=task["workers"],
                                                    persistent_workers=task["workers"] > 0 and not task["cached"])
        if task["cached"]:
            loaders[part] = InMemory(loaders[part], part == "train")
    features, n_features = backbone(task["backbone"])
    to_outputs = nn.Linear(16, task["intervals"])
    head = nn.Sequential(nn.Linear(n_features, 64), nn.Dropout(0.5), nn.Linear(64, 16), nn.ReLU(), to_outputs)
    net = nn.Sequential(features, head)
    optimiser = torch.optim.AdamW(net.parameters(), lr=task["rate"], weight_decay=task["decay"])
    times = {"before": time.time() - start, "epochs": [], "with checkpoint": [], "validation": []}
    for _ in range(task["epochs"]):
        clock = time.perf_counter()
        net.train()
        total = 0.0
        for x, index, event, _ in loaders["train"]:
            if len(x) < 2:
                continue
            optimiser.zero_grad()
            loss = survival_loss(net(x), index, event).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimiser.step()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            outputs = [(net(x), *rest) for x, *rest in loaders["validation"]]
        logits, index, event, when = (torch.cat(part) for part in zip(*outputs))
        likelihood = survival_loss(logits, index, event).mean().item()
        c_td = concordance((-nn.functional.softplus(logits).cumsum(1)).exp(), index, when, event)
        times["epochs"].append(time.perf_counter() - clock)
        torch.save({"net": net.state_dict(), "optimiser": optimiser.state_dict()}, task["checkpoint"])
        times["with checkpoint"].append(time.perf_counter() - clock)
        times["validation"].append([likelihood, c_td, total])
    return times


def of_pytorch(task, threads):
    run = subprocess.run([sys.executable, __file__, "--worker"], input=json.dumps(task), text=True, stdout=subprocess.PIPE,
                         check=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return json.loads(run.stdout)


# FairTTE's side.


def of_fairtte(args, folder, cache, name, size):
    """Times of a run into a new `folder`."""
    settings = {"model.backbone": name, "image.size": json.dumps(size), "cache": str(cache), "training.epochs": args.epochs,
                "training.patience": args.epochs, "evaluation.replicates": 100}
    command = [args.command, "train", "--config", str(args.config), "--output", str(folder)]
    command += ["--threads", str(args.threads)]
    command += ["--device", args.device] * bool(args.device)
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    start = time.time()
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    epochs = [json.loads(line) for line in open(folder / "steps.jsonl")]
    # The checkpoint of an epoch is written before the next begins; that of the last one is not seen.
    checkpoints = [b["ended"] - b["seconds"] - a["ended"] for a, b in zip(epochs, epochs[1:])]
    seconds = [epoch["seconds"] for epoch in epochs]
    complete = [a + b for a, b in zip(seconds, [*checkpoints, *checkpoints[-1:]])]
    return {"before": epochs[0]["ended"] - seconds[0] - start, "epochs": seconds, "with checkpoint": complete}


def busy_children():
    """Seconds for which the processors have worked on ended child processes and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def samples_of(folder, config):
    """The samples of the manifest with their part, interval and outcome as FairTTE cuts time."""
    table = (config.parent / tomllib.loads(config.read_text())["data"]["generic"]["table"]).resolve()
    part = {row["subject_id"]: row["part"] for row in csv.DictReader(open(folder / "split.csv"))}
    rows = list(csv.DictReader(open(table)))
    intervals = tomllib.loads(config.read_text())["time"]["intervals"]
    last = max(float(row["time"]) for row in rows if part[row["subject_id"]] == "train")
    samples = []
    for row in rows:
        place, event = float(row["time"]) / last * (intervals - 1), row["event"] == "1"
        index, event = (math.ceil(place), event) if event else (math.floor(place), False)
        index, event = (index, event) if index < intervals else (intervals - 1, False)
        samples.append({"image": str(table.parent / row["image"]), "part": part[row["subject_id"]], "index": index,
                        "event": event, "time": float(row["time"])})
    return samples


def report(case, args, scratch):
    settings = tomllib.loads(args.config.read_text())
    name, size = CASES[case]
    size = size or settings["image"]["size"]
    cache = scratch / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    first = of_fairtte(args, scratch / "first", cache, name, size)
    samples = samples_of(scratch / "first", args.config)
    shutil.rmtree(scratch / "first")
    task = {"samples": samples, "size": size, "backbone": name, "threads": args.threads, "epochs": args.epochs,
            "workers": args.threads if args.workers is None else args.workers,
            "batch": settings["training"]["batch-size"], "rate": settings["optimiser"]["learning-rate"],
            "decay": settings["optimiser"]["weight-decay"], "intervals": settings["time"]["intervals"],
            "mean": [0.5] * 3, "deviation": [0.25] * 3, "checkpoint": str(scratch / "checkpoint.pt")}
    n_of = {part: sum(s["part"] == part for s in samples) for part in ("train", "validation")}
    ours, theirs, cached = f"FairTTE ({args.device or 'flex'})", "PyTorch, DataLoader", "PyTorch, decoded once"
    runs, shares = {ours: [], theirs: [], cached: []}, []
    for _ in range(args.rounds):
        for column, of_column in runs.items():
            with alone(args.lock):
                before, start = busy() - busy_children(), time.perf_counter()
                if column == ours:
                    of_column.append(of_fairtte(args, scratch / "run", cache, name, size))
                else:
                    of_column.append(of_pytorch({**task, "cached": column == cached}, args.threads))
                of_others = busy() - busy_children() - before
                shares.append(of_others / (time.perf_counter() - start) / os.cpu_count())
        shutil.rmtree(scratch / "run")
    print(f"\n## {name}, {size[0]} x {size[1]}, {n_of['train']} + {n_of['validation']} photographs, batches of {task['batch']}, "
          f"{args.threads} threads, {args.rounds} runs of {args.epochs} epochs, other processes took at most {max(shares):.0%} of the processors\n")
    print(f"| | {' | '.join(runs)} | ratio | target | met |\n|{'---|' * (len(runs) + 4)}")
    median = lambda of_run: {column: statistics.median(x for run in of_column for x in of_run(run))
                             for column, of_column in runs.items()}
    lines = [("epoch", median(lambda run: run["epochs"][1:]), TARGET),
             ("epoch with checkpoint", median(lambda run: run["with checkpoint"][1:]), None),
             ("first epoch of a process", median(lambda run: run["epochs"][:1]), None),
             ("before the first epoch", median(lambda run: [run["before"]]), None)]
    lines.append(("first epoch and what is before it, empty cache", {
        **median(lambda run: [run["before"] + run["epochs"][0]]), ours: first["before"] + first["epochs"][0]}, None))
    for what, seconds, target in lines:
        ratio = seconds[ours] / seconds[theirs]
        met = "" if target is None else "yes" if ratio <= target else "**no**"
        cells = " | ".join(f"{seconds[column]:.3f} s" for column in runs)
        print(f"| {what} | {cells} | {ratio:.2f} | {target or ''} | {met} |", flush=True)
    print("\nSeconds of the epochs of each run:", flush=True)
    for column, of_column in runs.items():
        print(f"- {column}:", "; ".join(" ".join(f"{x:.2f}" for x in run["epochs"]) for run in of_column), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", help="the program fairtte")
    parser.add_argument("--config", type=Path, default=REPOSITORY / "configs/grape.toml")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, help="processes of the DataLoader; 0: the training process itself")
    parser.add_argument("--device", help="as of fairtte")
    parser.add_argument("--only", nargs="*", choices=CASES)
    parser.add_argument("--lock", metavar="FILE", help="hold an exclusive lock on FILE during each run")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(train(json.load(sys.stdin))))
        return
    if not args.command:
        parser.error("name the program fairtte that cargo built")
    if args.epochs < 2:
        parser.error("at least two epochs: the first one warms up")
    import PIL
    import torch

    args.config = args.config.resolve()
    print(f"torch {torch.__version__}, Pillow {PIL.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    with tempfile.TemporaryDirectory() as scratch:
        for case in args.only or CASES:
            report(case, args, Path(scratch))


if __name__ == "__main__":
    main()
