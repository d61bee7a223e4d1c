"""Examine what a run needs on this machine: the sandbox, Python, a model, and disk space."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import Iterator
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
    read_threads,
)
from suture.sandbox import Requirement, diagnose_backends, discover_interpreter, find_sandbox_factories

MIN_FREE_BYTES = 500_000_000
"""Disk space for a few hundred runs. Chosen by judgement; not measured."""


def examine_machine(settings: Settings) -> Iterator[Requirement]:
    """Yield everything that a run needs, one after the other."""
    yield Requirement(
        name="suture", ok=True, detail=f"on Python {platform.python_version()}, {platform.machine()}"
    )
    yield from diagnose_backends(
        find_sandbox_factories(settings.sandbox, settings.keys),
        needed=settings.sandbox.backend,
        minimum=settings.sandbox.minimum_level,
        cache=settings.paths.cache,
    )
    yield _examine_interpreter()
    yield from _examine_model(settings)
    yield _examine_home(settings.paths.home)


def _examine_interpreter() -> Requirement:
    try:
        interpreter = discover_interpreter(Path.cwd(), os.environ)
    except SutureError as fault:
        return Requirement(name="python", ok=False, detail=fault.message, remedy=fault.remedy)
    detail = f"{interpreter.executable} ({interpreter.version}): {interpreter.origin}; for this folder"
    return Requirement(name="python", ok=True, detail=detail)


def _examine_model(settings: Settings) -> Iterator[Requirement]:
    name, why = choose_model(settings)
    if settings.model.name == "auto":
        yield from _list_choices(settings)
    try:
        asyncio.run(open_role_models(settings).close())
    except SutureError as fault:
        yield Requirement(
            name="model", ok=False, detail=f"{name} ({why}): {fault.message}", remedy=fault.remedy
        )
        return
    yield Requirement(name="model", ok=True, detail=f"{name} ({why}); it was not called")
    if name.startswith("local:"):
        yield _examine_threads(settings, name.removeprefix("local:"))


def _list_choices(settings: Settings) -> Iterator[Requirement]:
    """Yield what `auto` looks for, in its order, and the providers that are used only when they are named."""
    for number, choice in enumerate(detect_models(settings), 1):
        model = f"{choice.model}, " if choice.model else ""
        detail = f"{choice.label}: {model}{choice.detail}"
        yield Requirement(name=f"model, choice {number}", ok=bool(choice.model), detail=detail, needed=False)
    providers = [name for name in PROVIDERS if getattr(settings.keys, name, None) is not None]
    if providers:
        detail = f"{', '.join(providers)}; used only when named, such as --model {providers[0]}:NAME"
        yield Requirement(name="keys", ok=True, detail=detail)


def _examine_threads(settings: Settings, name: str) -> Requirement:
    """Return the number of threads, which `models pull` measures, because more threads can be slower."""
    cache = settings.paths.cache
    if settings.model.threads is not None:
        detail = f"{settings.model.threads}, as set in model.threads"
    elif (calibration := read_calibration(model_path(name, cache), cache)) is None:
        threads, _ = read_threads(model_path(name, cache), cache)
        detail = f"{threads}, half of the cores; `suture models pull {name}` measures the best number"
    else:
        speeds = ", ".join(f"{s.reply_tokens_per_s:.1f} with {s.threads}" for s in calibration.speeds)
        detail = f"{calibration.threads} on {calibration.cpu} (tokens per second: {speeds})"
    return Requirement(name="threads", ok=True, detail=detail)


def _examine_home(home: Path) -> Requirement:
    """Return whether runs can be stored: the nearest existing folder must be writable and have free space."""
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        return Requirement(
            name="home", ok=False, detail=f"{home} cannot be written", remedy="set SUTURE_HOME"
        )
    free_bytes = shutil.disk_usage(existing).free
    return Requirement(
        name="home",
        ok=free_bytes >= MIN_FREE_BYTES,
        detail=f"{home}, {free_bytes / 1e9:.1f} GB free",
        remedy="free some disk space, or set SUTURE_HOME to another disk",
    )
