"""Write reports to files in a checkout, whose links could redirect them, and to the outputs of a CI step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from suture.errors import StorageError, UsageError


def refuse_links(folder: Path, checkout: Path) -> None:
    """Refuse a report folder that a link would redirect: a checkout may contain links to anywhere.

    Args:
        folder: The report folder, which may not exist yet.
        checkout: The folder of the checkout. Links above it are the user's own and are allowed.

    Raises:
        UsageError: The folder, an entry of it, or a folder above it in the checkout is a link, or something else is in
            its place.
    """
    absolute = Path.cwd() / folder
    link = _find_link(absolute, checkout)
    if link is None and os.path.lexists(absolute) and not absolute.is_dir():
        raise UsageError(
            f"{str(folder)!r} is not a folder", remedy="remove it, or name another folder: --out"
        )
    entries = sorted(absolute.iterdir()) if link is None and absolute.is_dir() else []
    link = link or next((path for path in entries if path.is_symlink()), None)
    if link is not None:
        raise UsageError(
            f"{str(folder)!r} cannot take the reports: {str(link)!r} is a symbolic link",
            remedy="remove the link from the checkout, or name another folder: --out",
        )


def refuse_linked_file(path: Path, checkout: Path) -> None:
    """Refuse a file for a report that a link in a checkout would redirect, or that is not a regular file.

    Raises:
        UsageError: The file or a folder above it in the checkout is a link, or something else is in its place.
    """
    absolute = Path.cwd() / path
    link = _find_link(absolute, checkout)
    if link is not None:
        raise UsageError(
            f"{str(path)!r} cannot take a report: {str(link)!r} is a symbolic link",
            remedy="remove the link, or name another file",
        )
    if os.path.lexists(absolute) and not absolute.is_file():
        raise UsageError(f"{str(path)!r} is not a file", remedy="name another file")


def _find_link(absolute: Path, checkout: Path) -> Path | None:
    """Return the first part of a path that is a link and that a project can have placed."""
    places = (Path.cwd().resolve(), checkout.resolve())
    # Each part is looked at as it is written: resolving `a/..` first would hide that `a` is a link.
    for path in (*reversed(absolute.parents), absolute):
        # A folder in the checkout or in the current folder, where a project can place links.
        is_ours = path == absolute or any(path.parent.resolve().is_relative_to(place) for place in places)
        if is_ours and path.is_symlink():
            return path
    return None


def write_report_file(path: Path, text: str, checkout: Path) -> None:
    """Write a report; an existing file is replaced.

    Raises:
        UsageError: As `refuse_linked_file` does.
        StorageError: The file cannot be written.
    """
    refuse_linked_file(path, checkout)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with path.open("xb") as file:  # mode `x` follows no link
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault


def write_step_outputs(outputs: Mapping[str, str], summary: str, environ: Mapping[str, str]) -> None:
    """Append a step's outputs and its summary to the files that GitHub names; without such files do nothing."""
    # The word after `<<` ends a multi-line value. It is random, so that nobody can put it into the value in advance.
    word = secrets.token_hex(16)
    lines = "".join(
        f"{name}<<{word}\n{text.rstrip()}\n{word}\n" if "\n" in text else f"{name}={text}\n"
        for name, text in outputs.items()
    )
    for variable, content in (("GITHUB_OUTPUT", lines), ("GITHUB_STEP_SUMMARY", summary)):
        if not environ.get(variable):
            continue
        try:
            with Path(environ[variable]).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(content)
        except OSError as fault:
            raise StorageError(f"{variable} cannot be written: {fault.strerror}") from fault
