"""End a benchmark script as a command of the CLI ends: one line with the error, and one with its remedy."""

from __future__ import annotations

from collections.abc import Callable

from suture.errors import Cancelled, StorageError, SutureError
from suture.interfaces.cli.terminal.error_reporting import report_error

__all__ = ["run_script"]


def run_script(main: Callable[[], int | None]) -> int:
    """Run a script, and return the exit code of the process.

    A fault that the caller can correct is printed as one line and its remedy.

    Args:
        main: The script. It returns an exit code, or `None` for success.
    """
    try:
        return main() or 0
    except KeyboardInterrupt:
        fault: SutureError = Cancelled("cancelled")
    except SutureError as raised:
        fault = raised
    except OSError as raised:
        fault = StorageError(str(raised))
    return report_error(fault, debug=False)
