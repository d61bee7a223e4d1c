"""The weights in the cache folder: what is there, where, and away with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from suture.errors import PrerequisiteError, StorageError
from suture.models.catalogue import CATALOGUE, CatalogueEntry, find_entry

__all__ = ["CachedModel", "list_models", "model_path", "partial_path", "remove_model", "weights_path"]


@dataclass(frozen=True, kw_only=True)
class CachedModel:
    """A catalogue entry and how much of it is here.

    Attributes:
        entry: The entry.
        path: The verified file, or `None`.
        partial_bytes: What an interrupted download left, to go on from.
    """

    entry: CatalogueEntry
    path: Path | None
    partial_bytes: int


def weights_path(entry: CatalogueEntry, cache: Path) -> Path:
    """Where the finished file lies, or will."""
    return cache.expanduser() / "models" / entry.filename


def partial_path(entry: CatalogueEntry, cache: Path) -> Path:
    """Where a download in progress lies."""
    target = weights_path(entry, cache)
    return target.with_name(target.name + ".partial")


def list_models(cache: Path) -> tuple[CachedModel, ...]:
    """The whole catalogue and what of it is here."""
    return tuple(_look(entry, cache) for entry in CATALOGUE.values())


def model_path(name: str, cache: Path) -> Path:
    """The weights of the model called `name`.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: It is not here.
    """
    found = _look(find_entry(name), cache)
    if found.path is None:
        raise PrerequisiteError(
            f"the model {name!r} is not here yet", remedy=f"fetch it once with `suture models pull {name}`"
        )
    return found.path


def remove_model(name: str, cache: Path) -> int:
    """Delete a model's weights and what a download left of them.

    Returns:
        Bytes freed.

    Raises:
        UsageError: The catalogue has no such model.
        StorageError: A file cannot be deleted.
    """
    entry = find_entry(name)
    freed_bytes = 0
    for path in (weights_path(entry, cache), partial_path(entry, cache)):
        try:
            size_bytes = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as fault:
            raise StorageError(f"{str(path)!r} cannot be deleted: {fault.strerror}") from fault
        freed_bytes += size_bytes
    return freed_bytes


def _look(entry: CatalogueEntry, cache: Path) -> CachedModel:
    path = weights_path(entry, cache)
    partial = partial_path(entry, cache)
    return CachedModel(
        entry=entry,
        # The hash was verified before the file came here; another size means that someone changed it.
        path=path if path.is_file() and path.stat().st_size == entry.size_bytes else None,
        partial_bytes=partial.stat().st_size if partial.is_file() else 0,
    )
