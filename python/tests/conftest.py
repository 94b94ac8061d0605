"""A simulated cohort."""

import signal

import numpy as np
import pytest


class Cohort:
    def __init__(self, n=400, k=25, seed=1):
        rng = np.random.default_rng(seed)
        self.risk = rng.normal(size=n)
        event_time = rng.exponential(np.exp(-self.risk))
        censored = rng.exponential(2.0, size=n)
        self.time = np.minimum(event_time, censored)
        self.event = event_time <= censored
        self.times = np.linspace(0.0, 4.0, k)
        self.survival = np.exp(-np.outer(np.exp(self.risk), self.times))
        self.sex = np.where(rng.random(n) < 0.5, "F", "M")
        self.age = rng.integers(40, 80, size=n).astype(float)
        self.y = np.array(list(zip(self.event, self.time, strict=True)), dtype=[("event", "?"), ("time", "f8")])


@pytest.fixture
def cohort():
    return Cohort()


@pytest.fixture(autouse=True)
def interrupts():
    """Python's handler of Ctrl-C, which is not installed where a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
