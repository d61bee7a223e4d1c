"""Our own programs behind the wall: what they are given, and how they are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources

from suture.core.records import Language
from suture.core.settings import SandboxSettings
from suture.project.languages import LANGUAGES
from suture.sandbox import LIBRARY, ProgramLimits, RunRequest

PRIVATE_FOLDER = LIBRARY
"""The folder under `BOX` that holds our own files; no candidate may write there."""
ADDRESS_SPACE_MB = 1 << 20
"""Node and Go reserve gigabytes that they never use; what they do use stays within `total_memory_mb`."""
THREADS = 512
"""Each process of a compiler or of node is a dozen threads."""
CACHE_MB = 1024
"""Disk that a compiler's own cache needs, where memory has room for it."""
CORES = 4
"""CPU seconds that a program may use for each of its wall-clock seconds."""
MODULES = (
    *(
        f"split/{name}"
        for name in (
            *("asserts", "candidate_program", "decoding", "encoding", "frames", "judge_program"),
            *("kept_arguments", "nonce_program", "own_ends", "own_failures", "proxies", "remote"),
            *("rewriting", "value_digest", "wire"),
        )
    ),
    "tracing/tracing_program",
)
BOOT = "from suture.judge.{} import main; main()"


def drop_private_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files without those in the folder that is ours."""
    return {path: content for path, content in files.items() if path.partition("/")[0] != PRIVATE_FOLDER}


@cache
def load_program_modules() -> dict[str, bytes]:
    """Our programs as modules behind the wall."""
    folder = resources.files("suture.judge")
    return {f"suture/judge/{name}.py": folder.joinpath(f"{name}.py").read_bytes() for name in MODULES}


def make_program_limits(settings: SandboxSettings, wall_s: float) -> ProgramLimits:
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


def make_test_limits(settings: SandboxSettings, wall_s: float, language: Language) -> ProgramLimits:
    """The limits of a test command; those of other programs than Python are as large as node and Go need."""
    limits = make_program_limits(settings, wall_s)
    if not LANGUAGES[language].program:
        return limits
    return replace(
        limits,
        cpu_s=wall_s * CORES,
        memory_mb=ADDRESS_SPACE_MB,
        processes=max(limits.processes, THREADS),
        disk_mb=max(limits.disk_mb, min(CACHE_MB, limits.total_memory_mb)),
        file_mb=max(limits.file_mb, limits.disk_mb),
    )


def make_program_request(
    name: str, files: Mapping[str, bytes], settings: SandboxSettings, wall_s: float
) -> RunRequest:
    """A request that starts one of our programs on the interpreter that runs Suture, without site-packages.

    Args:
        name: The module below `suture.judge`, such as `split.judge_program`.
        files: What lies beside it.
        settings: The group `sandbox`: time and memory for each program.
        wall_s: The most seconds that it lives.
    """
    return RunRequest(
        python=BOOT.format(name),
        modules=load_program_modules(),
        files=drop_private_files(files),
        limits=make_program_limits(settings, wall_s),
    )
