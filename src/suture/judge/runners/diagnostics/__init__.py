"""Running linters, type checkers, formatters and compilers: each diagnostic is a check.

What the tools repair themselves (`tool_fixes`) is a candidate like any other.
"""

from suture.judge.runners.diagnostics.diagnostics_runner import DiagnosticsRunner

__all__ = ["DiagnosticsRunner"]
