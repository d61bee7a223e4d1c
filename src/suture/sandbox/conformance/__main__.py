"""Ask a sandbox for every behaviour: `python -m suture.sandbox.conformance package.module:factory`."""

from __future__ import annotations

import importlib
import sys

from suture.errors import SandboxUnavailable
from suture.sandbox.conformance import BEHAVIOURS, Conformance, NotClaimed, Violation

__all__ = ["main"]


def main(argv: list[str]) -> int:
    """Try all behaviours and say how each went.

    Args:
        argv: What to call for a sandbox, as `package.module:factory`.

    Returns:
        The exit code: 1 where one was violated, 2 for a wrong argument, 3 where the sandbox cannot be used.
    """
    module, _, factory = argv[0].partition(":") if len(argv) == 1 else ("", "", "")
    if not factory:
        print("usage: python -m suture.sandbox.conformance package.module:factory", file=sys.stderr)
        return 2
    violated = 0
    with Conformance(getattr(importlib.import_module(module), factory)) as conformance:
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
