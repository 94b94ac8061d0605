"""Worked training steps of every strategy, as files that a test of fairtte-fairness reads (tests/fairness/steps/mod.rs).

    python steps.py [OUT] [--only NAME ..]     # OUT defaults to ../tests/golden/steps
    python steps.py --of-a-class [--only NAME ..]     # the head `binary` on a table of classes, ../tests/golden/steps/class

Needs torch (2.9.0 was used; on the CPU). OUT/draws.json holds what FairTTE draws from its own random streams and no definition
fixes (ODR's noise, the halves of chi-square DRO, the order of rows in SWAD's pass for batch norm). The test writes it:

    FAIRTTE_RECORD_DRAWS=fairtte-fairness/tests/golden/steps/draws.json cargo test -p fairtte-fairness --test fairness steps::draws

Written are OUT/table.json, the samples that all cases share, and OUT/NAME.json for every strategy NAME: cases, each with its
settings, the head, the formula of every initial weight (see below) and a list of events in order:

step       rows of the batch, unless the steps are those of an earlier case, the report of the step (task loss, objective, norm of the gradient, absent groups, terms), and for
           every tensor of every network how far it is from its initial value by then: `norm` (L2), `probe` (sum of
           v(77, i) times entry i), and entries k * stride; and three times `rounding`, by how much runs in float32 differ at
           most: of all entries, of probe, of norm. A tensor at its initial value has the entry null; a
           network that this step left alone has the entry "unmoved".
validate   before_validation on both parts, and the loss that after_validation receives, if any
finish     the end of the training
predict    rows, and their survival curves at the cut points, with the rounding of float32
log_terms  what the method logs

All numbers are float64. Their rounding is the largest difference of five runs of the same definitions in float32, four of them
with every input moved by one unit in its last place: a single run may be right by luck. They are made by definitions in
setting.py, objectives.py, methods.py, adversaries.py and recalibration.py, which were written from the documentation of the
methods, not from FairTTE's step code, on PyTorch's autograd and AdamW. Weight i of a tensor with `seed`,
`scale` and `shift` is shift + scale * v(seed, i), v as in fairtte-models/parity/gradients.py: float32 holds it exactly.
"""

import argparse
import datetime
import json
import math
import platform
import sys
from pathlib import Path

import torch

from adversaries import Cfair, Laftr, Lnl, Odr
from methods import ControlledAttribute, DomainIndependent, Method, Sam, Setting, Swad
from objectives import DroChiSquare, End, FairRepresentation, Febs, GroupDro, SubgroupRebalancing
from recalibration import Recalibration
from setting import ClassTable, Table, v

torch.set_num_threads(1)
OF_A_CLASS = "--of-a-class" in sys.argv
TABLE = ClassTable() if OF_A_CLASS else Table()
SEED, RATE, DECAY, CLIP = 5, 0.02, 0.1, 1.0
RATES = {"controlled-attribute": 0.1}  # large: the best epoch must not be the last one
PREDICTED = TABLE.validation[:8] + TABLE.train[:6]
ENTRIES = 6
ROUNDED_RUNS = 5
HEADS = ["binary"] if OF_A_CLASS else ["nnet-survival", "cox"]


def pick(counts, first):
    """Training rows from `first` on, so many of each group (None: without one), in the order of the table."""
    counts, rows = dict(counts), []
    for i in TABLE.train[first:] + TABLE.train[:first]:
        g = TABLE.group[i]
        if counts.get(g, 0) > 0:
            counts[g] -= 1
            rows.append(i)
    return rows


BATCHES = [
    pick({0: 5, 1: 4, 2: 3, None: 2}, 3),  # every group
    pick({0: 6, 1: 4, None: 2}, 37),  # group c is absent
    pick({0: 7, None: 1}, 64),  # nothing to compare
    pick({0: 4, 1: 5, 2: 1, None: 2}, 101),  # one sample of group c
]
OF_GROUPS = [[pick({g: n}, 20 * k + 7 * g) for g, n in enumerate([8, 7, 6])] for k in range(6)]


def steps(batches, first=0):
    return [("step", rows, first + k) for k, rows in enumerate(batches)]


PLAIN = steps(BATCHES) + [("validate", None), ("predict", PREDICTED)]
CURVES = [("untold",) + event[1:] if event[0] == "step" else event for event in PLAIN]  # steps as in an earlier case


def swad_events():
    a, b, c, d = BATCHES
    # Segment 1: 2.0. The valley: segments 2 (1.0, two iterations) and 3 (1.1, one). 4 and 5 lie above the threshold.
    plan = [([a, b], 2.0), ([d, c], 1.0), ([a], 1.1), ([b, d], 1.9), ([a, d], 2.5)]
    events, k = [], 0
    for rows, loss in plan:
        events += steps(rows, k) + [("validate", loss)]
        k += len(rows)
    return events + [("log_terms",), ("finish",), ("predict", PREDICTED), ("weights",)]


def csa_events():
    events = []
    for k, of_groups in enumerate(OF_GROUPS):
        events += steps(of_groups, 3 * k) + [("validate", None)]
    return events + [("log_terms",), ("predict", PREDICTED), ("finish",), ("predict", PREDICTED)]


ENDED = CURVES[:-1] + [("finish",), ("predict", PREDICTED)]
STRATUM = {"kind": "status-at-horizon", "bins": 4}


def cases():
    """(strategy, name of the case, its settings, how it is made, events, heads)."""
    yield "erm", "plain", {}, lambda s: Method(s), PLAIN, HEADS
    for by, mode in [("group", "resample"), ("event", "resample"), ("group-x-event", "resample"),
                     ("group-x-event", "oversample"), ("group", "reweigh")]:
        make = lambda s, by=by, mode=mode: Method(s, SubgroupRebalancing(by, mode, TABLE))
        weighs = mode == "reweigh"
        yield ("subgroup-rebalancing", f"{mode} by {by}", {"by": by, "mode": mode}, make, PLAIN if weighs else CURVES,
               HEADS if weighs or (by, mode) == ("group", "resample") else HEADS[:1])
    for eta, c, absent, balanced in [(0.8, 3.0, "unit", True), (0.8, 3.0, "hold", False)]:
        config = {"eta": eta, "adjustment": c, "absent": absent, "balanced-sampler": balanced}
        make = lambda s, o=(eta, c, absent, balanced): Method(s, GroupDro(*o, TABLE))
        yield "group-dro", absent, config, make, PLAIN, HEADS
    for inference in ["mean-logits", "mean-survival", "share-weighted", "share-weighted-logits", "own-group"]:
        config = {"inference": inference, "missing-attribute": "average"}
        make = lambda s, inference=inference: DomainIndependent(s, inference)
        yield "domain-independent", inference, config, make, PLAIN if inference == "mean-logits" else CURVES, HEADS
    config = {"min-events": 10, "small-group": "refuse"}
    yield "controlled-attribute", "best epoch of every group", config, lambda s: ControlledAttribute(s), csa_events(), HEADS
    yield ("sam", "sam", {"adaptive": False, "rho": 0.3, "eta": 0.01}, lambda s: Sam(s, False, 0.3, 0.0), PLAIN, HEADS)
    yield ("sam", "asam", {"adaptive": True, "rho": 0.4, "eta": 0.02}, lambda s: Sam(s, True, 0.4, 0.02), PLAIN, HEADS)
    config = {"n-converge": 2, "n-tolerance": 2, "tolerance-ratio": 0.2, "interval": 0, "criterion": "nll"}
    yield "swad", "valley of two segments", config, lambda s: Swad(s, 2, 2, 0.2), swad_events(), HEADS
    for name, method, config in [
        ("oe", {"method": "oe", "prior": 2.0}, {}),
        ("intercept by interval", {"method": "hazard-intercept", "ridge": 0.5}, {}),
        ("shared intercept", {"method": "hazard-intercept", "ridge": 0.5, "shared": True}, {}),
        ("quantile", {"method": "quantile"}, {"min-events": 2}),
    ]:
        if OF_A_CLASS:
            break  # it has maps of its own: class_recalibration.py
        make = lambda s, o=method: Recalibration(s, **o)
        yield "recalibration", name, method | config | {"missing-attribute": "average"}, make, ENDED, HEADS
    criteria = [("eqodd", 1.5, 2), ("dp", 0.7, 1), ("eqopp1", 1.0, 1)] + [("eqopp0", 0.8, 1)] * OF_A_CLASS
    for mode, gamma, aud_steps in criteria:
        config = {"mode": mode, "gamma": gamma, "aud-steps": aud_steps, "adversary-learning-rate": 0.03}
        config |= {} if mode == "dp" else {"stratum": STRATUM}
        make = lambda s, o=(mode, gamma, aud_steps): Laftr(s, *o, 0.03)
        yield "laftr", mode, config, make, PLAIN, HEADS if mode == "eqodd" else HEADS[:1]
    for mode, scaling, weights in [("cfair", "reversal", "batch"), ("cfair-eo", "both", "batch"),
                                   ("cfair", "reversal", "training")]:
        config = {"mode": mode, "lambda": 0.6, "scaling": scaling, "weights": weights, "stratum": STRATUM}
        make = lambda s, o=(mode, 0.6, scaling, weights): Cfair(s, *o)
        yield "cfair", f"{mode}, {scaling}, {weights}", config, make, PLAIN, HEADS if weights == "batch" else HEADS[:1]
    for weight, mu in [(0.8, 0.5), (0.8, 0.0)]:
        config = {"lambda": weight, "mu": mu, "predictor-learning-rate": 0.03}
        make = lambda s, o=(weight, mu): Lnl(s, *o, 0.03)
        yield "lnl", f"mu {mu}", config, make, PLAIN, HEADS if mu else HEADS[:1]
    config = {"lambda-entropy": 0.7, "lambda-orthogonality": 0.05, "gamma-entropy": 0.3, "gamma-orthogonality": 2.0,
              "schedule-epochs": 0.5, "code": 3, "classifier-learning-rate": 0.03}
    make = lambda s: Odr(s, (0.7, 0.05), (0.3, 2.0), 0.5, 3, 0.03)
    yield "odr", "scheduled weights", config, make, PLAIN, HEADS
    for kernels, estimator, conditional in [("domainbed", "biased", False), ("median-scaled", "unbiased", True),
                                            ("single", "biased", True)]:
        config = {"lambda": 2.0, "representation": "after-dropout", "kernels": kernels, "gamma": 0.5 if kernels == "single" else 1.0,
                  "estimator": estimator, "conditional": conditional, "stratum": STRATUM}
        make = lambda s, o=(2.0, kernels, 0.5, estimator, conditional): Method(s, FairRepresentation(*o))
        yield ("fair-representation", f"{kernels}, {estimator}", config, make, PLAIN,
               HEADS if kernels == "domainbed" else HEADS[:1])
    for disentangling in ["group-sum", "pair-sum"]:
        config = {"alpha": 0.9, "beta": 2.5, "disentangling": disentangling, "stratum": STRATUM}
        make = lambda s, o=disentangling: Method(s, End(0.9, 2.5, o))
        yield "end", disentangling, config, make, PLAIN, HEADS if disentangling == "group-sum" else HEADS[:1]
    yield "dro-chi-square", "alpha 0.6", {"alpha": 0.6}, lambda s: Method(s, DroChiSquare(0.6)), PLAIN, HEADS
    for gamma, decay in [(2.0, 0.0), (0.5, 0.6)]:
        make = lambda s, o=(gamma, decay): Method(s, Febs(*o))
        yield "febs", f"gamma {gamma}, decay {decay}", {"gamma": gamma, "decay": decay}, make, PLAIN, HEADS


def displacements(method):
    """By file and tensor: the tensor minus its initial value, in float64."""
    at = lambda net, name: (net[name].detach().double() - net.initial[name].double()).flatten().tolist()
    return {file: {name: at(net, name) for name in net.tensors} for file, net in method.modules.items()}


def summary(delta):
    stride = max(1, len(delta) // ENTRIES)
    probe = sum(v(77, i) * d for i, d in enumerate(delta))
    return delta[::stride][:ENTRIES], probe, math.sqrt(sum(d * d for d in delta))


def few(x):
    """Roundings are sizes: two digits do."""
    return float(f"{x:.2g}")


def compared(exact, runs, place):
    if not any(exact):
        assert not any(map(any, runs)), place
        return None
    entries, probe, norm = summary(exact)
    largest = max(abs(a - b) for run in runs for a, b in zip(exact, run))
    summaries = [summary(run) for run in runs]
    if largest > 1e-3 * max(map(abs, exact)):
        print(f"  {place}: runs in float32 are off by {largest:.2e} of {max(map(abs, exact)):.2e}")
    of_probe = max(abs(probe - other) for _, other, _ in summaries)
    of_norm = max(abs(norm - other) for _, _, other in summaries)
    return {"entries": entries, "probe": probe, "norm": norm, "rounding": [few(largest), few(of_probe), few(of_norm)]}


def run(make, head, events, draws, dtype, rate, jitter=0):
    """Everything that is seen of one training, event by event."""
    method = make(Setting(TABLE, head, dtype, rate, DECAY, CLIP, jitter))
    seen = []
    for event in events:
        kind, *arguments = event
        if kind in ("step", "untold"):
            rows, k = arguments
            of_step = {key: of_steps[k] for key, of_steps in draws["steps"].items()} if k < len(BATCHES) else {}
            seen.append((method.step(rows, of_step), displacements(method)))
        elif kind == "validate":
            method.validate(arguments[0])
            seen.append(None)
        elif kind == "finish":
            method.finish({"batch-norm rows": draws["batch-norm rows"]})
            seen.append(None)
        elif kind == "predict":
            seen.append(method.predict(arguments[0]).double().tolist())
        elif kind == "log_terms":
            seen.append(method.log_terms())
        elif kind == "weights":
            seen.append(displacements(method))
    return method, seen


def tensors(exact, runs, before, place):
    of_tensor = lambda file, name: compared(exact[file][name], [run[file][name] for run in runs], f"{place}, {file} {name}")
    return {file: "unmoved" if before and before[file] == of_file else {name: of_tensor(file, name) for name in of_file}
            for file, of_file in exact.items()}


def case(name, head, config, make, events, draws, rate):
    method, exact = run(make, head, events, draws, torch.float64, rate)
    rounded = [run(make, head, events, draws, torch.float32, rate, jitter)[1] for jitter in range(ROUNDED_RUNS)]
    written, before = [], None
    for event, a, runs in zip(events, exact, zip(*rounded)):
        kind = event[0]
        entry = {"event": kind}
        if kind == "untold":
            entry |= {"event": "step", "rows": event[1], "step": event[2]}
        elif kind == "step":
            report, deltas = a
            off = lambda number: few(max(abs(number(report) - number(other)) for other, _ in runs))
            rounding = {key: off(lambda r: r[key]) for key in ["task_loss", "objective", "gradient_norm"]}
            rounding |= {key: off(lambda r: r["terms"][key]) for key in report["terms"]}
            place = f"{name}, {head}, step {event[2]}"
            entry |= {"rows": event[1], "step": event[2], "report": report, "report_rounding": rounding,
                      "tensors": tensors(deltas, [other for _, other in runs], before, place)}
            before = deltas
        elif kind == "validate":
            entry["loss"] = event[1]
        elif kind == "predict":
            off = max(abs(s - t) for run in runs for x, y in zip(a, run) for s, t in zip(x, y))
            entry |= {"rows": event[1], "survival": a, "rounding": few(off)}
        elif kind == "log_terms":
            off = {key: few(max(abs(a[key] - run[key]) for run in runs)) for key in a}
            entry |= {"terms": a, "rounding": off}
        elif kind == "weights":
            entry["tensors"] = tensors(a, runs, None, name)
        written.append(entry)
    weights = {file: net.formulas for file, net in method.modules.items()}
    return {"name": name, "head": head, "settings": config, "sampling": method.sampling(), "weights": weights,
            "events": written}, method


def digits(value):
    """10 digits are more than float32 can tell."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: digits(entry) for key, entry in value.items()}
    return [digits(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).parent.parent / "tests/golden/steps")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--of-a-class", action="store_true")
    arguments = parser.parse_args()
    out = arguments.out / "class" if OF_A_CLASS else arguments.out
    out.mkdir(parents=True, exist_ok=True)
    provenance = {"script": "fairtte-fairness/parity/steps.py", "packages": f"Python {platform.python_version()}, "
                  f"torch {torch.__version__}, float64 on the CPU", "date": str(datetime.date.today())}
    (out / "table.json").write_text(json.dumps({"provenance": provenance, "batches": BATCHES} | TABLE.json()) + "\n")
    draws_file = arguments.out / "draws.json"  # the batches of both tables are the same
    if not draws_file.exists():
        sys.exit(f"{draws_file} is missing; the test writes it (see above)")
    draws = json.loads(draws_file.read_text())
    by_strategy = {}
    for strategy, name, config, make, events, heads in cases():
        if arguments.only and strategy not in arguments.only:
            continue
        for head in heads:
            written, method = case(f"{strategy}: {name}", head, config, make, events, draws,
                                   RATES.get(strategy, RATE))
            by_strategy.setdefault(strategy, []).append(written)
            norms = [e["report"]["gradient_norm"] for e in written["events"] if "report" in e]
            print(f"{strategy}: {name}, {head}: gradient norms {[round(n, 2) for n in norms]}")
            if strategy == "controlled-attribute":
                best = [nlls.index(min(nlls)) for nlls in method.nlls]
                print("  best validation of each group:", best)
                assert any(0 < epoch < len(OF_GROUPS) - 1 for epoch in best)
                assert all(sorted(nlls)[1] - min(nlls) > 1e-3 for nlls in method.nlls), method.nlls
    for strategy, of_strategy in by_strategy.items():
        settings = {"seed": SEED, "learning_rate": RATES.get(strategy, RATE), "weight_decay": DECAY, "gradient_clip": CLIP}
        content = {"provenance": provenance, "strategy": strategy} | settings | {"cases": of_strategy}
        lines = json.dumps(digits(content), separators=(",", ":"))
        lines = lines.replace('{"event"', '\n{"event"').replace('{"name"', '\n\n{"name"')
        (out / f"{strategy}.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
