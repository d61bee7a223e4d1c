"""Bring a model's weights into the cache: verified, whole, or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from suture.errors import PrerequisiteError, StorageError
from suture.models.weights.cache import exclusive, partial_path, verified, weights_path
from suture.models.weights.catalogue import CatalogueEntry, Source, find_entry
from suture.models.weights.fetch import (
    CHUNK_BYTES,
    SourceFailed,
    describe,
    free_bytes,
    read_source,
    scratch,
    scratch_bytes,
)
from suture.models.weights.stamps import write_stamp

Progress = Callable[[int, int], None]
"""Told `(done_bytes, total_bytes)` after each piece."""
Say = Callable[[str], None]
"""Told one line for people: which source, and why another."""

FREE_SPACE = "free some disk space, or set paths.cache to another disk"


class WrongFile(PrerequisiteError):
    """What came does not have the published hash."""


def _silent(*_: object) -> None:
    return None


def pull_model(
    name: str, cache: Path, progress: Progress = _silent, say: Say = _silent, *, token: str = ""
) -> Path:
    """Fetch a model of the catalogue where it is not here yet; a broken download goes on where it broke.

    Args:
        name: Its name in the catalogue.
        cache: The folder `paths.cache`, where weights are kept.
        progress: Told how far it is.
        say: Told which source is asked, and why.
        token: For the Hugging Face hub; the one that its own tools have stored where not given.

    Returns:
        The verified file.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: No source can give it, or what came is not the published file.
        StorageError: The disk is full or cannot be written.
    """
    return pull_entry(find_entry(name), cache, progress=progress, say=say, token=token)


def pull_entry(
    entry: CatalogueEntry,
    cache: Path,
    *,
    progress: Progress = _silent,
    say: Say = _silent,
    token: str = "",
    free_bytes: Callable[[Path], int] = free_bytes,
) -> Path:
    """The same for an entry that need not be in the catalogue; see `pull_model`.

    Args:
        entry: The model's entry in the catalogue.
        cache: The folder `paths.cache`, where weights are kept.
        progress: Told how far it is.
        say: Told which source is asked, and why.
        token: For the Hugging Face hub.
        free_bytes: Tells the space left on a folder's disk.
    """
    target, unfinished = weights_path(entry, cache), partial_path(entry, cache)
    waiting = partial(say, f"another process is fetching {entry.name}: waiting for it")
    with exclusive(entry, cache, on_wait=waiting), scratch(unfinished.with_suffix(".wheels")) as work_dir:
        if verified(entry, cache) is not None:
            return target
        try:
            read = partial(read_source, size_bytes=entry.size_bytes, work_dir=work_dir, token=token)
            digest = _complete(entry, unfinished, read, progress, say, free_bytes)
            if digest != entry.sha256:
                raise WrongFile(
                    f"what came for {entry.name!r} is not the published file and was deleted "
                    f"(SHA-256 {digest})",
                    remedy="pull it again; if that does not help, the sources hold another file now",
                )
            with _on_disk(target):
                unfinished.replace(target)
                write_stamp(target, digest)
        except (StorageError, WrongFile):
            unfinished.unlink(missing_ok=True)
            raise
    return target


def _complete(
    entry: CatalogueEntry,
    unfinished: Path,
    read: Callable[..., Iterator[bytes]],
    progress: Progress,
    say: Say,
    free_bytes: Callable[[Path], int],
) -> str:
    """Append what is missing, from the sources in order; answers the SHA-256 of the whole file."""
    digest = hashlib.sha256()
    reasons: list[str] = []
    with _on_disk(unfinished), unfinished.open("a+b") as file:
        done_bytes = _hash_what_is_here(file, digest, entry.size_bytes)
        progress(done_bytes, entry.size_bytes)
        for source in entry.sources:
            if done_bytes >= entry.size_bytes:
                break
            say(f"fetching {entry.name} from {describe(source)}")
            _require_space(entry, source, done_bytes, free_bytes(unfinished.parent))
            try:
                for chunk in read(source, offset=done_bytes):
                    file.write(chunk)
                    digest.update(chunk)
                    done_bytes += len(chunk)
                    progress(done_bytes, entry.size_bytes)
                    if done_bytes > entry.size_bytes:
                        break  # another file; the hash will say so
            except SourceFailed as fault:
                reasons.append(f"{describe(source)}: {fault.message}")
                say(f"not from {reasons[-1]}")
        file.flush()
        os.fsync(file.fileno())
    if done_bytes < entry.size_bytes:
        raise PrerequisiteError(
            f"{entry.name!r} cannot be fetched. " + "; ".join(reasons or ["the sources ended early"]),
            remedy="check the network and pip's settings, then pull again: it goes on where it broke off",
        )
    return digest.hexdigest()


def _hash_what_is_here(file: BinaryIO, digest: hashlib._Hash, size_bytes: int) -> int:
    """Take in what an interrupted download left; answers how much that is."""
    if file.seek(0, os.SEEK_END) > size_bytes:
        file.truncate(0)
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
    return file.tell()


def _require_space(entry: CatalogueEntry, source: Source, done_bytes: int, free: int) -> None:
    needed = entry.size_bytes - done_bytes + scratch_bytes(source)
    if free < needed:
        raise StorageError(
            f"{entry.name!r} needs {needed >> 20} MiB of disk and {free >> 20} MiB are free",
            remedy=FREE_SPACE,
        )


@contextlib.contextmanager
def _on_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}", remedy=FREE_SPACE) from fault
