"""A test without an end is stopped, so that those behind it are run too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from threading import current_thread, main_thread
from typing import Any

import pytest

FIRST_SHARE, LATER_SHARE = 2, 16
"""A test may take this part of the time that is left: before and after one had to be stopped.

A slow test must not be taken for one without an end, so the first may take half. Suites with one endless
test often have more, and then a sixteenth leaves time for those behind them.
"""
SLOWER = 5
"""A test may always take this many times as long as the longest one that came to its end."""
LEAST_S = 1.0
"""Seconds that any test may take, however little time is left."""


class NoEnd(BaseException):
    """Raised inside a test that is stopped."""


class TimeLimits:
    """A plugin that stops a test which takes most of the time there is, as a loop without an end would.

    Attributes:
        limit_s: Seconds that the test which runs, or ran last, may take; 0 before any does.
    """

    def __init__(self, wall_s: float) -> None:
        self.limit_s = 0.0
        self._began_s = _now_s() - _age_s()
        self._ends_s = self._began_s + wall_s
        self._longest_s = 0.0
        self._stopped = 0

    def used_s(self) -> float:
        """Seconds since this process began."""
        return _now_s() - self._began_s

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Set an alarm around a test, unless somebody else uses the alarm."""
        started_s, stopped = _now_s(), self._stopped
        self.limit_s = self._most_s(len(item.session.items), started_s)
        is_ours = signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and current_thread() is main_thread()
        if is_ours:
            signal.signal(signal.SIGALRM, self._stop)
            signal.setitimer(signal.ITIMER_REAL, self.limit_s, self.limit_s)
        yield
        if is_ours and signal.getsignal(signal.SIGALRM) == self._stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._stopped == stopped:
            self._longest_s = max(self._longest_s, _now_s() - started_s)

    def _most_s(self, tests: int, now_s: float) -> float:
        share = 1 if tests == 1 else LATER_SHARE if self._stopped else FIRST_SHARE
        fair_s: float = (self._ends_s - now_s) / share
        return max(fair_s, SLOWER * self._longest_s, LEAST_S)

    def _stop(self, _signal: int, _frame: Any) -> None:
        self._stopped += 1
        raise NoEnd


def _age_s() -> float:
    """Seconds that this process is old: on a busy machine pytest takes some of them to start."""
    try:
        with open("/proc/self/stat") as stat:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
        began_s = ticks / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _now_s() -> float:
    # Libraries that freeze time for tests replace `time.monotonic`, and many tests may run in one such frost.
    return time.clock_gettime(time.CLOCK_MONOTONIC)
