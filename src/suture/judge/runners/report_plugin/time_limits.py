"""Stopping a test that never ends, so that the tests after it can run."""

from __future__ import annotations

import os
import time

# The compiled functions, which nothing can change; those of `signal` take longer. They have no type stubs.
from _signal import (  # type: ignore[import-not-found]
    ITIMER_REAL,
    SIG_DFL,
    SIGALRM,
    getsignal,
    setitimer,
    signal,
)
from collections.abc import Iterator
from threading import current_thread, main_thread
from typing import Any

import pytest

FIRST_SHARE, LATER_SHARE = 2, 16
"""A test may take this fraction of the remaining time: before and after another test had to be stopped.

A slow test must not be mistaken for an endless one, so the first share is a half. Suites with one endless
test often contain more of them, and a sixteenth then leaves time for the tests after them.
"""
SLOWDOWN = 5
"""A test may always take this many times as long as the longest test that has finished. Chosen by judgement; not
measured."""
MIN_LIMIT_S = 1.0
"""Every test may take this many seconds, however little time remains."""


class TestTimeout(BaseException):
    """Raised inside a test to stop it."""


class TimeLimits:
    """A pytest plugin that stops a test which takes most of the available time, as an endless loop would.

    Attributes:
        limit_s: The time limit of the current or last test in seconds; 0 before the first test.
    """

    def __init__(self, wall_s: float) -> None:
        self.limit_s = 0.0
        self._began_s = _now_s() - _age_s()
        self._ends_s = self._began_s + wall_s
        self._longest_s = 0.0
        self._stopped = 0
        self._handler = self._stop  # one object, so that a comparison of handlers by identity sees no change

    def used_s(self) -> float:
        """Return the seconds since this process started."""
        return _now_s() - self._began_s

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Set an alarm around a test, unless something else uses the alarm signal."""
        started_s, stopped = _now_s(), self._stopped
        self.limit_s = self._next_limit_s(len(item.session.items), started_s)
        is_ours = getsignal(SIGALRM) is SIG_DFL and current_thread() is main_thread()
        if is_ours:
            signal(SIGALRM, self._handler)
            # Repeated after the same time, in case the test catches the first exception.
            setitimer(ITIMER_REAL, self.limit_s, self.limit_s)
        yield
        if is_ours and getsignal(SIGALRM) == self._stop:
            setitimer(ITIMER_REAL, 0)
            signal(SIGALRM, SIG_DFL)
        if self._stopped == stopped:
            self._longest_s = max(self._longest_s, _now_s() - started_s)

    def _next_limit_s(self, tests: int, now_s: float) -> float:
        share = 1 if tests == 1 else LATER_SHARE if self._stopped else FIRST_SHARE
        fair_s: float = (self._ends_s - now_s) / share
        return max(fair_s, SLOWDOWN * self._longest_s, MIN_LIMIT_S)

    def _stop(self, _signal: int, _frame: Any) -> None:
        self._stopped += 1
        raise TestTimeout


def _age_s() -> float:
    """Return the age of this process in seconds: on a busy machine pytest takes some of them to start."""
    try:
        with open("/proc/self/stat") as stat:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
        began_s = ticks / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _now_s() -> float:
    # Libraries that freeze time for tests replace `time.monotonic`, but not `time.clock_gettime`.
    return time.clock_gettime(time.CLOCK_MONOTONIC)
