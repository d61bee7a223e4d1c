"""What installed packages bring: found by an entry point's group and name, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from suture.errors import PrerequisiteError, UsageError

__all__ = ["load_plugin", "plugin_names"]


def plugin_names(group: str) -> tuple[str, ...]:
    """The names that installed packages bring in a group of entry points, sorted; nothing is loaded."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def load_plugin(
    group: str,
    name: str,
    *,
    what: str,
    where: str,
    ours: Iterable[str] = (),
    among: Iterable[EntryPoint] | None = None,
) -> Any:
    """What a package's entry point names.

    Args:
        group: Of entry points, such as `suture.sandboxes`.
        name: The entry point's.
        what: What is looked for, in the words of the message, such as `sandbox`.
        where: The setting or the key of a recipe that names it, such as `sandbox.backend`.
        ours: Names that need no package, for the remedy.
        among: The entry points, where they are known already.

    Raises:
        UsageError: No installed package brings one of this name.
        PrerequisiteError: The package that brings it does not load.
    """
    brought = {point.name: point for point in (entry_points(group=group) if among is None else among)}
    if name not in brought:
        known = sorted({*ours, *brought})
        there = f"{where} is one of {', '.join(known)}" if known else "no installed package brings one"
        raise UsageError(f"there is no {what} {name!r}", remedy=there)
    try:
        return brought[name].load()
    except Exception as fault:  # importing a package runs its code, which may raise anything
        raise PrerequisiteError(
            f"the {what} {name!r} does not load: {type(fault).__name__}: {fault}",
            remedy=f"install {brought[name].value!r} anew",
        ) from fault
