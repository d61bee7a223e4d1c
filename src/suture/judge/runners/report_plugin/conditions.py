"""A pytest plugin that sets conditions which may decide how a flaky test ends: order, random numbers and clock.

Experiments load it together with the reporting plugin; nothing that it does is part of a verdict. It runs where the
reporting plugin runs: Python 3.8 syntax, the standard library and pytest only. It is loaded before any module of the
project, so that `from time import time` there gets the clock that is set here.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import sys
import time
from typing import Any

import pytest

FOLDER = os.path.dirname(os.path.abspath(__file__))
"""Suture's own folder, which is in the project's folder."""
EARLIEST_MONOTONIC_NS = 10**12
real_sleep, real_localtime, real_gmtime, real_ctime, real_strftime = (
    time.sleep,
    time.localtime,
    time.gmtime,
    time.ctime,
    time.strftime,
)


class SteppingClock:
    """A clock that moves only when it is read, and while a test sleeps: in equal runs a test reads equal times.

    Args:
        start_s: Seconds since the epoch at the start of each test.
        step_s: Seconds by which each reading moves the clock.
    """

    def __init__(self, start_s: float, step_s: float) -> None:
        self._start_ns, self._step_ns = int(start_s * 1e9), int(step_s * 1e9)
        self._elapsed_ns = self._test_began_ns = 0

    def begin_test(self) -> None:
        """Set the clock back to the start of a test; `monotonic` continues."""
        self._test_began_ns = self._elapsed_ns

    def monotonic_ns(self) -> int:
        """Take the place of `time.monotonic_ns` and `time.perf_counter_ns`."""
        self._elapsed_ns += self._step_ns
        return EARLIEST_MONOTONIC_NS + self._elapsed_ns

    def time_ns(self) -> int:
        """Take the place of `time.time_ns`."""
        return self._start_ns + self.monotonic_ns() - EARLIEST_MONOTONIC_NS - self._test_began_ns

    def time(self) -> float:
        """Take the place of `time.time`."""
        return self.time_ns() / 1e9

    def monotonic(self) -> float:
        """Take the place of `time.monotonic` and `time.perf_counter`."""
        return self.monotonic_ns() / 1e9

    def sleep(self, seconds: Any) -> None:
        """Take the place of `time.sleep`: threads need the real time, and the test its own."""
        real_sleep(seconds)
        self._elapsed_ns += int(seconds * 1e9)

    def install(self) -> None:
        """Put this clock in the place of the functions and classes that read the machine's clock."""
        time.time, time.time_ns, time.sleep = self.time, self.time_ns, self.sleep
        time.monotonic = time.perf_counter = self.monotonic
        time.monotonic_ns = time.perf_counter_ns = self.monotonic_ns
        time.localtime = lambda seconds=None: real_localtime(self.time() if seconds is None else seconds)
        time.gmtime = lambda seconds=None: real_gmtime(self.time() if seconds is None else seconds)
        time.ctime = lambda seconds=None: real_ctime(self.time() if seconds is None else seconds)
        time.strftime = lambda layout, parts=None: real_strftime(
            layout, time.localtime() if parts is None else parts
        )
        _install_dates(self)


def _install_dates(clock: SteppingClock) -> None:
    real_date, real_datetime = datetime.date, datetime.datetime

    reals = {}  # type: dict[type, type]

    class DateKind(type):
        """Makes real dates, which C code creates, instances of the classes below."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, reals[cls]) if cls in reals else type.__instancecheck__(cls, value)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, reals[cls]) if cls in reals else type.__subclasscheck__(cls, other)

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(clock.time())

    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(clock.time(), tz)

    def utcnow(cls: Any) -> Any:
        utc = datetime.timezone.utc  # noqa: UP017  # Python 3.8 has no datetime.UTC
        return cls.fromtimestamp(clock.time(), utc).replace(tzinfo=None)

    place = {"__module__": "datetime", "today": classmethod(today)}
    methods = {**place, "now": classmethod(now), "utcnow": classmethod(utcnow)}
    dates = DateKind("date", (real_date,), place)
    times = DateKind("datetime", (real_datetime,), methods)
    reals.update({dates: real_date, times: real_datetime})
    vars(datetime).update(date=dates, datetime=times)


def _seed_random() -> None:
    seed = CONDITIONS["random_seed"]
    if seed is None:
        return
    source = random.Random(seed)
    # `random` has its own reference, which `SystemRandom` and `secrets` use.
    os.urandom = vars(random)["_urandom"] = lambda size: source.getrandbits(8 * size).to_bytes(size, "big")
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _set_conditions() -> dict[str, Any]:
    with open(os.path.join(FOLDER, "conditions.json"), encoding="utf-8") as file:
        conditions = json.load(file)  # type: dict[str, Any]
    time.tzset()
    if conditions["clock_start_s"] is not None:
        CLOCKS.append(SteppingClock(conditions["clock_start_s"], conditions["clock_step_s"]))
        CLOCKS[0].install()
    return conditions


CLOCKS = []  # type: list[SteppingClock]
CONDITIONS = _set_conditions()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Let all tests run: with `-x`, one that fails in a new order would end the run before the others."""
    config.option.maxfail = 0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: Any) -> None:
    """Bring the tests into the requested order."""
    root = str(getattr(config, "rootpath", None) or config.rootdir)
    prefix = os.path.relpath(root, os.path.dirname(FOLDER))
    places = {test: place for place, test in enumerate(CONDITIONS["order"])}

    def find_place(item: Any) -> int:
        path, separator, name = item.nodeid.partition("::")
        return places.get(os.path.normpath(os.path.join(prefix, path)) + separator + name, len(places))

    if places:
        items.sort(key=find_place)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin each test at the same time and with the same random numbers."""
    for clock in CLOCKS:
        clock.begin_test()
    _seed_random()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Seed again after the fixtures: one for a whole file draws random numbers before its first test only."""
    _seed_random()
