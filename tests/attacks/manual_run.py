"""Runs the attack list against a sandbox that is too slow for every run of the suite.

    cd tests && PYTHONPATH=. python -m attacks.manual_run gvisor [ROW ...]

The exit code is 1 if a row fails that is not known to fail, or one passes that is.
"""

from __future__ import annotations

import sys
import time

from attacks.identities import command_for
from attacks.matrix import ROWS
from attacks.test_matrix import Driver

__all__ = ["FALLS_SHORT", "main"]

FALLS_SHORT: dict[str, dict[int, str]] = {
    "gvisor": {
        21: "the program ends the box itself, which looks like a fault of the box",
        22: "descriptors of the supervisor beside the program can be opened through /proc/PID/fd",
        28: "its /proc does not tell whether new privileges can be had, so the row cannot see it",
        29: "files that stand for devices can be made in the program's own folders",
        31: "an i386 call is taken for the x86_64 call of its number, and the filter judges that one",
        33: "as row 29, and the row ends there, before it asks for the file",
        48: "any niceness is accepted",
        49: "its processes are none of the machine's, so the row does not see the one that it waits for",
    }
}
"""Wall -> row -> why it falls there; `docs/sandbox-backends.md` says the same to users."""


def main(sandbox_requirement: str, *rows: str) -> int:
    """Try rows against a sandbox as root, and tell of each."""
    command = command_for("root", "attacks.driver", sandbox_requirement)
    if isinstance(command, str):
        sys.exit(command)
    driver, odd = Driver(command), 0
    try:
        first = driver.start()
        if first["outcome"] != "passed":
            sys.exit(first["detail"])
        for number in map(int, rows or ROWS):
            began_s = time.monotonic()
            told = driver.face(number)
            reason = FALLS_SHORT.get(sandbox_requirement, {}).get(number, "")
            known = told["outcome"] == "skipped" or (told["outcome"] == "failed") == bool(reason)
            odd += not known
            shown = reason if known and reason else told["detail"].strip()[-400:]
            print(
                f"{'' if known else 'NOT AS SAID '}{number:2} {told['outcome']:7} "
                f"{time.monotonic() - began_s:5.1f} s  {ROWS[number].attempt}: {shown}",
                flush=True,
            )
    finally:
        driver.close()
    return 1 if odd else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
