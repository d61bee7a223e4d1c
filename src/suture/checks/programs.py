"""Our own programs behind the wall: what they are given, and how they are started."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from suture.sandbox import LIBRARY, ProgramLimits, RunRequest
from suture.settings import SandboxSettings

__all__ = ["PRIVATE", "own_library", "own_program", "program_limits", "without_private"]

PRIVATE = LIBRARY
"""The folder under `BOX` that holds our own files; no candidate may write there."""
MODULES = ("asserts", "frames", "nonce_program", "split_candidate", "split_judge", "wire")
BOOT = "from suture.checks.{} import main; main()"


def without_private(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files without those in the folder that is ours."""
    return {path: content for path, content in files.items() if path.partition("/")[0] != PRIVATE}


@cache
def own_library() -> dict[str, bytes]:
    """Our programs as modules behind the wall."""
    folder = resources.files("suture.checks")
    return {f"suture/checks/{name}.py": folder.joinpath(f"{name}.py").read_bytes() for name in MODULES}


def program_limits(settings: SandboxSettings, wall_s: float) -> ProgramLimits:
    """The limits of one program behind the wall, in the settings' words."""
    return ProgramLimits(
        wall_s=wall_s,
        cpu_s=wall_s,
        memory_mb=settings.memory_mb,
        total_memory_mb=settings.total_memory_mb,
        processes=settings.processes,
        disk_mb=settings.disk_mb,
        output_bytes=settings.output_kb << 10,
    )


def own_program(
    name: str, files: Mapping[str, bytes], settings: SandboxSettings, wall_s: float
) -> RunRequest:
    """A request that starts one of our programs on the interpreter that runs Suture, without site-packages.

    Args:
        name: The module, such as `split_judge`.
        files: What lies beside it.
        settings: The wall.
        wall_s: The most seconds that it lives.
    """
    return RunRequest(
        python=BOOT.format(name),
        modules=own_library(),
        files=without_private(files),
        limits=program_limits(settings, wall_s),
    )
