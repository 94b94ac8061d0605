"""Time and memory of training steps here and in PyTorch (eager) on the CPU, in turn, as ratios, and where the time goes.

    cargo build --release -p fairtte-models --example step_time
    python step_time.py TARGET/release/examples/step_time [--threads N] [--rounds N] [--only NAME ..]
                        [--device tch]

Needs torch and torchvision; `--device tch` an example built with `--features tch`. Both sides run as processes with the same number of threads and answer one request at a time;
a request goes to the one and then to the other, so that both meet the same weather. Medians of the rounds are printed. The
table by operation measures every convolution, batch norm and activation of the network alone, with its shapes, and adds up
what is alike; what a step takes beyond that sum is in the last line. Memory is the largest resident size of a process that
did nothing but the steps.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections import Counter, defaultdict

CASES = {
    "efficientnet-b0 16 x 3 x 224 x 224": ("efficientnet-b0", [16, 3, 224, 224]),
    "efficientnet-b0 32 x 3 x 64 x 64": ("efficientnet-b0", [32, 3, 64, 64]),
    "resnet18-3d 2 x 1 x 48 x 64 x 64": ("resnet18-3d", [2, 1, 48, 64, 64]),
}
PARTS = ["forward", "backward", "update"]


def network(name, channels):
    import torch
    from torchvision.models import efficientnet_b0
    from torchvision.models.video import r3d_18

    torch.manual_seed(1)
    if name == "efficientnet-b0":
        net = efficientnet_b0()
        net.classifier = torch.nn.Identity()
    else:
        net = r3d_18()
        net.fc = torch.nn.Identity()
        net.stem[0] = torch.nn.Conv3d(channels, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False)
    return net.train()


def wave(shape):
    import torch

    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float32) * 0.37).reshape(shape)


class PyTorch:
    """Answers the requests of examples/step_time.rs."""

    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        self.net = self.optimiser = None

    def answer(self, line):
        import time

        import torch
        from torch import nn

        request, _, rest = line.strip().partition(" ")
        if request == "network":
            name, channels = rest.split()
            self.net = network(name, int(channels))
            self.optimiser = torch.optim.AdamW(self.net.parameters(), lr=1e-4)
            return [sum(p.numel() for p in self.net.parameters())]
        if request == "step":
            x = wave([int(n) for n in rest.split()])
            clock = [time.perf_counter()]
            loss = self.net(x).square().mean()
            loss.item()
            clock.append(time.perf_counter())
            loss.backward()
            clock.append(time.perf_counter())
            self.optimiser.step()
            self.optimiser.zero_grad()
            clock.append(time.perf_counter())
            return [b - a for a, b in zip(clock, clock[1:])]
        if request == "memory":
            return [next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))]
        if request == "conv":
            shape, (out,), kernel, stride, padding, (groups,) = [[int(n) for n in part.split()] for part in rest.split("/")]
            weight = wave([out, shape[1] // groups, *kernel]).requires_grad_()
            convolution = nn.functional.conv2d if len(kernel) == 2 else nn.functional.conv3d
            run = lambda x: convolution(x, weight, None, stride, padding, 1, groups)
        else:
            shape = [int(n) for n in rest.split()]
            norm = nn.BatchNorm2d(shape[1]) if len(shape) == 4 else nn.BatchNorm3d(shape[1])
            run = {"relu": nn.functional.relu, "silu": nn.functional.silu, "norm": norm}[request]
        x = wave(shape).requires_grad_()
        clock = time.perf_counter()
        y = run(x)
        forward = time.perf_counter() - clock
        total = y.sum()
        clock = time.perf_counter()
        total.backward()
        return [forward, time.perf_counter() - clock]


class Worker:
    """A process that answers requests."""

    def __init__(self, command, threads):
        threads = {"RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **threads})

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.process.args} ended at {request!r}")
        return [float(number) for number in answer.split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def alternate(workers, request, rounds):
    """Medians of each number of the answers, by worker; the first round warms up and is left out."""
    answers = [[] for _ in workers]
    for _ in range(rounds + 1):
        for worker, kept in zip(workers, answers):
            kept.append(worker.ask(request))
    return [[statistics.median(numbers) for numbers in zip(*kept[1:])] for kept in answers]


def operations(name, shape):
    """Requests for the operations of the network, with how often each occurs."""
    import torch
    from torch import nn

    net, found = network(name, shape[1]), Counter()
    words = lambda numbers: " ".join(str(n) for n in numbers)

    def seen(module, inputs, _output):
        sizes = words(inputs[0].shape)
        if isinstance(module, (nn.Conv2d, nn.Conv3d)):
            depthwise = module.groups > 1
            kind = "depthwise convolution" if depthwise else "1 x 1 convolution" if set(module.kernel_size) == {1} else "convolution"
            parts = [sizes, module.out_channels, words(module.kernel_size), words(module.stride), words(module.padding), module.groups]
            found[kind, "conv " + " / ".join(str(part) for part in parts)] += 1
        elif isinstance(module, (nn.BatchNorm2d, nn.BatchNorm3d)):
            found["batch norm", f"norm {sizes}"] += 1
        elif isinstance(module, (nn.SiLU, nn.ReLU)):
            found["activation", f"{type(module).__name__.lower()} {sizes}"] += 1

    for module in net.modules():
        module.register_forward_hook(seen)
    with torch.no_grad():
        net(wave(shape))
    return found


def report(case, command, device, threads, rounds):
    name, shape = CASES[case]
    step = "step " + " ".join(str(n) for n in shape)
    python = [sys.executable, __file__, "--worker", "--threads", str(threads)]
    workers = [Worker([command, device], threads), Worker(python, threads)]
    for worker in workers:
        worker.ask(f"network {name} {shape[1]}")
    ours, theirs = alternate(workers, step, rounds)
    memory = [worker.ask("memory")[0] for worker in workers]
    print(f"\n## {case}, {threads} threads, medians of {rounds}\n")
    print(f"| | FairTTE ({device}) | PyTorch | ratio |\n|---|---|---|---|")
    row = lambda what, a, b, unit: print(f"| {what} | {a:.3f} {unit} | {b:.3f} {unit} | {a / b:.2f} |" if b > 0 else f"| {what} | {a:.3f} {unit} | - | |")
    for what, a, b in zip(PARTS, ours, theirs):
        row(what, a, b, "s")
    row("step", sum(ours), sum(theirs), "s")
    row("memory", *(size / 2**30 for size in memory), "GiB")
    by_kind = defaultdict(lambda: [0.0, 0.0, 0])
    for (kind, request), count in operations(name, shape).items():
        times = alternate(workers, request, max(3, rounds // 2))
        for side in (0, 1):
            by_kind[kind][side] += count * sum(times[side])
        by_kind[kind][2] += count
    for worker in workers:
        worker.end()
    print(f"\n| operation, forward and backward | how many | FairTTE ({device}) | share | PyTorch | share | ratio |\n|---|---|---|---|---|---|---|")
    totals = [sum(ours), sum(theirs)]
    rest = [totals[side] - [ours, theirs][side][2] - sum(times[side] for times in by_kind.values()) for side in (0, 1)]
    rows = [*sorted(by_kind.items(), key=lambda item: -item[1][0]), ("AdamW", [ours[2], theirs[2], ""]), ("all else", [*rest, ""])]
    for kind, (a, b, count) in rows:
        ratio = f"{a / b:.1f}" if a > 0 and b > 0 else ""
        print(f"| {kind} | {count} | {a:.3f} s | {a / totals[0]:.0%} | {b:.3f} s | {b / totals[1]:.0%} | {ratio} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="flex")
    parser.add_argument("--only", nargs="*", help="words of which a case must hold one")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        side = PyTorch(args.threads)
        for line in sys.stdin:
            print(*side.answer(line), flush=True)
        return
    if not args.command:
        parser.error("name the program step_time that cargo built")
    import torch
    import torchvision

    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")
    for case in CASES:
        if not args.only or any(word in case for word in args.only):
            report(case, args.command, args.device, args.threads, args.rounds)


if __name__ == "__main__":
    main()
