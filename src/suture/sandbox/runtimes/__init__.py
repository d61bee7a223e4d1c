"""Find the host's interpreters and toolchains that a project uses, without starting the project's code."""

from suture.sandbox.runtimes.discovery import (
    discover_interpreter,
    discover_programs,
    discover_toolchain,
    get_own_interpreter,
)

__all__ = ["discover_interpreter", "discover_programs", "discover_toolchain", "get_own_interpreter"]
