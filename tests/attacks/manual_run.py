"""Runs the attack list against a sandbox that is too slow for the test suite.

    cd tests && PYTHONPATH=. python -m attacks.manual_run gvisor [ROW ...]

The exit code is 1 if a row fails unexpectedly, or if a row passes that is known to fail.
"""

from __future__ import annotations

import sys
import time

from attacks.identities import command_for
from attacks.matrix import ROWS
from attacks.test_matrix import Driver

__all__ = ["KNOWN_FAILURES", "main"]

KNOWN_FAILURES: dict[str, dict[int, str]] = {
    "gvisor": {
        21: "the program ends the container, which looks like a fault of the container",
        22: "descriptors of the supervisor beside the program can be opened through /proc/PID/fd",
        28: "its /proc does not say whether a program can get new privileges, so the row cannot check it",
        29: "device files can be created in the program's own folders",
        31: "an i386 call is treated as the x86_64 call of its number, and the filter decides on that",
        33: "as row 29; the row ends there, before it requests the file",
        48: "any niceness is accepted",
        49: "its processes are not visible on the host, so the row does not find the one that it waits for",
    }
}
"""Sandbox -> row -> why the attack succeeds; `docs/sandbox.md` documents the same for users."""


def main(backend: str, *rows: str) -> int:
    """Run rows against a sandbox as root and print the result of each."""
    command = command_for("root", "attacks.driver", backend)
    if isinstance(command, str):
        sys.exit(command)
    driver, unexpected_count = Driver(command), 0
    try:
        first = driver.start()
        if first["outcome"] != "passed":
            sys.exit(first["detail"])
        for number in map(int, rows or ROWS):
            start_s = time.monotonic()
            answer = driver.run_row(number)
            reason = KNOWN_FAILURES.get(backend, {}).get(number, "")
            is_expected = answer["outcome"] == "skipped" or (answer["outcome"] == "failed") == bool(reason)
            unexpected_count += not is_expected
            detail = reason if is_expected and reason else answer["detail"].strip()[-400:]
            print(
                f"{'' if is_expected else 'UNEXPECTED '}{number:2} {answer['outcome']:7} "
                f"{time.monotonic() - start_s:5.1f} s  {ROWS[number].attempt}: {detail}",
                flush=True,
            )
    finally:
        driver.close()
    return 1 if unexpected_count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
