"""`suture doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Model, Set, load
from suture.cli.terminal.output import answer, answer_json, note, table
from suture.errors import PrerequisiteError, SutureError
from suture.narrative.lines import one_line

if TYPE_CHECKING:
    from suture.settings import Settings

NEEDED_BYTES = 500_000_000
"""Room for a few hundred runs."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the report."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


@reports_faults
def doctor(model: Model = None, assignments: Set = None, as_json: Json = False, debug: Debug = False) -> None:
    """Say what is there, what is missing, and how to get it."""
    loaded = load(Path(), assignments, looks=True, model__name=model)
    for remark in loaded.notes:
        note(f"note: {remark}")
    rows = list(examine(loaded.settings))
    if as_json:
        answer_json([asdict(row) for row in rows])
    else:
        answer(table([(_state(row), row.name, row.detail) for row in rows]))
        for row in rows:
            if not row.ok and row.remedy:
                answer(one_line(f"to get {row.name}: {row.remedy}"))
    if not all(row.ok for row in rows if row.needed):
        raise typer.Exit(PrerequisiteError.exit_code)


def examine(settings: Settings) -> Iterator[Row]:
    """Everything a run needs, one after the other."""
    yield Row(name="suture", ok=True, detail=f"on Python {platform.python_version()}, {platform.machine()}")
    yield from _sandbox(settings)
    yield _interpreter()
    yield from _model(settings)
    yield _home(settings.paths.home)


def _state(row: Row) -> str:
    if row.ok:
        return "ok"
    return "MISSING" if row.needed else "absent"


def _sandbox(settings: Settings) -> Iterator[Row]:
    from suture.sandbox import diagnose_backends, sandbox_makers

    findings = diagnose_backends(
        sandbox_makers(settings.sandbox, settings.keys),
        needed=settings.sandbox.backend,
        minimum=settings.sandbox.minimum_level,
        cache=settings.paths.cache,
    )
    for finding in findings:
        yield Row(**vars(finding))


def _interpreter() -> Row:
    from suture.sandbox import discover_interpreter

    try:
        found = discover_interpreter(Path.cwd(), os.environ)
    except SutureError as fault:
        return Row(name="python", ok=False, detail=fault.message, remedy=fault.remedy)
    return Row(
        name="python",
        ok=True,
        detail=f"{found.executable} ({found.version}): {found.origin}; for this folder",
    )


def _model(settings: Settings) -> Iterator[Row]:
    import asyncio

    from suture.models import choose_model, open_models

    name, why = choose_model(settings)
    if settings.model.name == "auto":
        yield from _looked_for(settings)
    try:
        asyncio.run(open_models(settings).close())
    except SutureError as fault:
        yield Row(name="model", ok=False, detail=f"{name} ({why}): {fault.message}", remedy=fault.remedy)
        return
    yield Row(name="model", ok=True, detail=f"{name} ({why}); nothing was asked of it")
    if name.startswith("local:"):
        yield _threads(settings, name.removeprefix("local:"))


def _looked_for(settings: Settings) -> Iterator[Row]:
    """What `auto` looks for, in its order, and the providers that are used only when they are named."""
    from suture.models import PROVIDERS, detect_models

    for number, seen in enumerate(detect_models(settings), 1):
        found = f"{seen.model}, " if seen.model else ""
        yield Row(name=f"auto {number}", ok=True, detail=f"{seen.what}: {found}{seen.detail}")
    keyed = [name for name in PROVIDERS if getattr(settings.keys, name, None) is not None]
    if keyed:
        names = ", ".join(keyed)
        yield Row(
            name="keys", ok=True, detail=f"{names}; used only when named, such as --model {keyed[0]}:NAME"
        )


def _threads(settings: Settings, name: str) -> Row:
    """Threads are measured on first use, since more of them can be slower."""
    from suture.models import model_path, read_calibration

    if settings.model.threads is not None:
        return Row(name="threads", ok=True, detail=f"{settings.model.threads}, as set in model.threads")
    found = read_calibration(model_path(name, settings.paths.cache), settings.paths.cache)
    if found is None:
        return Row(name="threads", ok=True, detail="not measured yet; the first use does (some seconds)")
    speeds = ", ".join(f"{s.threads}: {s.reply_tokens_per_s:.1f} tokens/s" for s in found.speeds)
    return Row(name="threads", ok=True, detail=f"{found.threads} on {found.cpu} (measured {speeds})")


def _home(home: Path) -> Row:
    """Whether runs can be kept: the nearest folder that exists must be writable and have room."""
    import shutil

    there = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(there, os.W_OK):
        return Row(name="home", ok=False, detail=f"{home} cannot be written", remedy="set SUTURE_HOME")
    free_bytes = shutil.disk_usage(there).free
    return Row(
        name="home",
        ok=free_bytes >= NEEDED_BYTES,
        detail=f"{home}, {free_bytes / 1e9:.1f} GB free",
        remedy="free some disk space, or set SUTURE_HOME to another disk",
    )
