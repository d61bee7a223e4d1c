"""The command line: arguments in, words out.

This room parses arguments, shows progress and renders results. It decides nothing about a run and keeps no
state: what it shows comes from the api's result or from a run's ledger. Results go to stdout, progress to
stderr, and every command ends with one of the documented exit codes (docs/errors.md).

Heavy imports happen inside the commands, so that `suture --help` answers at once.
"""

import os
import signal
import sys
import time
from types import FrameType

__all__ = ["COMPLETE_VARIABLE", "main"]

COMPLETE_VARIABLE = "_SUTURE_COMPLETE"
"""Set by a shell that wants to know how a line could go on."""


def main() -> None:
    """Run the program `suture` with the process's own arguments."""
    began_s = time.time()  # what is loaded from here on is part of the time that a run may take
    signal.signal(signal.SIGTERM, end_like_ctrl_c)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would read every package's papers
    try:
        # Imported here so that Ctrl-C, even this early, ends in one line and not in a traceback.
        from suture.interfaces.cli.app import app
        from suture.interfaces.cli.terminal.terminal_output import escape_library_output

        escape_library_output()
        if COMPLETE_VARIABLE in os.environ:  # a shell asks, by the script of `suture completion`
            from typer.completion import completion_init  # type: ignore[attr-defined]  # in no `__all__`

            completion_init()
        app(obj=began_s)
    except KeyboardInterrupt:
        sys.stderr.write("cancelled\n")
        sys.exit(130)


def end_like_ctrl_c(_: int, frame: FrameType | None) -> None:
    """On `kill`, or a time limit of CI: end as on Ctrl-C, so that the run is recorded and children die."""
    ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(ctrl_c):  # ignored, as in a shell's background job
        raise KeyboardInterrupt
    # Called and not raised as a signal: one raised in here would wait until the event loop wakes by itself.
    ctrl_c(signal.SIGINT, frame)
