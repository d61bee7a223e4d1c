"""What a run needs of this machine, and whether it is there."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from suture.core.settings import Settings
from suture.errors import SutureError
from suture.models import (
    PROVIDERS,
    choose_model,
    detect_models,
    model_path,
    open_role_models,
    read_calibration,
)
from suture.sandbox import diagnose_backends, discover_interpreter, find_sandbox_factories

NEEDED_BYTES = 500_000_000
"""Room for a few hundred runs."""


@dataclass(frozen=True, kw_only=True)
class Prerequisite:
    """One thing that Suture needs or can use, and whether it is there."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def examine(settings: Settings) -> Iterator[Prerequisite]:
    """Everything a run needs, one after the other."""
    yield Prerequisite(
        name="suture", ok=True, detail=f"on Python {platform.python_version()}, {platform.machine()}"
    )
    yield from _sandbox(settings)
    yield _interpreter()
    yield from _model(settings)
    yield _home(settings.paths.home)


def _sandbox(settings: Settings) -> Iterator[Prerequisite]:
    findings = diagnose_backends(
        find_sandbox_factories(settings.sandbox, settings.keys),
        needed=settings.sandbox.backend,
        minimum=settings.sandbox.minimum_level,
        cache=settings.paths.cache,
    )
    for finding in findings:
        yield Prerequisite(**vars(finding))


def _interpreter() -> Prerequisite:
    try:
        found = discover_interpreter(Path.cwd(), os.environ)
    except SutureError as fault:
        return Prerequisite(name="python", ok=False, detail=fault.message, remedy=fault.remedy)
    return Prerequisite(
        name="python",
        ok=True,
        detail=f"{found.executable} ({found.version}): {found.origin}; for this folder",
    )


def _model(settings: Settings) -> Iterator[Prerequisite]:

    name, why = choose_model(settings)
    if settings.model.name == "auto":
        yield from _looked_for(settings)
    try:
        asyncio.run(open_role_models(settings).close())
    except SutureError as fault:
        yield Prerequisite(
            name="model", ok=False, detail=f"{name} ({why}): {fault.message}", remedy=fault.remedy
        )
        return
    yield Prerequisite(name="model", ok=True, detail=f"{name} ({why}); nothing was asked of it")
    if name.startswith("local:"):
        yield _threads(settings, name.removeprefix("local:"))


def _looked_for(settings: Settings) -> Iterator[Prerequisite]:
    """What `auto` looks for, in its order, and the providers that are used only when they are named."""
    for number, seen in enumerate(detect_models(settings), 1):
        found = f"{seen.model}, " if seen.model else ""
        yield Prerequisite(
            name=f"model, choice {number}", ok=True, detail=f"{seen.label}: {found}{seen.detail}"
        )
    keyed = [name for name in PROVIDERS if getattr(settings.keys, name, None) is not None]
    if keyed:
        names = ", ".join(keyed)
        yield Prerequisite(
            name="keys", ok=True, detail=f"{names}; used only when named, such as --model {keyed[0]}:NAME"
        )


def _threads(settings: Settings, name: str) -> Prerequisite:
    """Threads are measured on first use, since more of them can be slower."""
    if settings.model.threads is not None:
        return Prerequisite(
            name="threads", ok=True, detail=f"{settings.model.threads}, as set in model.threads"
        )
    found = read_calibration(model_path(name, settings.paths.cache), settings.paths.cache)
    if found is None:
        return Prerequisite(
            name="threads", ok=True, detail="not measured yet; the first use does (some seconds)"
        )
    speeds = ", ".join(f"{s.threads}: {s.reply_tokens_per_s:.1f} tokens/s" for s in found.speeds)
    return Prerequisite(name="threads", ok=True, detail=f"{found.threads} on {found.cpu} (measured {speeds})")


def _home(home: Path) -> Prerequisite:
    """Whether runs can be kept: the nearest folder that exists must be writable and have room."""
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(there, os.W_OK):
        return Prerequisite(
            name="home", ok=False, detail=f"{home} cannot be written", remedy="set SUTURE_HOME"
        )
    free_bytes = shutil.disk_usage(there).free
    return Prerequisite(
        name="home",
        ok=free_bytes >= NEEDED_BYTES,
        detail=f"{home}, {free_bytes / 1e9:.1f} GB free",
        remedy="free some disk space, or set SUTURE_HOME to another disk",
    )
