"""The filter of system calls that a program inside the sandbox may make.

The filter is classic BPF that Suture assembles itself, so that no library is needed inside the sandbox. What
is refused, and with which error, is in `rules.py`.
"""

from suture.sandbox.seccomp.filters import build_filter, build_filter_for_host

__all__ = ["build_filter", "build_filter_for_host"]
