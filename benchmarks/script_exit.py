"""How a benchmark script ends when something is missing or wrong: as a command of the CLI does."""

from __future__ import annotations

from collections.abc import Callable

from suture.errors import Cancelled, StorageError, SutureError
from suture.interfaces.cli.terminal.error_reporting import report_error

__all__ = ["run_script"]


def run_script(main: Callable[[], int | None]) -> int:
    """Run a script: a fault that the caller can mend ends as a line, its remedy and the CLI's exit code.

    Args:
        main: The script; it answers an exit code, or nothing where all went well.
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
