"""Mutation test of a folder: changes its code in many small ways and says which changes no test notices.

    python mutants.py CRATE FOLDER .. [--with CRATE ..] [--lib] [--tests NAME[/PART] ..] [--longest SECONDS] [--only TEXT ..]
                      [--sample N] [--seed N] [--resume FILE] [--work DIR] [--list]

For instance `mutants.py fairtte-metrics rank scores` changes `fairtte-metrics/src/rank` and `src/scores` and runs the unit
and integration tests of fairtte-metrics, not its documentation tests. `--with` adds the tests of further crates, `--lib`
keeps the unit tests only, `--tests` these and those of `tests/NAME.rs` or `tests/NAME/main.rs`, with `NAME/PART` only the tests
whose names contain PART, and `--longest` leaves out tests that take longer.
`--only` keeps the mutants whose lines contain one of the texts, `--sample` that many per folder, drawn with `--seed`. With
`--with fairtte-tests` the program is built with the switches too: the end-to-end tests run it. Needs Python 3.11 with tree-sitter and tree-sitter-rust. CONTRIBUTING.md says how to read
what it prints.

All mutants of a folder are compiled at once, each behind a switch (sites.py), in a copy of the tracked and new files below
`--work` (default: `mutants` in the target folder), with the crate at `opt-level = 1`, which halves the build; the checkout
is not touched. A mutant that does not compile is taken out and counted as unviable. Then every test runs once alone and
notes which switches it reaches, and how long it takes; a mutant is given the tests that reach it, the quickest and most
successful first, until one fails. Where a test runs longer than 20 s and ten times as long as before, the mutant counts as
caught by time. Results stay in `--work` as JSON lines, in random order: a run that was stopped has done a fair sample, and
`--resume` continues it.
"""

import argparse
import collections
import hashlib
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
from sites import Source  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
QUIET = {"PROPTEST_MAX_SHRINK_ITERS": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true", "PROPTEST_RNG_SEED": "1",
         "RUST_BACKTRACE": "0"}
MEMORY = 12 << 30


def copy_tree(tree, rendered, crates, options):
    """The files of the checkout but those that are written with switches; what is the same keeps its time."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    for old in [path for path in tree.rglob("*") if path.is_file() and str(path.relative_to(tree)) not in names]:
        old.unlink()
    for name in names - rendered:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        content = (ROOT / name).read_text() if name.endswith("Cargo.toml") else (ROOT / name).read_bytes()
        if isinstance(content, str):
            is_tested = name.split("/")[0] in ["Cargo.toml", *crates]
            content = content if is_tested else without_tests(content)
            if is_tested and name != "Cargo.toml":
                content = with_tests(content, options, asked_tests((ROOT / name).parent, options.tests))
            content = content.encode()
        write(tree / name, content)


def asked_tests(crate, asked):
    """Name -> path of the integration tests of a crate that were asked for."""
    names = {test.split("/")[0] for test in asked}
    paths = [(name, path) for name in sorted(names) for path in (f"tests/{name}.rs", f"tests/{name}/main.rs")]
    return {name: path for name, path in paths if crate.joinpath(path).is_file()}


def with_tests(manifest, options, tests):
    """The crate whose tests run: all, or `tests` of those that were asked for."""
    if options.lib or options.tests:
        manifest = without_integration_tests(manifest)
    return manifest + "".join(f'\n[[test]]\nname = "{name}"\npath = "{path}"\n' for name, path in tests.items())


def without_integration_tests(manifest):
    return manifest.replace("[package]\n", "[package]\nautotests = false\nautoexamples = false\nautobenches = false\n")


def without_tests(manifest):
    """A crate whose tests are not wanted: `cargo test --workspace` builds it for the others only.

    With `-p` alone cargo would choose other features of the dependencies and compile most of them again.
    """
    manifest = without_integration_tests(manifest)
    manifest += "" if "[lib]\n" in manifest else "\n[lib]\n"
    return re.sub(r"^(\[lib\]|\[\[bin\]\]|\[\[example\]\])\n", r"\1\ntest = false\n", manifest, flags=re.M)


def write(path, content):
    """Writes only what differs, so that its time stays."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def sources_of(crate, folders):
    """folder -> sources of its files, in order."""
    found = {}
    for folder in folders:
        top = ROOT / crate / "src" / folder
        paths = sorted(top.rglob("*.rs")) if top.is_dir() else [top.with_suffix(".rs")]
        names = [str(path.relative_to(ROOT)) for path in paths if path.name != "tests.rs"]
        found[folder] = [Source(name, (ROOT / name).read_text()) for name in names]
    return found


def write_mutants(tree, crate, sources, active):
    for source in sources:
        (tree / source.name).parent.mkdir(parents=True, exist_ok=True)
        write(tree / source.name, source.render(active).encode())
    total = 1 + sum(len(source.mutants) for source in sources)
    switch = (Path(__file__).parent / "switch.rs").read_text().replace("N_MUTANTS", str(total))
    write(tree / crate / "src/mutant_switch.rs", switch.encode())
    library = (ROOT / crate / "src/lib.rs").read_text()
    library = re.sub(r"^(pub )?mod ", r"mod mutant_switch;\n\g<0>", library, count=1, flags=re.M)
    write(tree / crate / "src/lib.rs", library.encode())


def build_tests(tree, crate, crates):
    """Exit code, the compiler's messages and its errors; end-to-end tests call the program, which is built first."""
    builds = [["build", "--bins"]] if "tests" in crates else []
    for command in [*builds, ["test", "--no-run", "--tests"]]:
        options = ["--workspace", "--message-format=json", "--config", f"profile.dev.package.{crate}.opt-level=1"]
        done = subprocess.run(["cargo", *command, *options], cwd=tree, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0:
            break
    return done.returncode, messages, done.stderr


def blamed(tree, messages):
    """Numbers of the mutants in which the compiler found errors, with the errors that lie in none."""
    numbers, others, marks = set(), [], {}
    for message in messages:
        inner = message.get("message") or {}
        if message.get("reason") != "compiler-message" or inner.get("level") != "error" or not inner.get("spans"):
            continue
        found = set()
        spans = sorted(inner["spans"], key=lambda span: not span["is_primary"])
        for span in [place for span in spans for place in with_callers(span)]:
            path = tree / span["file_name"]
            if path not in marks:
                marks[path] = marks_of(path.read_bytes()) if path.is_file() else []
            found = innermost(marks[path], span["byte_start"], span["byte_end"])
            if found:
                break
        numbers |= found
        if not found:
            others.append(inner.get("rendered", ""))
    return numbers, others


def with_callers(span):
    """A place in a macro and where that is called."""
    while span:
        yield span
        span = (span.get("expansion") or {}).get("span")


def marks_of(content):
    """(begin, end, number, is branch) of every mutant in a written file; of a site with its first number."""
    marks, open_marks = [], {}
    for match in re.finditer(rb"/\*(<|\[)(\d+)\*/|/\*(\d+)(>|\])\*/", content):
        if match[1]:
            open_marks[match[1] == b"<", int(match[2])] = match.start()
        else:
            key = (match[4] == b">", int(match[3]))
            marks.append((open_marks.pop(key), match.end(), key[1], key[0]))
    return marks


def innermost(marks, begin, end):
    within = [mark for mark in marks if mark[0] <= begin and end <= mark[1]]
    if not within:
        within = [mark for mark in marks if mark[3] and begin <= mark[0] and mark[1] <= end]
        return {mark[2] for mark in within}
    first = min(within, key=lambda mark: mark[1] - mark[0])
    return {first[2]}


def compile_all(tree, crate, crates, sources, work):
    """Takes mutants out until the crate compiles; returns those left, those taken out, and the test binaries."""
    by_number = {mutant.number: mutant for source in sources for mutant in source.mutants}
    hashes = {source.name: hashlib.sha256(source.content).hexdigest() for source in sources}
    memory = work / "unviable.json"
    known = json.loads(memory.read_text()) if memory.exists() else {}
    unviable = {n for n, mutant in by_number.items() if known.get(mutant.key) == hashes[mutant.file]}
    active = set(by_number) - unviable
    for attempt in range(60):
        write_mutants(tree, crate, sources, active)
        code, messages, errors = build_tests(tree, crate, crates)
        if code == 0:
            built = [m for m in messages if m.get("executable") and m["profile"]["test"]]
            return active, unviable, [(m["executable"], str(Path(m["manifest_path"]).parent)) for m in built]
        numbers, others = blamed(tree, messages)
        print(f"  build {attempt + 1}: {len(numbers)} mutants do not compile", flush=True)
        if not numbers & active:
            sys.exit("the compiler blames no mutant:\n" + "\n".join(others)[:4000] + errors[-2000:])
        active -= numbers
        unviable |= numbers
        known |= {by_number[n].key: hashes[by_number[n].file] for n in numbers}
        memory.write_text(json.dumps(known))
    sys.exit("no build after 60 attempts")


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setsid()


def run(binary, names, environment, seconds):
    """Exit code of tests in one process (None: it took too long), and its time."""
    executable, folder = binary
    environment = os.environ | QUIET | {"CARGO_MANIFEST_DIR": folder} | environment
    begin = time.monotonic()
    process = subprocess.Popen([executable, "--exact", *names], cwd=folder, env=environment, preexec_fn=limit,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        code = None
    return code, time.monotonic() - begin


def is_asked(executable, test, asked):
    """Whether `NAME/PART` leaves this test of a binary in: it is not from NAME, or its name contains a PART."""
    parts = [part for name, _, part in (wanted.partition("/") for wanted in asked) if Path(executable).name.startswith(f"{name}-")]
    return not parts or any(part in test for part in parts)


def trace_tests(binaries, work, longest, asked):
    """(binary, test) -> (seconds, switches reached); tests that fail unchanged or take too long are named and left out."""
    traced, path = {}, work / "trace"
    for binary in binaries:
        listed = subprocess.run([binary[0], "--list", "--format", "terse"], cwd=binary[1], capture_output=True, text=True, check=True)
        names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
        for name in (name for name in names if is_asked(binary[0], name, asked)):
            path.unlink(missing_ok=True)
            code, seconds = run(binary, [name], {"FAIRTTE_MUTANT_TRACE": str(path)}, longest)
            if code != 0:
                why = f"takes more than {longest} s" if code is None else "fails unchanged"
                print(f"  left out, it {why}: {name} of {Path(binary[0]).name}", flush=True)
                continue
            reached = {int(line) for line in path.read_text().split()} if path.exists() else set()
            if reached:
                traced[binary, name] = (seconds, reached)
    return traced


def judge(number, tests, kills):
    """Runs the tests that reach a mutant in growing portions until one fails; says how it ended, and by what."""
    if not tests:
        return "missed", "no test reaches it"
    order = sorted(tests, key=lambda test: tests[test] / (1 + kills[test]))
    n, size = 0, 1
    while n < len(order):
        portion = order[n : n + size]
        by_binary = collections.defaultdict(list)
        for test in portion:
            by_binary[test[0]].append(test[1])
        for binary, names in by_binary.items():
            expected = sum(tests[binary, name] for name in names)
            code, _ = run(binary, names, {"FAIRTTE_MUTANT": str(number)}, 20 + 10 * expected)
            if code != 0:
                for name in names:
                    kills[binary, name] += 1 / len(names)
                return "timeout" if code is None else "caught", " ".join(names[:2])
        n, size = n + size, min(2 * size, 64)
    return "missed", f"{len(order)} tests reach it"


def interval(n_caught, n):
    """Clopper-Pearson, 95 %, by bisection of the binomial distribution."""
    def tail(p, k):  # P(X >= k)
        return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))

    def solve(rises, target):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rises(middle) < target else (low, middle)
        return low

    lower = 0.0 if n_caught == 0 else solve(lambda p: tail(p, n_caught), 0.025)
    upper = 1.0 if n_caught == n else solve(lambda p: tail(p, n_caught + 1), 0.975)
    return lower, upper


def table(found, results, unviable, sampled):
    print(f"\n{'folder':<36}{'mutants':>8}{'unviable':>9}{'run':>6}{'caught':>7}{'time':>6}{'missed':>7}{'caught %':>10}")
    for folder, sources in found.items():
        mutants = [mutant for source in sources for mutant in source.mutants]
        for genres, title in ((None, folder), (("method", "statement"), "  of these method, statement")):
            chosen = [m for m in mutants if genres is None or m.genre in genres]
            ends = collections.Counter(results[m.number] for m in chosen if m.number in results)
            n, n_caught = sum(ends.values()), ends["caught"] + ends["timeout"]
            share = f"{100 * n_caught / n:.1f}" if n else "-"
            if sampled and n:
                share += " [{:.1f}, {:.1f}]".format(*(100 * bound for bound in interval(n_caught, n)))
            n_unviable = sum(m.number in unviable for m in chosen)
            print(f"{title:<36}{len(chosen):>8}{n_unviable:>9}{n:>6}{ends['caught']:>7}{ends['timeout']:>6}{ends['missed']:>7}{share:>10}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crate")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--with", dest="further", nargs="*", default=[], metavar="CRATE")
    parser.add_argument("--lib", action="store_true", help="only the unit tests, which are built sooner")
    parser.add_argument("--tests", nargs="*", default=[], metavar="NAME[/PART]")
    parser.add_argument("--longest", type=float, default=600, metavar="SECONDS")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", type=Path, metavar="FILE", help="results that count as done")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--work", type=Path, default=Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants")
    return parser.parse_args()


def chosen_mutants(found, options):
    chosen = []
    for sources in found.values():
        mutants = [mutant for source in sources for mutant in source.mutants]
        if options.only:
            mutants = [mutant for mutant in mutants if any(part in mutant.key for part in options.only)]
        chosen.append(mutants)
    return chosen


def run_mutants(picked, done, traced, results, log):
    kills = collections.Counter()
    for mutant in picked:
        if mutant.key in done:
            results[mutant.number] = done[mutant.key]["end"]
            print(json.dumps(done[mutant.key]), file=log)
            continue
        tests = {test: seconds for test, (seconds, reached) in traced.items() if mutant.number in reached}
        started = time.monotonic()
        end, why = judge(mutant.number, tests, kills)
        results[mutant.number] = end
        line = {"mutant": mutant.key, "genre": mutant.genre, "end": end, "by": why, "s": round(time.monotonic() - started, 2)}
        print(json.dumps(line), file=log, flush=True)
        if end == "missed":
            print(f"MISSED {mutant.key}  ({why})", flush=True)


def main():
    options = arguments()
    found = sources_of(options.crate, options.folders)
    sources = [source for of_folder in found.values() for source in of_folder]
    mutants = [mutant for source in sources for mutant in source.mutants]
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    chosen = chosen_mutants(found, options)
    if options.list:
        print("\n".join(mutant.key for of_folder in chosen for mutant in of_folder))
        return
    tree = options.work / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    crates = [options.crate, *("tests" if crate == "fairtte-tests" else crate for crate in options.further)]
    copy_tree(tree, {source.name for source in sources} | {f"{options.crate}/src/lib.rs"}, crates, options)
    active, unviable, binaries = compile_all(tree, options.crate, crates, sources, options.work)
    binaries = [binary for binary in binaries if Path(binary[1]).name in crates]
    print(f"built {len(active)} mutants in {time.monotonic() - begin:.0f} s", flush=True)
    begin = time.monotonic()
    traced = trace_tests(binaries, options.work, options.longest, options.tests)
    print(f"traced {len(traced)} tests in {time.monotonic() - begin:.0f} s", flush=True)
    draw = random.Random(options.seed)
    picked = []
    for of_folder in chosen:
        viable = [mutant for mutant in of_folder if mutant.number in active]
        picked += viable if options.sample is None or options.sample >= len(viable) else draw.sample(viable, options.sample)
    draw.shuffle(picked)  # what is done when the run is stopped is then a fair sample
    begin, results = time.monotonic(), {}
    lines = [json.loads(line) for line in options.resume.read_text().splitlines()] if options.resume else []
    done = {line["mutant"]: line for line in lines if line["end"] != "unviable"}
    with (options.work / f"{options.crate}-{'-'.join(options.folders)}.jsonl".replace("/", "-")).open("w") as log:
        try:
            run_mutants(picked, done, traced, results, log)
        except KeyboardInterrupt:
            print("stopped: what follows is a random sample", flush=True)
        for mutant in mutants:
            if mutant.number in unviable:
                print(json.dumps({"mutant": mutant.key, "genre": mutant.genre, "end": "unviable"}), file=log)
    seconds = time.monotonic() - begin
    table(found, results, unviable, len(results) < len(active) and not options.only)
    print(f"\n{len(results)} mutants in {seconds:.0f} s, {seconds / max(len(results), 1):.2f} s each")


if __name__ == "__main__":
    sys.exit(main())
