"""The program as a child process, and run folders. The tests of a real program need it: `FAIRTTE_PROGRAM`."""

import gc
import json
import os
import pickle
import stat
import sys
import threading
import time
import _thread

import numpy as np
import pytest

import fairtte
from fairtte import program

RUN_FILE = """
output = "{output}"
seed = 1
[data.tabular]
table = "{table}"
subject = "person"
numeric = ["x", "age"]
[[attribute]]
name = "sex"
[estimator.cox]
[evaluation]
replicates = 20
"""

NETWORK = """
[model]
backbone = "mlp"
[head.nnet-survival]
[strategy.erm]
[training]
epochs = 2
"""
STUDY = """
name = "a network and two estimators"
output = "study"
trials = 1
[[data]]
run-file = "network.toml"
[heads]
names = ["nnet-survival"]
[strategies]
base = "erm"
names = []
[estimators]
names = ["cox", "forest"]
[estimators.settings.forest]
trees = 20
"""


@pytest.fixture
def real(tmp_path):
    try:
        found = program.find_program()
    except fairtte.FairtteError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(0)
    lines = ["person,time,event,sex,age,x"]
    for k in range(200):
        x = rng.normal()
        lines.append(f"p{k},{rng.exponential(np.exp(x)) + 0.01},{rng.random() < 0.8:d},{'FM'[k % 2]},{40 + k % 40},{x}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (tmp_path / "run.toml").write_text(RUN_FILE.format(output=tmp_path / "first", table=tmp_path / "t.csv"))
    return found, tmp_path


def test_a_training_is_a_run_that_can_be_read_and_scored_again(real, capsys):
    _, folder = real
    run = fairtte.train(folder / "run.toml", set={"name": "mine", "estimator.cox.ridge": 1.5, "evaluation.metrics": ["c-td", "ibs"]})
    assert "fitting cox" in capsys.readouterr().err
    assert run.path == folder / "first" and run.is_done and run.page.exists()
    assert run.settings["name"] == "mine" and run.settings["estimator"]["cox"]["ridge"] == 1.5
    assert run.cohort.n == 200 == len(run.split.part) and run.cohort.content_hash
    assert [m["name"] for m in run.report["metrics"]] == ["c_td_antolini_strict", "ibs"]
    test = run.predictions()
    assert test.survival.shape == (len(run.split.test), len(test.times)) and np.all(test.survival[:, 0] == 1)
    assert list(test.rows) == list(run.split.test)
    assert len(run.predictions("validation").rows) == len(run.split.validation)
    assert set(test.groups()["sex"]) == {"F", "M"}
    # The same curves give the same numbers, whichever way they are scored.
    again = run.evaluate(metrics=["c-td", "ibs"], replicates=20, reading={"refined": {"factor": 10}})
    for metric in run.report["metrics"]:
        assert again[metric["name"]].value == pytest.approx(metric["overall"]["value"], abs=1e-12)
        assert again[metric["name"]].lower == pytest.approx(metric["overall"]["lower"], abs=1e-12)
    for attribute in run.report["metrics"][0]["attributes"]:
        rows = again.by_group[again.by_group["metric"] == "c_td_antolini_strict"].set_index("level")["value"]
        for group in attribute["groups"]:
            assert rows[group["level"]] == pytest.approx(group["estimate"]["value"], abs=1e-12)
    other = fairtte.train(folder / "run.toml", output=folder / "second", threads=1, quiet=True)
    assert other.path == folder / "second" and capsys.readouterr().err == ""


def test_an_estimator_of_the_program_is_that_of_the_package(real):
    from fairtte.estimators import CoxPH, surv

    _, folder = real
    run = fairtte.train(folder / "run.toml", set={"estimator.cox.ridge": 0.0}, quiet=True)
    pd = pytest.importorskip("pandas")
    saved = json.loads((run.path / "model" / "epoch-00001" / "estimator.json").read_text())["cox"]["coefficients"]
    table = pd.read_csv(folder / "t.csv").set_index("person")
    features = table.loc[run.cohort.to_pandas()["subject_id"], ["x", "age"]].to_numpy(float)
    train, test = run.split.train, run.predictions()
    assert len(saved) == 2
    model = CoxPH().fit(features[train], surv(run.cohort.time[train], run.cohort.event[train]))
    at = np.clip(test.times, 0, run.cohort.time[train].max())
    own = model.predict_survival_function(features[test.rows], return_array=True, times=np.unique(at))
    theirs = test.survival[:, np.unique(np.searchsorted(test.times, np.unique(at)))]
    # The program standardises the columns of a table in 32 bits, as networks read them.
    assert own == pytest.approx(theirs, abs=1e-7)


def test_a_network_and_a_study_are_trained_and_resumed(real):
    _, folder = real
    (folder / "network.toml").write_text((folder / "run.toml").read_text().replace("[estimator.cox]", NETWORK))
    run = fairtte.train(folder / "network.toml", output=folder / "network", threads=1, quiet=True)
    curves = run.predictions()
    assert run.is_done and run.settings["training"]["epochs"] == 2 and list(curves.rows) == list(run.split.test)
    # Every rule of the record leads to its curves, also those whose epoch is that of the monitor.
    for rule in run.selection["rules"].values():
        assert run.predictions(epoch=rule["epoch"]).survival.shape == curves.survival.shape
    assert np.all(np.diff(curves.survival) <= 0) and len(np.unique(curves.survival[:, -1])) > 1
    (folder / "study.toml").write_text(STUDY)
    printed = fairtte.study(folder / "study.toml", set={"seed": 4}, output=folder / "study", jobs=1, threads=1, quiet=True)
    assert "3 of 3 trainings to run" in printed and printed.splitlines()[-1] == "3 done"
    scores = sorted((folder / "study" / "trials").glob("*/*/scores.json"))
    assert len(scores) == 3
    written = [path.stat().st_mtime_ns for path in scores]
    again = fairtte.study(folder / "study.toml", set={"seed": 4}, output=folder / "study", quiet=True)
    assert "0 of 3 trainings to run" in again and again.splitlines()[-1] == "3 done"
    assert [path.stat().st_mtime_ns for path in scores] == written


def test_the_code_and_the_sentence_of_the_program_are_an_exception(real):
    _, folder = real
    for call, code, message in [
        (lambda: fairtte.train(folder / "none.toml", quiet=True), 3, "cannot read run file"),
        (lambda: fairtte.train(folder / "run.toml", set={"estimator.cox.rdge": 1}, quiet=True), 3, "rdge.*help: did you mean"),
        (lambda: fairtte.train(quiet=True), 2, "required arguments were not provided: .*--config"),
        (lambda: fairtte.train(folder / "run.toml", set={"data.tabular.table": "no.csv"}, quiet=True), 4, "no.csv"),
        (lambda: fairtte.study(folder / "no-study.toml", quiet=True), 3, "no-study.toml"),
    ]:
        with pytest.raises(fairtte.RunError, match=message) as caught:
            call()
        assert caught.value.exit_code == code
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (str(sent), sent.exit_code) == (str(caught.value), 3)


def script(folder, text):
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def test_what_is_passed_is_what_is_asked_for(tmp_path):
    echo = script(tmp_path, 'printf "%s\\n" "$@" >&2')
    printed = fairtte.study("s.toml", set={"trials": 3, "name": "a b", "x": [1, 2.5]}, output="o", jobs=2, threads=1, program=echo)
    assert printed.splitlines() == [
        "study", "run", "s.toml", "--set", "trials=3", "--set", 'name="a b"', "--set", "x=[1, 2.5]", "--output", "o", "--jobs", "2",
        "--threads", "1",
    ]  # fmt: skip
    with pytest.raises(fairtte.FairtteError, match="did not say where the run is"):
        fairtte.train("a", program=echo)


def test_settings_of_every_kind_are_those_of_a_run_file(tmp_path):
    echo = script(tmp_path, 'printf "%s\\n" "$@" >&2')
    given = {
        "a": np.int64(3), "b": np.float32(0.5), "c": np.array([1.0, 2.0]), "attribute": [{"name": "sex", "levels": ("F", "M")}], "d": True,
        "e": tmp_path / "é", "f": {"g-h": 'a "b"'},
    }  # fmt: skip
    printed = fairtte.study("s.toml", set=given, program=echo)
    assert [line for line in printed.splitlines()[3:] if line != "--set"] == [
        "a=3", "b=0.5", "c=[1.0, 2.0]", 'attribute=[{"name" = "sex", "levels" = ["F", "M"]}]', "d=true", f'e="{tmp_path}/é"',
        'f={"g-h" = "a \\"b\\""}',
    ]  # fmt: skip
    for wrong, message in [({"a": None}, r'set\["a"\] has a NoneType, expected numbers'), ("a=3", "set is 'a=3', expected a dict such as")]:
        with pytest.raises(fairtte.FairtteError, match=message):
            fairtte.study("s.toml", set=wrong, program=echo)


def test_settings_of_every_kind_are_read_by_the_program(real):
    _, folder = real
    attribute = [{"name": "sex", "levels": ["M", "F"]}, {"name": "age", "threshold": np.int64(60)}]
    settings = {"attribute": attribute, "evaluation.replicates": np.int64(9), "estimator": {"cox": {"ridge": np.float64(1.5)}}}
    run = fairtte.train(folder / "run.toml", set=settings, quiet=True)
    assert run.settings["estimator"]["cox"]["ridge"] == 1.5 and run.settings["evaluation"]["replicates"] == 9
    assert [a["groups"][0]["level"] for a in run.report["metrics"][0]["attributes"]] == ["M", "<= 60"]
    # What a run is made of is found again in another process.
    sent = pickle.loads(pickle.dumps((run, run.predictions())))
    assert sent[0].path == run.path and np.array_equal(sent[1].survival, run.predictions().survival)
    assert sent[1].groups().equals(run.predictions().groups())


@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_no_pipe_stays_open(tmp_path):
    program.run_program([], program=script(tmp_path, "echo a"), quiet=True)
    with pytest.raises(fairtte.RunError):
        program.run_program([], program=script(tmp_path, "exit 3"), quiet=True)
    gc.collect()


def test_ctrl_c_reaches_the_children_of_the_child(tmp_path):
    pids = tmp_path / "pids"
    # A child that waits for its own child, which takes long, as a study waits for a trial.
    code = "\n".join([
        "import signal, subprocess, sys",
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(30)'])",
        f"open({str(pids)!r}, 'w').write(str(child.pid))",
        "while True:",
        "    try:",
        "        sys.exit(child.wait())",
        "    except KeyboardInterrupt:",
        "        pass",
    ])
    (tmp_path / "child.py").write_text(code)
    parent = script(tmp_path, f'exec "{sys.executable}" "{tmp_path / "child.py"}"')
    threading.Timer(1.5, _thread.interrupt_main).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        program.run_program([], program=parent, quiet=True)
    assert time.monotonic() - begin < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.read_text()), 0)


def test_output_larger_than_a_pipe_does_not_block(tmp_path):
    loud = script(tmp_path, "head -c 300000 /dev/zero | tr '\\0' 'a'; head -c 300000 /dev/zero | tr '\\0' 'b' >&2")
    assert len(program.run_program([], program=loud, quiet=True)) == 300_000


def test_ctrl_c_is_passed_on_once_and_waited_for(tmp_path):
    mark = tmp_path / "mark"
    # Of Python, because a shell cannot trap a signal that was ignored when it started.
    code = "\n".join([
        "import signal, sys, time",
        f"def stop(*_): open({str(mark)!r}, 'a').write('stopped\\n'); sys.exit(130)",
        "signal.signal(signal.SIGINT, stop)",
        "time.sleep(20)",
    ])
    (tmp_path / "child.py").write_text(code)
    child = script(tmp_path, f'exec "{sys.executable}" "{tmp_path / "child.py"}"')
    threading.Timer(0.7, _thread.interrupt_main).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        program.run_program([], program=child, quiet=True)
    assert time.monotonic() - begin < 5 and mark.read_text() == "stopped\n"


def test_a_program_that_is_not_there_is_said_so(tmp_path, monkeypatch):
    with pytest.raises(fairtte.FairtteError, match="none does not exist"):
        fairtte.train("a", program=tmp_path / "none")
    monkeypatch.setenv("FAIRTTE_PROGRAM", "")
    monkeypatch.delenv("FAIRTTE_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(program.sysconfig, "get_path", lambda name: os.fspath(tmp_path))
    with pytest.raises(fairtte.FairtteError, match="pip install fairtte-cli"):
        fairtte.train("a")
    silent = script(tmp_path, "exit 7")
    with pytest.raises(fairtte.RunError, match="ended with exit code 7: no message"):
        program.run_program([], program=silent)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(fairtte.DataError, match="has no cohort.parquet"):
        fairtte.read_run(tmp_path)


@pytest.mark.parametrize("name", ["evaluation.json", "selection.json", "run.toml"])
def test_a_damaged_file_of_a_run_is_named(tmp_path, name):
    run = fairtte.Run.__new__(fairtte.Run)  # without the tables, which only a training writes
    run.path = tmp_path
    of = {"evaluation.json": "report", "selection.json": "selection", "run.toml": "settings"}[name]
    with pytest.raises(fairtte.DataError, match=f"has no {name}"):
        getattr(run, of)
    for content in (b'{"n": ', b"\xff"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(fairtte.DataError, match=f"{name} cannot be read"):
            getattr(run, of)
    if name.endswith(".json"):
        (tmp_path / name).write_text("[]")
        with pytest.raises(fairtte.DataError, match=f"{name} has no table"):
            getattr(run, of)
