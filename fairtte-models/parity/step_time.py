"""Time and memory of training steps and inference here and in PyTorch on the CPU, in turn, as ratios, and where the time goes.

    cargo build --release -p fairtte-cli --example step_time
    python step_time.py TARGET/release/examples/step_time [--threads N] [--rounds N] [--only WORD ..] [--device tch]
                        [--columns channels-last compile memory-kept] [--summary-only] [--without-kernels] [--patience S]
                        [--lock FILE]

Needs torch, torchvision and timm, for `unet` segmentation_models_pytorch and safetensors; `--device tch` an example built with `--features tch`; torch.compile a C++ compiler (a
column that fails says so, and the reason stands below the table). All sides run as processes with the same number of threads
and answer one request at a time; a request goes to one after the other, so that all meet the same weather, and a first round
that is not counted warms up (and compiles). A short request is repeated for some tenths of a second before the answer that
counts: the threads of the process that answered before keep a processor for some milliseconds, waiting for work, and caches
hold what that process used. Medians of the rounds are printed, with the ratio to PyTorch eager and to the best of
PyTorch eager, channels-last and compile, which the targets are about.

Our program asks its allocators to keep free memory for the next step; on `tch` that is LibTorch's, which is glibc's malloc. Python
does not ask, and pays for fresh pages in every step; the column memory-kept is PyTorch eager with the same setting.

A busy machine favours us: the threads of PyTorch wait for each other in every operation, so that one without a core stops all
of them, where the work of ours is taken up by another. So what share of the processors other processes took is measured with
every answer, and the largest is printed. With `--patience S` rounds go on for up to S seconds until each side has as many
answers as `--rounds` with a share below 3 %; the least disturbed ones count.

Training is forward pass, gradients and AdamW on the backbone, with stochastic depth where the network has it; inference is the
forward pass in evaluation mode without gradients (`valid()` here, eval() and no_grad() there). Memory is the largest resident
size of a process that did nothing but training steps; what it held before the network was built (LibTorch's libraries hold
half a gigabyte in a CUDA build, a few megabytes here) is shown beside it, and the ratio without it too.

The table by operation measures every convolution, batch norm and activation of the network alone, with its shapes, and adds up
what is alike; what a step takes beyond that sum is in the last line. On our side these are burn's operations, not the fused
ones of the whole step. A transformer has none of them.

`--without-kernels` adds a column with our operations switched off (FAIRTTE_KERNELS=off), which is burn's speed. `--lock FILE`
holds an exclusive lock on FILE during the counted rounds, for a machine that others use under the same lock.
"""

import argparse
import contextlib
import fcntl
import functools
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict

# Network and shape.
CASES = {
    "efficientnet-b0 16 x 3 x 224 x 224": ("efficientnet-b0", [16, 3, 224, 224]),
    "efficientnet-b0 32 x 3 x 64 x 64": ("efficientnet-b0", [32, 3, 64, 64]),
    "resnet18 16 x 3 x 224 x 224": ("resnet18", [16, 3, 224, 224]),
    "resnet18-3d 2 x 1 x 48 x 64 x 64": ("resnet18-3d", [2, 1, 48, 64, 64]),
    "vit-base/16 8 x 3 x 224 x 224": ("vit-base/16", [8, 3, 224, 224]),
    "unet 16 x 3 x 32 x 32": ("unet", [16, 3, 32, 32]),  # that of configs/discs.toml
    "unet 4 x 3 x 224 x 224": ("unet", [4, 3, 224, 224]),
}
# At most this many times the best of PyTorch eager and BEST.
TARGETS = {"train": 0.6, "inference": 0.8, "memory beyond the start": 0.6}
BEST = ["channels-last", "compile"]
COLUMNS = ["channels-last", "compile", "memory-kept"]
# What `memory::keep_free_memory` of the crate asks of glibc's malloc.
MEMORY_KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_TOP_PAD_": str(64 << 20), "MALLOC_ARENA_MAX": "1"}
QUIET = 0.03  # share of the processors that other processes may take
WARM = 0.3  # seconds for which a request is repeated before the answer that counts; of a longer one the first counts
disturbances = []  # what they took at most, in each kind of round
PARTS = ["forward", "backward", "update"]


def network(name, channels):
    import torch
    from torchvision.models import efficientnet_b0, resnet18
    from torchvision.models.video import r3d_18

    torch.manual_seed(1)
    if name == "unet":
        from references import Unet

        net = Unet(miniature=False)
        net.encoder.fc = torch.nn.Identity()
    elif name == "efficientnet-b0":
        net = efficientnet_b0()
        net.classifier = torch.nn.Identity()
    elif name == "resnet18":
        net = resnet18()
        net.fc = torch.nn.Identity()
    elif name == "resnet18-3d":
        net = r3d_18()
        net.fc = torch.nn.Identity()
        net.stem[0] = torch.nn.Conv3d(channels, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False)
    else:
        from timm.models.vision_transformer import VisionTransformer

        norm = functools.partial(torch.nn.LayerNorm, eps=1e-6)
        sizes = {"vit-base/16": (768, 12, 12), "vit-large/16": (1024, 24, 16)}
        width, depth, heads = sizes[name]
        net = VisionTransformer(embed_dim=width, depth=depth, num_heads=heads, norm_layer=norm, num_classes=0,
                                global_pool="avg", drop_path_rate=0.2)
    return net.train()


def wave(shape):
    import torch

    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float32) * 0.37).reshape(shape)


class PyTorch:
    """Answers the requests of examples/step_time.rs; `kind` is eager or one of COLUMNS."""

    def __init__(self, threads, kind):
        import torch

        torch.set_num_threads(threads)
        self.kind = kind
        self.net = self.run = self.optimiser = None

    def laid_out(self, of_axes, x):
        import torch

        if self.kind != "channels-last":
            return x
        return x.to(memory_format=torch.channels_last if of_axes == 4 else torch.channels_last_3d)

    def answer(self, line):
        import torch
        from torch import nn

        request, _, rest = line.strip().partition(" ")
        if request == "network":
            name, channels = rest.split()
            self.net = self.laid_out(5 if name.endswith("-3d") else 4, network(name, int(channels)))
            self.run = torch.compile(self.net) if self.kind == "compile" else self.net
            self.optimiser = torch.optim.AdamW(self.net.parameters(), lr=1e-4)
            return [sum(p.numel() for p in self.net.parameters())]
        if request in ("step", "infer"):
            x = wave([int(n) for n in rest.split()])
            x = self.laid_out(x.dim(), x)
            self.net.train(request == "step")
        if request == "step":
            clock = [time.perf_counter()]
            loss = self.run(x).square().mean()
            loss.item()
            clock.append(time.perf_counter())
            loss.backward()
            clock.append(time.perf_counter())
            self.optimiser.step()
            self.optimiser.zero_grad()
            clock.append(time.perf_counter())
            return [b - a for a, b in zip(clock, clock[1:])]
        if request == "infer":
            with torch.no_grad():
                clock = time.perf_counter()
                self.run(x)
                return [time.perf_counter() - clock]
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


class Failed(Exception):
    """What a side says that cannot answer."""


class Worker:
    """A process that answers requests."""

    def __init__(self, command, threads, **environment):
        threads = {"RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **threads, **environment})
        self.failure = None

    def ask(self, request):
        if self.failure:
            raise Failed(self.failure)
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("failed: "):
            self.failure = answer.removeprefix("failed: ") or f"{self.process.args[0]} ended at {request!r}"
            raise Failed(self.failure)
        return [float(number) for number in answer.split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def alone(lock):
    """Holds an exclusive lock on the file `lock`, if one is named."""
    if not lock:
        yield
        return
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def alternate(workers, request, rounds, args):
    """Medians of each number of the answers, by worker, None for one that failed; the first round warms up and is left out.

    Of more answers than rounds the least disturbed count.
    """
    answers = {name: [] for name in workers}
    lasting = dict.fromkeys(workers, math.inf)

    def ask_all():
        for name, worker in workers.items():
            with contextlib.suppress(Failed):
                for _ in range(int(WARM / lasting[name])):
                    worker.ask(request)
                before = [busy(), busy(worker.process.pid), time.perf_counter()]
                answer = worker.ask(request)
                after = [busy(), busy(worker.process.pid), time.perf_counter()]
                of_all, own, wall = (b - a for a, b in zip(before, after))
                lasting[name] = wall
                # The clocks of the kernel tick every 10 ms.
                answers[name].append((max(0.0, of_all - own - 0.02) / (wall * os.cpu_count()), answer))

    def of_able():
        return {name: kept for name, kept in answers.items() if not workers[name].failure}

    def quiet():
        return all(sum(share < QUIET for share, _ in kept) >= rounds for kept in of_able().values())

    ask_all()
    answers = {name: [] for name in workers}
    patience = time.monotonic() + args.patience
    while True:
        with alone(args.lock):
            for _ in range(rounds):
                ask_all()
        if quiet() or time.monotonic() > patience:
            break
    least = {name: sorted(kept, key=lambda item: item[0])[:rounds] for name, kept in of_able().items()}
    disturbances.append(max(kept[-1][0] for kept in least.values()))
    medians = lambda kept: [statistics.median(numbers) for numbers in zip(*(answer for _, answer in kept))]
    return {name: medians(least[name]) if name in least else None for name in workers}


def busy(process=None):
    """Seconds for which the processors have worked, on anything or on one process and its threads."""
    if process is None:
        times = open("/proc/stat").readline().split()[1:9]
        return sum(int(n) for k, n in enumerate(times) if k not in (3, 4)) / os.sysconf("SC_CLK_TCK")
    times = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def operations(name, shape):
    """Requests for the operations of the network, with how often each occurs."""
    import torch
    from torch import nn

    net, found = network(name, shape[1]), Counter()
    words = lambda numbers: " ".join(str(n) for n in numbers)

    def seen(module, inputs, _output):
        sizes = words(inputs[0].shape)
        if isinstance(module, (nn.Conv2d, nn.Conv3d)):
            small = "1 x 1 convolution" if set(module.kernel_size) == {1} else "convolution"
            kind = "depthwise convolution" if module.groups > 1 else small
            parts = [sizes, module.out_channels, *map(words, (module.kernel_size, module.stride, module.padding)), module.groups]
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


def report(case, args):
    """Prints the tables of a case and returns its lines of the summary: what, numbers by worker, unit, target."""
    name, shape = CASES[case]
    earlier = len(disturbances)
    words = " ".join(str(n) for n in shape)
    ours, theirs = f"FairTTE ({args.device})", "PyTorch"

    def python(kind):
        environment = MEMORY_KEPT if kind == "memory-kept" else {}
        return Worker([sys.executable, __file__, "--worker", kind, "--threads", str(args.threads)], args.threads, **environment)

    workers = {ours: Worker([args.command, args.device], args.threads), theirs: python("eager")}
    if args.without_kernels:
        workers["without kernels"] = Worker([args.command, args.device], args.threads, FAIRTTE_KERNELS="off")
    workers |= {kind: python(kind) for kind in args.columns}
    at_start = {key: worker.ask("memory") for key, worker in workers.items()}
    for worker in workers.values():
        worker.ask(f"network {name} {shape[1]}")
    steps = alternate(workers, f"step {words}", args.rounds, args)
    held = {key: worker.ask("memory") if steps[key] else None for key, worker in workers.items()}
    inference = alternate(workers, f"infer {words}", args.rounds, args)
    both = {key: workers[key] for key in (ours, theirs)}
    by_kind = {} if args.summary_only else operation_times(name, shape, both, args)
    failures = {key: worker.failure for key, worker in workers.items() if worker.failure}
    for worker in workers.values():
        worker.end()
    for key in (ours, theirs):
        if key in failures:
            sys.exit(f"{case}: {key}: {failures[key]}")
    gibibytes = lambda by_worker: {key: number and number[0] / 2**30 for key, number in by_worker.items()}
    held, at_start = gibibytes(held), gibibytes(at_start)
    beyond = {key: held[key] and held[key] - at_start[key] for key in held}
    lines = [("train", {key: times and sum(times) for key, times in steps.items()}, "s"),
             ("inference", {key: times and times[0] for key, times in inference.items()}, "s"),
             ("memory", held, "GiB"),
             ("memory beyond the start", beyond, "GiB")]
    lines = [(*line, TARGETS.get(line[0])) for line in lines]
    parts = [(what, {key: times and times[n] for key, times in steps.items()}, "s", None) for n, what in enumerate(PARTS)]
    print(f"\n## {case}, {conditions(args, disturbances[earlier:])}\n")
    table([*parts, *lines], ours, theirs)
    for key, failure in failures.items():
        print(f"\n{key} failed: {failure}")
    if by_kind:
        print_operations(by_kind, steps[ours], steps[theirs], ours)
    return [(f"{case}: {what}" if n == 0 else what, *rest) for n, (what, *rest) in enumerate(lines)]


def conditions(args, shares):
    others = f"other processes took at most {max(shares):.0%} of the processors"
    return f"{args.threads} threads, medians of {args.rounds} rounds, {others}"


def table(lines, ours, theirs):
    columns = list(lines[0][1])
    print(f"| | {' | '.join(columns)} | ratio to {theirs} | to the best | target | met |\n|{'---|' * (len(columns) + 5)}")
    for what, numbers, unit, target in lines:
        cells = ["failed" if numbers[key] is None else f"{numbers[key]:.3f} {unit}" for key in columns]
        ratio = numbers[ours] / numbers[theirs]
        best = numbers[ours] / min(numbers[key] for key in columns if key in (theirs, *BEST) and numbers[key])
        met = "" if target is None else "yes" if best <= target else "**no**"
        print(f"| {what} | {' | '.join(cells)} | {ratio:.2f} | {best:.2f} | {'' if target is None else target} | {met} |", flush=True)


def operation_times(name, shape, workers, args):
    """Seconds of ours and theirs and the number of operations, by kind."""
    by_kind = defaultdict(lambda: [0.0, 0.0, 0])
    for (kind, request), count in operations(name, shape).items():
        times = alternate(workers, request, max(3, args.rounds // 2), args)
        for side, medians in enumerate(times.values()):
            by_kind[kind][side] += count * sum(medians or [math.nan])
        by_kind[kind][2] += count
    return by_kind


def print_operations(by_kind, ours, theirs, title):
    print(f"\n| operation, forward and backward | how many | {title} | share | PyTorch | share | ratio |")
    print(f"|{'---|' * 7}")
    totals = [sum(ours), sum(theirs)]
    rest = [totals[side] - [ours, theirs][side][2] - sum(times[side] for times in by_kind.values()) for side in (0, 1)]
    rows = [*sorted(by_kind.items(), key=lambda item: -item[1][0])]
    rows += [("AdamW", [ours[2], theirs[2], ""]), ("all else", [*rest, ""])]
    for kind, (a, b, count) in rows:
        ratio = f"{a / b:.1f}" if a > 0 and b > 0 else ""
        print(f"| {kind} | {count} | {a:.3f} s | {a / totals[0]:.0%} | {b:.3f} s | {b / totals[1]:.0%} | {ratio} |")


def processor():
    """The name of the processor, where Linux says it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")
    return "unknown processor"


def serve(side):
    """Answers requests from standard input; what a library prints meanwhile goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            print(*side.answer(line), file=answers, flush=True)
        except Exception as error:  # torch.compile raises whatever its compiler says
            print("failed:", " ".join(f"{type(error).__name__}: {error}".split())[:400], file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="flex")
    parser.add_argument("--only", nargs="*", help="words of which a case must hold one")
    parser.add_argument("--columns", nargs="*", choices=COLUMNS, default=COLUMNS, help="further ways to run PyTorch")
    parser.add_argument("--summary-only", action="store_true", help="no tables by operation")
    parser.add_argument("--without-kernels", action="store_true", help="a further column: ours with FAIRTTE_KERNELS=off")
    parser.add_argument("--patience", type=float, default=0, metavar="S", help="seconds to wait for quiet rounds")
    parser.add_argument("--lock", metavar="FILE", help="hold an exclusive lock on FILE in the counted rounds")
    parser.add_argument("--worker", metavar="KIND", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return serve(PyTorch(args.threads, args.worker))
    if not args.command:
        parser.error("name the program step_time that cargo built")
    import torch
    import torchvision

    versions = f"torch {torch.__version__}, torchvision {torchvision.__version__}"
    isa = os.environ.get("FAIRTTE_ISA", "as found")
    print(f"{versions}, {torch.backends.cpu.get_cpu_capability()}, {args.threads} threads, {processor()}, our instruction set {isa}")
    summary = []
    for case in CASES:
        if not args.only or any(word in case for word in args.only):
            summary += report(case, args)
    if summary:
        print(f"\n## Summary, {conditions(args, disturbances)}\n")
        table(summary, f"FairTTE ({args.device})", "PyTorch")


if __name__ == "__main__":
    main()
