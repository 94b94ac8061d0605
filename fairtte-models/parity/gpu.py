"""Training and inference of the networks in PyTorch on a GPU, beside what `fairtte bench` measured there.

    python gpu.py OURS.json .. [--networks NAME:BxCxHxW ..] [--device cuda] [--seconds S] [--modes eager channels-last bf16 compile] [--output FILE] [--profile]

Every OURS.json is the `--output` of `fairtte bench` on a device of this machine; its networks and shapes are measured here with the
same rules, and those of `--networks` without ours: first step apart, then steps for S seconds, medians. A mode adds to those before it: channels-last is the layout of
the tensors, bf16 automatic mixed precision, compile `torch.compile`. Steps are forward pass, gradients and AdamW on the backbone
with the mean square of the features as loss; inference is evaluation mode without gradients, of FairTTE always in f32. Memory is
what PyTorch's allocator had reserved of the device at most, as that of FairTTE is what its pools had reserved. A mode that fails is a
line with its reason. `--profile` adds the ten operations of the last mode on which a training step spends most. Needs torch,
torchvision and timm.
"""

import argparse
import contextlib
import json
import os
import statistics
import time

from step_time import network, wave

MODES = ["eager", "channels-last", "bf16", "compile"]


class Steps:
    def __init__(self, name, shape, mode, device):
        import torch

        self.torch, self.device = torch, device
        level = MODES.index(mode)
        layout = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        options = {"memory_format": layout} if level >= 1 else {}
        net = network(name, shape[1]).to(device, **options)
        self.x = wave(shape).to(device).to(**options) if options else wave(shape).to(device)
        self.net = torch.compile(net) if level >= 3 else net
        self.optimiser = torch.optim.AdamW(net.parameters(), lr=1e-4)
        self.precision = (lambda: torch.autocast(device, dtype=torch.bfloat16)) if level >= 2 else contextlib.nullcontext

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def timed(self, run):
        self.wait()
        began = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - began

    def train(self):
        self.net.train()
        with self.precision():
            loss = self.net(self.x).float().square().mean()
        loss.item()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()

    def infer(self):
        self.net.eval()
        with self.torch.no_grad(), self.precision():
            self.net(self.x).float().cpu()

    def rate(self, run, seconds):
        first = self.timed(run)
        found, began = [], time.perf_counter()
        while len(found) < 3 or time.perf_counter() - began < seconds:
            found.append(self.timed(run))
        return {"first-seconds": first, "samples-per-second": self.x.shape[0] / statistics.median(found)}


def profile(name, shape, mode, device):
    """The operations of one training step, after one that is not counted, by their own time."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    steps = Steps(name, shape, mode, device)
    steps.timed(steps.train)
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
    with record(activities=kinds) as found:
        steps.timed(steps.train)
    print(f"\n{name}, PyTorch {mode}, a training step")
    print(found.key_averages().table(sort_by=f"self_{device}_time_total", row_limit=10, max_name_column_width=60))


def measure(name, shape, mode, device, seconds):
    import torch

    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    steps = Steps(name, shape, mode, device)
    found = {"training": steps.rate(steps.train, seconds), "inference": steps.rate(steps.infer, seconds)}
    if device == "cuda":
        found["peak-memory"] = torch.cuda.max_memory_reserved()
    return found


def write(path, report):
    """The results so far, whole or not at all."""
    with open(path + ".part", "w") as file:
        json.dump(report, file, indent=1)
    os.replace(path + ".part", path)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("ours", nargs="*")
    options.add_argument("--networks", nargs="*", default=[], metavar="NAME:SHAPE")
    options.add_argument("--device", default="cuda")
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    options.add_argument("--output")
    options.add_argument("--profile", action="store_true")
    arguments = options.parse_args()
    reports = [json.load(open(path)) for path in arguments.ours]
    import torch

    where = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
    tf32 = {"products": torch.backends.cuda.matmul.allow_tf32, "convolutions": torch.backends.cudnn.allow_tf32}
    print(f"PyTorch {torch.__version__} on {where}; TF32 allowed in products: {tf32['products']}, in convolutions: {tf32['convolutions']}\n")
    print("| network | batch | by | training/s | inference/s | ratio of time, training | inference | memory |")
    print("|---|---|---|---|---|---|---|---|")
    found = []
    given = [(name, tuple(map(int, shape.split("x")))) for name, shape in (case.split(":") for case in arguments.networks)]
    ours = [(n["backbone"], tuple(n["shape"])) for report in reports for n in report["networks"]]
    for name, shape in dict.fromkeys(ours + given):
        rows = {}
        for mode in arguments.modes:
            try:
                rows[f"PyTorch {mode}"] = measure(name, shape, mode, arguments.device, arguments.seconds)
            except Exception as error:  # a mode that this machine cannot run
                print(f"| {name} | | PyTorch {mode} | {type(error).__name__}: {str(error).splitlines()[0][:80]} | | | | |", flush=True)
        for report in reports:
            for ours in report["networks"]:
                if (ours["backbone"], tuple(ours["shape"])) == (name, shape):
                    rows[f"FairTTE {report['device']} {ours.get('precision', 'f32')}"] = ours
        single = [f"PyTorch {mode}" for mode in ("eager", "channels-last")]
        best = {of: {what: max((r[what]["samples-per-second"] for key, r in rows.items() if key.startswith("PyTorch")
                                and (of == "all" or key in single)), default=None) for what in ("training", "inference")}
                for of in ("all", "single")}
        for by, row in rows.items():
            rates = {what: row[what]["samples-per-second"] for what in ("training", "inference")}
            ratios = {what: " ".join(f"{best[of][what] / rates[what]:.2f}" if best[of][what] else "-" for of in best)
                      for what in rates}
            held = row.get("device-memory") or row.get("peak-memory")
            memory = f"{held / 2**30:.2f} GiB" if held else "-"
            batch = "x".join(map(str, shape))
            print(f"| {name} | {batch} | {by} | {rates['training']:.1f} | {rates['inference']:.1f} "
                  f"| {ratios['training']} | {ratios['inference']} | {memory} |", flush=True)
            found.append({"network": name, "shape": shape, "by": by, **row})
        if arguments.output:
            write(arguments.output, {"torch": torch.__version__, "device": where, "tf32": tf32, "rows": found})
    print("\nRatios are of the time to that of the fastest mode of PyTorch, and to the fastest in single precision. Memory of FairTTE is that of the device where it says it, else"
          " of its process on the host.")
    if arguments.profile:
        for name, shape in dict.fromkeys((row["network"], tuple(row["shape"])) for row in found):
            try:
                profile(name, shape, arguments.modes[-1], arguments.device)
            except Exception as error:  # as above
                print(f"{name}: no profile: {type(error).__name__}: {str(error).splitlines()[0][:80]}")


if __name__ == "__main__":
    main()
