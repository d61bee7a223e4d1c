"""Load plugins: objects that installed packages offer through entry points."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from suture.errors import PrerequisiteError, UsageError

__all__ = ["load_plugin", "plugin_names"]


def plugin_names(group: str) -> tuple[str, ...]:
    """Return the sorted names in a group of entry points. Nothing is loaded."""
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
    """Import and return the object behind an entry point.

    Args:
        group: The group of entry points, such as `suture.sandboxes`.
        name: The name of the entry point.
        what: What kind of thing it is, for error messages, such as `sandbox`.
        where: The setting or recipe key that names it, such as `sandbox.backend`.
        built_in: Built-in names, which the error message lists too.
        among: The entry points to choose from; those of all installed packages by default.

    Raises:
        UsageError: No installed package offers this name.
        PrerequisiteError: The plugin cannot be imported.
    """
    points = {point.name: point for point in (entry_points(group=group) if among is None else among)}
    if name not in points:
        known = sorted({*built_in, *points})
        remedy = f"{where} is one of {', '.join(known)}" if known else "no installed package offers one"
        raise UsageError(f"there is no {what} {name!r}", remedy=remedy)
    try:
        return points[name].load()
    except Exception as fault:  # importing a package runs its code, which may raise anything
        raise PrerequisiteError(
            f"the {what} {name!r} does not load: {type(fault).__name__}: {fault}",
            remedy=f"reinstall the package that provides {points[name].value!r}",
        ) from fault
