"""Tables of docs/src/results/defaults.md from what the example `defaults` wrote (Python standard library only).

usage: python summary.py RESULTS.jsonl [..]

Means over the seeds of each setting. Changes are those of the mean over the test part relative to the mean of `erm` on the
same data and seeds.
"""

import collections
import json
import sys


def read(paths):
    """Data and attribute -> setting -> seed -> line."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path in paths:
        for text in open(path):
            line = json.loads(text)
            found[f"{line['data']} {line['attribute']}"][line["setting"]][line["seed"]] = line
    return found


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def groups(line, key):
    return [g[key] for g in line["measured"]["test"]["groups"].values() if g[key] is not None]


MEASURES = {
    "probe": lambda line: line["measured"]["probed"] and line["measured"]["probed"]["linear"],
    "MMD^2": lambda line: line["measured"]["probed"] and line["measured"]["probed"]["mmd2"],
    "loss": lambda line: line["measured"]["test"]["nll"],
    "worst loss": lambda line: max(groups(line, "nll")),
    "gap of losses": lambda line: max(groups(line, "nll")) - min(groups(line, "nll")),
    "gap of C^td": lambda line: max(groups(line, "c_td")) - min(groups(line, "c_td")),
    "flatness": lambda line: line["measured"]["sharpness"] and line["measured"]["sharpness"][1],
    "calibration": lambda line: mean(abs(value) for value in groups(line, "off")),
    "spread": lambda line: line["measured"]["spread"],
}


def changes(settings, name):
    """Percent of the mean of erm, C^td and AUC^td of the test part, over the seeds that both have."""
    seeds = sorted(set(settings[name]) & set(settings["erm"]))
    result = []
    for key in ("c_td", "auc_td"):
        it, base = (mean(settings[s][seed]["measured"]["test"][key] for seed in seeds) for s in (name, "erm"))
        result.append(100 * (it / base - 1))
    return len(seeds), result


def main():
    found = read(sys.argv[1:])
    for data, settings in found.items():
        print(f"\n### {data}\n")
        print("| setting | seeds | C^td | AUC^td | " + " | ".join(MEASURES) + " |")
        print("|---|---|---|---|" + "---|" * len(MEASURES))
        for name in settings:
            n, (c_td, auc_td) = changes(settings, name)
            cells = []
            for measure in MEASURES.values():
                value = mean(measure(line) for line in settings[name].values())
                cells.append("-" if value is None else f"{value:.3f}")
            print(f"| {name} | {n} | {c_td:+.1f} % | {auc_td:+.1f} % | " + " | ".join(cells) + " |")


main()
