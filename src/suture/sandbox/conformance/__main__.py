"""Ask a sandbox for every behaviour: `python -m suture.sandbox.conformance package.module:factory`."""

from __future__ import annotations

import argparse
import importlib
import sys

from suture.errors import SandboxUnavailable
from suture.sandbox.conformance import BEHAVIOURS, Conformance, NotClaimed, Violation


def main(argv: list[str]) -> int:
    """Try all behaviours and say how each went.

    Args:
        argv: What to call for a sandbox, as `package.module:factory`, and options; a wrong one ends the
            process with exit code 2.

    Returns:
        The exit code: 1 where one was violated, 3 where the sandbox cannot be used.
    """
    parser = argparse.ArgumentParser(prog="python -m suture.sandbox.conformance")
    parser.add_argument("factory", metavar="package.module:factory", help="what to call for a sandbox")
    parser.add_argument("--interpreter", help="the Python behind the wall; the one that runs this")
    parser.add_argument("--no-mounts", action="store_true", help="it shows no folder of this machine")
    asked = parser.parse_args(argv)
    module, _, factory = asked.factory.partition(":")
    if not factory:
        parser.error(f"{asked.factory!r} is not of the form package.module:factory")
    open_sandbox = getattr(importlib.import_module(module), factory)
    violated = 0
    with Conformance(open_sandbox, interpreter=asked.interpreter, mounts=not asked.no_mounts) as conformance:
        for behaviour in BEHAVIOURS:
            try:
                conformance.check(behaviour)
            except Violation as fault:
                violated += 1
                print(f"FAILED   {behaviour.name}: {behaviour.about}\n         {fault}")
            except NotClaimed as reason:
                print(f"skipped  {behaviour.name}: {reason}")
            except SandboxUnavailable as fault:
                print(fault, file=sys.stderr)
                return 3
            else:
                print(f"ok       {behaviour.name}")
    print(f"{len(BEHAVIOURS)} behaviours, {violated} violated")
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
