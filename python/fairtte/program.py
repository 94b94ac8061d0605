"""The program ``fairtte`` as a child process: training and studies. ``pip install fairtte-cli`` brings it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

from ._errors import FairtteError, RunError
from ._settings import plain
from .runs import Run, read_run

_TAIL = 200


def find_program(program: str | os.PathLike[str] | None = None) -> Path:
    """The program: ``program``, otherwise ``FAIRTTE_PROGRAM`` of the environment, otherwise that beside this Python, otherwise
    that of ``PATH``.

    Raises :class:`fairtte.FairtteError` if there is none.
    """
    chosen = program if program is not None else os.environ.get("FAIRTTE_PROGRAM")
    if chosen is not None:
        path = Path(chosen)
        if not os.access(path, os.X_OK) or path.is_dir():
            raise FairtteError(f"the program {path} does not exist or cannot be run")
        # A name alone would be looked for in PATH.
        return path.absolute()
    beside = Path(sysconfig.get_path("scripts")) / ("fairtte.exe" if os.name == "nt" else "fairtte")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("fairtte")
    if found is None:
        raise FairtteError("there is no program fairtte: pip install fairtte-cli, or name it with FAIRTTE_PROGRAM")
    return Path(found)


def _value(value: Any, key: str) -> str:
    """A value of TOML, as ``--set KEY=VALUE`` takes it."""
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {_value(item, key)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item, key) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str | int):
        return json.dumps(value, ensure_ascii=False)
    raise FairtteError(f'set["{key}"] has a {type(value).__name__}, expected numbers, text, paths, or lists or dicts of them')


def _settings(settings: Mapping[str, Any] | None) -> list[str]:
    if settings is not None and not isinstance(settings, Mapping):
        raise FairtteError(f'set is {settings!r}, expected a dict such as {{"training.epochs": 3}}')
    return [part for key, value in (settings or {}).items() for part in ("--set", f"{key}={_value(value, key)}")]


def run_program(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    program: str | os.PathLike[str] | None = None,
    quiet: bool = False,
) -> str:
    """Runs ``fairtte ARGUMENTS`` and returns its standard output. What it says on standard error is shown meanwhile
    (``sys.stderr``) unless ``quiet``. Ctrl-C is passed on to all its processes: a training
    then writes its checkpoint and can be resumed.

    Raises :class:`fairtte.RunError` with the exit code and the sentence of the program.
    """
    return _outputs(arguments, program, quiet)[0]


def _outputs(
    arguments: Sequence[str | os.PathLike[str]], program: str | os.PathLike[str] | None, quiet: bool
) -> tuple[str, str]:
    """Standard output, and the last lines of standard error."""
    command = [os.fspath(find_program(program)), *(os.fspath(argument) for argument in arguments)]
    # A session of its own, so that Ctrl-C reaches the child once, from here, in terminals and notebooks alike.
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        errors="replace", start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None and child.stderr is not None
    said: deque[str] = deque(maxlen=_TAIL)
    printed: list[str] = []
    readers = [
        threading.Thread(target=_read_lines, args=(child.stderr, said, None if quiet else sys.stderr), daemon=True),
        threading.Thread(target=_read_lines, args=(child.stdout, printed, None), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        code = _wait(child)
    finally:
        # What the child has started may hold the pipes open after its end.
        for reader in readers:
            reader.join(None if child.returncode == 0 else 5.0)
        for pipe, reader in zip((child.stderr, child.stdout), readers, strict=True):
            if not reader.is_alive():
                pipe.close()
    if code != 0:
        raise RunError(_sentence(list(said), code), code)
    return "".join(printed), "".join(said)


def _read_lines(stream: IO[str], kept: Any, shown: Any) -> None:
    for line in stream:
        kept.append(line)
        try:
            if shown is not None:
                _show(line, shown)
        except (OSError, ValueError):
            # Whatever cannot be shown is read: the program would wait for ever for a pipe that nobody reads.
            shown = None


def _show(line: str, shown: Any) -> None:
    try:
        shown.write(line)
    except UnicodeEncodeError:
        # A stream of ASCII shows other letters by their numbers.
        encoding = getattr(shown, "encoding", None) or "ascii"
        shown.write(line.encode(encoding, "backslashreplace").decode(encoding))
    shown.flush()


def _wait(child: subprocess.Popen[str]) -> int:
    try:
        while True:
            # In short waits, between which Python handles signals that interrupt no system call.
            try:
                return child.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
    except BaseException:
        _signal(child, signal.SIGINT)
        try:
            child.wait()
        except BaseException:
            _signal(child, getattr(signal, "SIGKILL", signal.SIGTERM))
            child.wait()
            raise
        raise


def _signal(child: subprocess.Popen[str], which: int) -> None:
    """To the child and all that it started, as the terminal does: a study trains in processes of its own."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, which)
        else:
            child.send_signal(which)
    except ProcessLookupError:
        pass


def _sentence(lines: list[str], code: int) -> str:
    """The error of the program: what follows its mark, without the colours of a terminal."""
    text = [line.strip() for line in lines]
    marks = ("x ", "error: ")
    start = next((k for k in range(len(text) - 1, -1, -1) if text[k].startswith(marks)), None)
    if start is None:
        last = next((line for line in reversed(text) if line), "no message")
        return f"fairtte ended with exit code {code}: {last}"
    error = text[start].removeprefix("x ").removeprefix("error: ")
    after = text[start + 1 :]
    if error.endswith(":"):
        # A list follows, up to an empty line.
        error += " " + ", ".join(takewhile(bool, after))
    return "; ".join([error, *(line for line in after if line.startswith("help: "))])


def train(
    config: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    resume_from: str | os.PathLike[str] | None = None,
    device: str | None = None,
    threads: int | None = None,
    program: str | os.PathLike[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Trains as ``fairtte train`` does, in a child process; a finished run is read, one that was interrupted is resumed.

    Parameters
    ----------
    config : path or list of paths
        Run files; a later one wins.
    set : dict
        Changes of settings: ``{"training.epochs": 3}``; numbers also of NumPy, text, paths, and lists and dicts of them.
    output : path
        The run folder, in place of ``output`` of the run file.
    resume_from : path
        Resume this run.
    device, threads : str, int
    program : path
        Default: see :func:`fairtte.program.find_program`.
    quiet : bool
        Whether to hide the lines of progress.

    Returns
    -------
    Run

    Raises
    ------
    RunError
        With ``exit_code`` (2 usage, 3 run file, 4 data, 5 training failed) and the sentence of the program.

    Examples
    --------
    >>> import fairtte
    >>> run = fairtte.train("run.toml", set={"training.epochs": 3})   # doctest: +SKIP
    >>> run.report["metrics"][0]["overall"]["value"]                  # doctest: +SKIP
    """
    files = [] if config is None else [config] if isinstance(config, str | os.PathLike) else list(config)
    arguments: list[Any] = ["train", *(part for file in files for part in ("--config", file)), *_settings(set)]
    for flag, value in (("--output", output), ("--resume-from", resume_from), ("--device", device), ("--threads", threads)):
        if value is not None:
            arguments += [flag, str(value)]
    printed = run_program(arguments, program=program, quiet=quiet)
    folder = output
    if folder is None:
        pages = [line.removeprefix("report: ") for line in printed.splitlines() if line.startswith("report: ")]
        if not pages:
            raise FairtteError(f"the program did not say where the run is; it printed: {printed[-300:]}")
        folder = Path(pages[-1]).parent
    return read_run(folder)


def study(
    file: str | os.PathLike[str],
    *,
    set: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    program: str | os.PathLike[str] | None = None,
    quiet: bool = False,
) -> str:
    """Runs what is missing of a study as ``fairtte study run`` does, and returns the last lines of what the program said, which end with
    the number of trainings by state; the same call resumes an interrupted study. ``fairtte study report`` writes its tables.

    Parameters are those of :func:`train`; ``file`` is the study file, ``jobs`` the number of trials at a time.

    Raises :class:`fairtte.RunError`.

    >>> import fairtte
    >>> print(fairtte.study("study.toml", jobs=2, quiet=True))   # doctest: +SKIP
    3 of 3 trainings to run, 2 at a time with 1 thread each
    3 done
    """
    arguments: list[Any] = ["study", "run", file, *_settings(set)]
    for flag, value in (("--output", output), ("--jobs", jobs), ("--threads", threads)):
        if value is not None:
            arguments += [flag, str(value)]
    return _outputs(arguments, program, quiet)[1]
