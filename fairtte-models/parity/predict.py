"""Processor time per image of `fairtte predict` on a store, beside its two parts and a PyTorch loop with a DataLoader, in turn.

    cargo build --release -p fairtte-cli --bin fairtte --example step_time && cargo build --release -p fairtte-data --example ingest
    python predict.py TARGET/release WORK [--rounds N] [--only NETWORK ..]

Needs torch, torchvision and Pillow. WORK is a folder for films of 64 x 64, runs and stores, which are made once. All sides compute
with one thread and their processor time is measured, so that other programs on the machine matter little.

- predict: the processes for N images and for N / 10 of them, whose difference is the cost of an image without start, weights and
  imports: table, cohort, batches, network, curves, blocks and files.
- inference: the forward pass of the same network in batches of 64 (the example step_time); only the backbone.
- loader: batches of 64 from the same store (the example ingest).
- PyTorch: the same network in evaluation mode under `no_grad`, a DataLoader with Pillow over the PNG files, batches of 64, the
  curves as an array. A second column holds the decoded films in memory as 8-bit values, as a store does.

The two parts of `predict` share the processors with each other on a CPU, so that their sum is what can be reached; where a
device computes by itself, the slower of the two is. Medians over the rounds.
"""

import argparse
import csv
import glob
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

BATCH = 64
CASES = {"small-2d": 6_000, "resnet18": 2_000, "efficientnet-b0": 2_000}  # network: images
ENVIRONMENT = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
RUN = """
name = "{network}"
seed = 1
[data.simulated]
n-subjects = 200
size = [64, 64]
[[attribute]]
name = "sex"
[image]
size = [64, 64]
channels = 1
[time]
intervals = 20
[model]
backbone = "{network}"
[head.nnet-survival]
[strategy.erm]
[training]
epochs = 1
[evaluation]
replicates = 2
"""


def call(*words):
    """Runs a program to its end; its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([str(word) for word in words], env=ENVIRONMENT, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{words}: {result.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def busy(process):
    """Seconds of processor time of all threads of a process."""
    total = 0
    for path in glob.glob(f"/proc/{process}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # the thread has ended
    return total / 1e9


class Prediction:
    """`fairtte predict` of a run for two tables."""

    def __init__(self, programs, work, run, n):
        self.command, self.work, self.run, self.n = programs / "fairtte", work, run, n
        for size in (n, n // 10):
            films = work / f"films-{max(CASES.values())}"
            table = films / f"first-{size}.csv"
            if not table.exists():
                table.write_text("".join((films / "manifest.csv").read_text().splitlines(keepends=True)[: size + 1]))
            (work / f"{size}.toml").write_text(f'[data.generic]\ntable = "{table}"\ntime-unit = "years"\n')
            self.seconds(size)  # decodes

    def seconds(self, size):
        output = self.work / "predicted"
        shutil.rmtree(output, ignore_errors=True)
        return call(self.command, "predict", self.run, "--data", self.work / f"{size}.toml", "--cache", self.work / "cache",
                    "--output", output, "--threads", 1)

    def ask(self):
        large, small = self.seconds(self.n), self.seconds(self.n // 10)
        return {"predict": (large - small) / (self.n - self.n // 10), "predict, whole process": large / self.n}


class Inference:
    """Forward passes by the example step_time."""

    def __init__(self, programs, network):
        self.process = subprocess.Popen([programs / "examples" / "step_time"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
        self.request(f"network {network} 1")
        self.request(f"infer {BATCH} 1 64 64")

    def request(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def ask(self, n=20):
        before = busy(self.process.pid)
        for _ in range(n):
            self.request(f"infer {BATCH} 1 64 64")
        return {"inference": (busy(self.process.pid) - before) / (n * BATCH)}

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def loader(programs, work, n):
    """Batches of the example ingest: the second of its three epochs."""
    table = work / f"films-{max(CASES.values())}" / f"first-{n}.csv"
    process = subprocess.Popen([programs / "examples" / "ingest", table, work / "cache", "64", "1"], stdout=subprocess.PIPE,
                               text=True, env=ENVIRONMENT)
    marks = [busy(process.pid) for line in process.stdout if line.startswith("epoch")]
    process.wait()
    return {"loader": (marks[1] - marks[0]) / n}


def torch_loops(network, folder, n):
    """Processor seconds per image of the loops: from files, and from decoded films in memory."""
    import numpy as np
    import torch
    from PIL import Image
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    torch.set_num_threads(1)
    if network == "small-2d":
        widths, layers = [1, 16, 32, 64, 64], []
        for channels, more in zip(widths, widths[1:]):
            layers += [nn.Conv2d(channels, more, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(more), nn.ReLU(inplace=True)]
        backbone, features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), 64
    else:
        import torchvision

        backbone = getattr(torchvision.models, network.replace("-", "_"))()
        if network == "resnet18":
            backbone.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
            backbone.fc, features = nn.Identity(), 512
        else:
            backbone.features[0][0] = nn.Conv2d(1, 32, 3, stride=2, padding=1, bias=False)
            backbone.classifier, features = nn.Identity(), 1280
    net = nn.Sequential(backbone, nn.Linear(features, 64), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 20)).eval()
    with open(folder / f"first-{n}.csv", newline="") as rows:
        paths = [folder / row["image"] for row in csv.DictReader(rows)]

    class Films(Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, at):
            film = np.asarray(Image.open(paths[at]).convert("L"), dtype=np.float32)
            return (torch.from_numpy(film)[None] / 255 - 0.5) / 0.25

    def curves(batches):
        found = []
        with torch.no_grad():
            for batch in batches:
                hazards = nn.functional.softplus(net(batch).double())
                found.append(torch.exp(-hazards.cumsum(1)).numpy())
        return np.concatenate(found)

    def timed(batches):
        begin = time.process_time()
        assert curves(batches).shape == (n, 20)
        return (time.process_time() - begin) / n

    from_files = DataLoader(Films(), batch_size=BATCH, num_workers=0)
    stored = torch.from_numpy(np.stack([np.asarray(Image.open(path).convert("L")) for path in paths]))[:, None]
    as_float = lambda batch: (batch[0].float() / 255 - 0.5) / 0.25
    in_memory = DataLoader(TensorDataset(stored), batch_size=BATCH, num_workers=0)
    curves(map(as_float, in_memory))  # warms up
    return {"PyTorch, files": timed(from_files), "PyTorch, in memory": timed(map(as_float, in_memory))}


def report(network, n, rounds, programs, work):
    films, run = work / f"films-{max(CASES.values())}", work / network
    if not (films / "simulation.json").exists():
        call(programs / "fairtte", "simulate", "--output", films, "--set", f"n-subjects={max(CASES.values())}", "--seed", 7)
    if not (run / "done").exists():
        config = work / f"{network}.toml"
        config.write_text(RUN.format(network=network))
        call(programs / "fairtte", "train", "--config", config, "--output", run, "--set", f"cache={work / 'cache'}")
    prediction, inference = Prediction(programs, work, run, n), Inference(programs, network)
    found = {}
    for _ in range(rounds):
        torch = subprocess.run([sys.executable, __file__, str(programs), str(work), "--worker", network], check=True,
                               capture_output=True, text=True, env=ENVIRONMENT).stdout
        for answer in (prediction.ask(), inference.ask(), loader(programs, work, n), json.loads(torch)):
            for what, seconds in answer.items():
                found.setdefault(what, []).append(1e3 * seconds)
    inference.end()
    medians = {what: statistics.median(values) for what, values in found.items()}
    both = medians["inference"] + medians["loader"]
    print(f"\n## {network}, {n} films of 64 x 64, medians of {rounds} rounds, one thread\n")
    print("| | ms per image | range | images per second | predict in terms of it |\n|---|---|---|---|---|")
    for what, median in [*medians.items(), ("inference + loader", both)]:
        span = f"{min(found[what]):.3f} to {max(found[what]):.3f}" if what in found else ""
        print(f"| {what} | {median:.3f} | {span} | {1e3 / median:.0f} | {medians['predict'] / median:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, help="folder with fairtte and examples/")
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--worker", metavar="NETWORK", help=argparse.SUPPRESS)
    args = parser.parse_args()
    programs, work = args.programs.absolute(), args.work.absolute()
    if args.worker:
        films = work / f"films-{max(CASES.values())}"
        return print(json.dumps(torch_loops(args.worker, films, CASES[args.worker])))
    import torch
    import torchvision

    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    work.mkdir(parents=True, exist_ok=True)
    for network in args.only:
        report(network, CASES[network], args.rounds, programs, work)


if __name__ == "__main__":
    main()
