"""Starting Suture's own programs inside the sandbox: their files, their requests and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources

from suture.core.records import Language
from suture.core.settings import SandboxSettings
from suture.judge.tuning import ADDRESS_SPACE_MB, COMPILER_CACHE_MB, CORES_PER_PROGRAM, MIN_COMPILER_PROCESSES
from suture.project.languages import LANGUAGES
from suture.sandbox import LIBRARY, ProgramLimits, RunRequest

PRIVATE_FOLDER = LIBRARY
"""The folder under `BOX` that holds Suture's own files; no candidate may write there."""
MODULES = (
    "split/answer_digest",
    "split/argument_copies",
    "split/argument_protection",
    "split/assert_recorder",
    "split/candidate_program",
    "split/codec",
    "split/inspections",
    "split/judge_program",
    "split/nonce_program",
    "split/program_rewriting",
    "split/program_variables",
    "split/proxies",
    "split/remote_candidate",
    "split/special_numbers",
    "split/wire",
    "tracing/tracing_program",
)
"""Modules below `suture.judge` that run inside the sandbox."""
BOOT = "from suture.judge.{} import main; main()"


def drop_private_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files without those in Suture's own folder."""
    return {path: content for path, content in files.items() if path.partition("/")[0] != PRIVATE_FOLDER}


@cache
def load_program_modules() -> dict[str, bytes]:
    """Return the modules of Suture's own programs, path inside the sandbox -> content."""
    folder = resources.files("suture.judge")
    return {f"suture/judge/{name}.py": folder.joinpath(f"{name}.py").read_bytes() for name in MODULES}


def make_program_limits(settings: SandboxSettings, wall_s: float) -> ProgramLimits:
    """Return the limits of one of Suture's programs from the settings."""
    return ProgramLimits(
        wall_s=wall_s,
        cpu_s=wall_s,
        memory_mb=settings.memory_mb,
        total_memory_mb=settings.total_memory_mb,
        processes=settings.processes,
        disk_mb=settings.disk_mb,
        file_mb=settings.disk_mb,
        output_bytes=settings.output_kb << 10,
    )


def make_test_limits(settings: SandboxSettings, wall_s: float, language: Language) -> ProgramLimits:
    """Return the limits of a test command. Languages other than Python get what node and Go need."""
    limits = make_program_limits(settings, wall_s)
    if not LANGUAGES[language].program:
        return limits
    return replace(
        limits,
        cpu_s=wall_s * CORES_PER_PROGRAM,
        memory_mb=ADDRESS_SPACE_MB,
        processes=max(limits.processes, MIN_COMPILER_PROCESSES),
        disk_mb=max(limits.disk_mb, min(COMPILER_CACHE_MB, limits.total_memory_mb)),
    )


def make_program_request(
    name: str, files: Mapping[str, bytes], settings: SandboxSettings, wall_s: float
) -> RunRequest:
    """Return the request that starts one of Suture's programs, on Suture's interpreter without site-packages.

    Args:
        name: The module below `suture.judge`, such as `split.judge_program`.
    """
    return RunRequest(
        python=BOOT.format(name),
        modules=load_program_modules(),
        files=drop_private_files(files),
        limits=make_program_limits(settings, wall_s),
    )
