"""Where computations run: threads, fork, Ctrl-C, panics."""

import _thread
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fairtte
from fairtte import _fairtte, estimators

EVENT = np.array([True, False, True, True])
TIME = np.array([1.0, 2.0, 3.0, 4.0])


def c(threads=None):
    return _fairtte.harrell(EVENT, TIME, -TIME, True, threads)


def test_harrell():
    assert c() == (1.0, 4, 0, 0, 0)


def in_child(queue):
    queue.put(c(2))


def test_a_forked_child_computes():
    assert c(2)[0] == 1.0
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=20)[0] == 1.0
    child.join(20)
    assert child.exitcode == 0


TABLES = """
import multiprocessing, sys
import fairtte.data

def read(queue=None):
    try:
        found = fairtte.data.table(sys.argv[1]).n
    except fairtte.DataError as error:
        found = str(error)
    if queue is not None:
        queue.put(found)
    return found

def in_child(context):
    queue = context.Queue()
    child = context.Process(target=read, args=(queue,))
    child.start()
    found = queue.get(timeout=30)
    child.join(30)
    return found

if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    print(in_child(fork))   # before the parent has read
    print(read())
    print(in_child(fork))
    print(read())
"""


def test_a_table_is_read_before_a_fork_or_in_the_child_but_not_in_both(tmp_path):
    table = tmp_path / "cohort.csv"
    table.write_text("time,event\n" + "".join(f"{k + 1},1\n" for k in range(5)))
    (tmp_path / "tables.py").write_text(TABLES)
    command = [sys.executable, str(tmp_path / "tables.py"), str(table)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stderr
    first, own, second, again = found.stdout.splitlines()
    assert (first, own, again) == ("5", "5", "5")
    # polars' threads are those of the parent; without this error the child would wait for them forever.
    assert "cohort.csv cannot be read: this process was forked from one that has read tables" in second


def test_what_a_parent_has_read_is_audited_in_a_forked_child(tmp_path):
    import fairtte.data

    table = tmp_path / "cohort.csv"
    table.write_text("time,event,sex\n" + "".join(f"{k + 1},1,{'FM'[k % 2]}\n" for k in range(40)))
    cohort = fairtte.data.table(table, attributes=["sex"])

    def work(queue):
        split = cohort.split(1, stratify=["sex"])
        queue.put((cohort.groups()["sex"][0], len(split.train), cohort.select([0]).n, fairtte.stats.friedman([[1.0, 2.0]]).degrees))

    queue = multiprocessing.get_context("fork").Queue()
    child = multiprocessing.get_context("fork").Process(target=work, args=(queue,))
    child.start()
    assert queue.get(timeout=30) == ("F", 24, 1, 1)
    child.join(30)
    assert child.exitcode == 0


def test_ctrl_c_ends_the_wait_within_a_second():
    threading.Timer(0.3, _thread.interrupt_main).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _fairtte.self_test(30.0)
    assert 0.2 < time.monotonic() - begin < 1.3


def test_other_threads_run_meanwhile():
    done = []
    thread = threading.Thread(target=lambda: done.append(_fairtte.self_test(0.5)))
    begin = time.monotonic()
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.01)
    assert turns > 10 and len(done) == 1 and time.monotonic() - begin < 5


def test_ctrl_c_ends_an_evaluation_of_minutes():
    rng = np.random.default_rng(0)
    times = np.linspace(0, 3, 40)
    hazard, time_ = np.exp(rng.normal(size=20_000)), rng.exponential(size=20_000)
    threading.Timer(1.0, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        fairtte.evaluate(np.exp(-np.outer(hazard, times)), times, time_, np.ones(20_000, bool), replicates=1_000_000)
    # The pool is free again: the abandoned computation has ended.
    begin = time.monotonic()
    assert c()[0] == 1.0
    assert time.monotonic() - begin < 10


def fit(model):
    rng = np.random.default_rng(0)
    time_ = rng.exponential(size=2_000)
    model.fit(rng.normal(size=(2_000, 20)), (time_, rng.random(2_000) < 0.8))


def bias(**settings):
    rng = np.random.default_rng(0)
    n = settings.pop("n", 2_000)
    groups, events = {"a": np.arange(n) % 2}, rng.random(n) < 0.8
    few = {"permutations": 1, "replicates": 0} | settings
    fairtte.bias_sources(rng.normal(size=(n, 8)), rng.exponential(size=n), events, groups=groups, threads=1, **few)


LONG = {
    "forest": lambda: fit(estimators.RandomSurvivalForest(n_estimators=1_000_000, n_jobs=1)),
    "boosting": lambda: fit(estimators.GradientBoostedCox(n_estimators=1_000_000, n_jobs=1)),
    "elastic net": lambda: fit(estimators.CoxElasticNet(lambdas=10_000, folds=1_000, n_jobs=1)),
    "permutations": lambda: bias(permutations=1_000_000),
    "replicates": lambda: bias(replicates=1_000_000),
    "permutations of persons": lambda: bias(permutations=1_000_000, subject=np.arange(2_000) // 2),
    "clusters": lambda: bias(n=20_000, n_clusters=500),
}


@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_ends_fits_and_measures_of_bias_within_a_second(what):
    threading.Timer(1.0, _thread.interrupt_main).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        LONG[what]()
    assert time.monotonic() - begin < 2
    # The only thread of the pool is free again: the abandoned computation has ended.
    begin = time.monotonic()
    assert c(1)[0] == 1.0
    assert time.monotonic() - begin < 1


def test_a_panic_is_an_error_that_says_where_to_report(capfd):
    for where in ({}, {"here": True}):
        with pytest.raises(fairtte.InternalError, match=r"asked to panic; please report this"):
            _fairtte.self_test(0.0, panics=True, **where)


def test_the_number_of_threads_is_that_asked_for(monkeypatch):
    assert _fairtte.self_test(0.0, threads=3) == 3
    monkeypatch.setenv("RAYON_NUM_THREADS", "2")
    assert _fairtte.self_test(0.0) == 2
    with pytest.raises(fairtte.MetricError, match="threads is 0"):
        _fairtte.self_test(0.0, threads=0)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_no_more_threads_are_started_than_are_asked_for():
    program = """
import os, fairtte
probability, label = [0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0]
of_class = fairtte.evaluate_binary(probability, label, validation=(probability, label), replicates=10, permutations=0, threads=3)
times, survival = [1.0, 2.0], [[0.9, 0.8], [0.7, 0.2], [0.8, 0.3]]
found = fairtte.evaluate(survival, times, [1.0, 1.5, 2.0], [1, 1, 1], replicates=0, permutations=0, threads=3)
for page in (of_class.to_html(), found.to_html(), of_class.to_json(), found.to_json()):
    assert page
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print(sum(name.startswith("fairtte-") for name in names))
"""
    setting = {**os.environ, "RAYON_NUM_THREADS": "5"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=setting)
    assert found.stdout.strip() == "3", found.stdout + found.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(("kind", "n_copies"), [("C", 0), ("F", 1), ("float32", 1)])
def test_an_evaluation_copies_no_matrix_in_rows_and_others_once(kind, n_copies):
    bench = Path(__file__).parents[1] / "benches" / "memory.py"
    setting = {**os.environ, "RAYON_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, str(bench), kind], capture_output=True, text=True, env=setting)
    assert found.returncode == 0, found.stderr
    copies = float(found.stdout.split(" = ")[1].split()[0])
    # The copy, and what is read and sorted a few times at a time; another copy would be one more.
    assert n_copies <= copies < n_copies + 0.8, found.stdout


def test_the_package_is_strictly_typed():
    pytest.importorskip("mypy")
    folder = Path(__file__).parents[1]
    found = subprocess.run([sys.executable, "-m", "mypy", "fairtte"], capture_output=True, text=True, cwd=folder)
    assert found.returncode == 0, found.stdout


def test_stubs_are_those_of_the_module():
    pytest.importorskip("mypy")
    found = subprocess.run([sys.executable, "-m", "mypy.stubtest", "fairtte._fairtte"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
