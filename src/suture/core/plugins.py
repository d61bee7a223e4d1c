"""Load plugins: objects that installed Python packages register as entry points in their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from suture.errors import PrerequisiteError, UsageError

__all__ = ["load_plugin", "plugin_names"]


def plugin_names(group: str) -> tuple[str, ...]:
    """Return the names of the entry points in a group, sorted, without loading any of them."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def load_plugin(
    group: str,
    name: str,
    *,
    what: str,
    where: str,
    built_in: Iterable[str] = (),
    among: Iterable[EntryPoint] | None = None,
) -> Any:
    """Import and return the object that an entry point names.

    Args:
        group: The group of entry points, such as `suture.sandboxes`.
        name: The name of the entry point.
        what: The kind of plugin, for error messages, such as `sandbox`.
        where: The setting or recipe key by which the user chose the plugin, such as `sandbox.backend`.
        built_in: Names that need no plugin. The error message for an unknown name lists them, too.
        among: The entry points to choose from. By default, those of all installed packages.

    Raises:
        UsageError: No installed package offers this name.
        PrerequisiteError: The plugin cannot be imported.
    """
    entries = {point.name: point for point in (entry_points(group=group) if among is None else among)}
    if name not in entries:
        valid_names = sorted({*built_in, *entries})
        remedy = (
            f"{where} is one of {', '.join(valid_names)}"
            if valid_names
            else "no installed package offers one"
        )
        raise UsageError(f"there is no {what} {name!r}", remedy=remedy)
    try:
        return entries[name].load()
    except Exception as fault:  # importing a package runs its code, which may raise anything
        raise PrerequisiteError(
            f"the {what} {name!r} does not load: {type(fault).__name__}: {fault}",
            remedy=f"reinstall the package that provides {entries[name].value!r}",
        ) from fault
