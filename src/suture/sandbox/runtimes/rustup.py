"""The toolchain that rustup's programs start.

With rustup, `cargo` on PATH is a link to rustup itself, which needs the user's home to find the real program.
"""

from __future__ import annotations

import glob
import tomllib
from collections.abc import Mapping
from pathlib import Path

from suture.errors import PrerequisiteError


def follow_rustup(program: Path, environ: Mapping[str, str]) -> Path:
    """Return the program of rustup's toolchain that a link to rustup starts; any other program as it is.

    The toolchain is that of `RUSTUP_TOOLCHAIN`, else the user's default. A toolchain that a project names is not
    considered.

    Raises:
        PrerequisiteError: There is no such toolchain.
    """
    if program.resolve().name != "rustup":
        return program
    home = Path(environ.get("RUSTUP_HOME") or f"{environ.get('HOME', '')}/.rustup")
    try:
        settings = tomllib.loads((home / "settings.toml").read_text("utf-8"))
    except (OSError, ValueError):
        settings = {}
    name = environ.get("RUSTUP_TOOLCHAIN") or str(settings.get("default_toolchain", ""))
    # The folder of `stable` is named `stable-x86_64-unknown-linux-gnu`.
    folders = [home / "toolchains" / name, *sorted((home / "toolchains").glob(f"{glob.escape(name)}-*"))]
    programs = [folder / "bin" / program.name for folder in folders if name]
    real = next(filter(Path.is_file, programs), None)
    if real is None:
        is_set = bool(environ.get("RUSTUP_TOOLCHAIN"))
        raise PrerequisiteError(
            f"rustup has no {program.name!r} in its toolchain {name or '(none)'!r}",
            remedy="unset RUSTUP_TOOLCHAIN" if is_set else "choose a toolchain: rustup default stable",
        )
    return real
