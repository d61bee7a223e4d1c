"""The command line: arguments in, words out.

This room parses arguments, shows progress and renders results. It decides nothing about a run and keeps no
state: what it shows comes from the api's result or from a run's ledger. Results go to stdout, progress to
stderr, and every command ends with one of the documented exit codes (docs/errors.md).

Heavy imports happen inside the commands, so that `suture --help` answers at once.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the program `suture` with the process's own arguments."""
    try:
        # Imported here so that Ctrl-C, even this early, ends in one line and not in a traceback.
        from suture.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("cancelled\n")
        sys.exit(130)
