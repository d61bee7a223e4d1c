"""Check every behaviour of a sandbox: `python -m suture.sandbox.conformance package.module:factory`."""

from __future__ import annotations

import argparse
import importlib
import sys

from suture.errors import SandboxUnavailable
from suture.sandbox.conformance import BEHAVIOURS, Conformance, NotClaimed, Violation


def main(argv: list[str]) -> int:
    """Check all behaviours and print how each went.

    Return the exit code: 1 if a behaviour was violated, 3 if the sandbox cannot be used. A wrong argument ends
    the process with exit code 2.
    """
    parser = argparse.ArgumentParser(prog="python -m suture.sandbox.conformance")
    parser.add_argument(
        "factory", metavar="package.module:factory", help="the function that creates a sandbox"
    )
    parser.add_argument("--interpreter", help="the Python inside the sandbox (default: the running one)")
    parser.add_argument(
        "--no-mounts", action="store_true", help="the sandbox mounts no folder of this machine"
    )
    arguments = parser.parse_args(argv)
    module, _, factory = arguments.factory.partition(":")
    if not factory:
        parser.error(f"{arguments.factory!r} is not of the form package.module:factory")
    create_sandbox = getattr(importlib.import_module(module), factory)
    violations = 0
    with Conformance(
        create_sandbox, interpreter=arguments.interpreter, mounts=not arguments.no_mounts
    ) as conformance:
        for behaviour in BEHAVIOURS:
            try:
                conformance.check(behaviour)
            except Violation as fault:
                violations += 1
                print(f"FAILED   {behaviour.name}: {behaviour.about}\n         {fault}")
            except NotClaimed as reason:
                print(f"skipped  {behaviour.name}: {reason}")
            except SandboxUnavailable as fault:
                print(fault, file=sys.stderr)
                return 3
            else:
                print(f"ok       {behaviour.name}")
    print(f"{len(BEHAVIOURS)} behaviours, {violations} violated")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
