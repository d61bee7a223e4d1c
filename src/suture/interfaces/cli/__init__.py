"""The command line: parse arguments, call the api, render results.

This package shows progress and results. It decides nothing about a run and keeps no state: what it shows
comes from the api's result or from a run's ledger. Results go to stdout and progress to stderr, and every
command ends with one of the documented exit codes (docs/errors.md).

Heavy imports happen inside the commands, so that `suture --help` answers at once.
"""

import gc
import os
import signal
import sys
import time
from types import FrameType

from suture.core.tuning import MAX_UNCOLLECTED_OBJECTS

__all__ = ["COMPLETE_VARIABLE", "main"]

COMPLETE_VARIABLE = "_SUTURE_COMPLETE"
"""The environment variable that a shell sets to ask for completions."""


def main() -> None:
    """Run the program `suture` with the arguments of this process."""
    started_s = time.time()  # imports from here on count towards the run's time limit
    gc.set_threshold(MAX_UNCOLLECTED_OBJECTS)
    signal.signal(signal.SIGTERM, handle_sigterm)
    os.environ.setdefault(
        "PYDANTIC_DISABLE_PLUGINS", "__all__"
    )  # looking for plugins reads the metadata of every installed package
    try:
        # Imported inside `try`, so that even an early Ctrl-C ends in one line instead of a traceback.
        from suture.interfaces.cli.app import app
        from suture.interfaces.cli.terminal.terminal_output import escape_library_output

        escape_library_output()
        if COMPLETE_VARIABLE in os.environ:  # the script of `suture completion` is calling
            from typer.completion import completion_init  # type: ignore[attr-defined]  # in no `__all__`

            completion_init()
        app(obj=started_s)
    except KeyboardInterrupt:
        sys.stderr.write("cancelled\n")
        sys.exit(130)
    finally:
        # Otherwise the last collections at the end walk through all imported modules: half a second of CPU time.
        gc.freeze()


def handle_sigterm(_: int, frame: FrameType | None) -> None:
    """Treat SIGTERM (`kill`, a time limit of CI) like Ctrl-C.

    The run is recorded then, and its child processes end.
    """
    interrupt_handler = signal.getsignal(signal.SIGINT)
    if not callable(interrupt_handler):  # SIGINT is ignored, as in a background job of a shell
        raise KeyboardInterrupt
    # Called directly: a signal raised inside a handler is delivered only when the event loop wakes up again.
    interrupt_handler(signal.SIGINT, frame)
