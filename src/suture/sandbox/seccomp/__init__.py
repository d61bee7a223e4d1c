"""The system calls that a program behind the wall may make.

A filter is classic BPF of our own assembling: no library is needed where the wall stands. What is refused,
and with which error, is in `rules.py`.
"""

from suture.sandbox.seccomp.filters import build_filter, build_filter_for_host

__all__ = ["build_filter", "build_filter_for_host"]
