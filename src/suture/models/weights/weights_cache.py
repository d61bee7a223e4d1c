"""What a file of weights was when its hash was computed, so that it is computed again only if it changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from suture.core.safe_files import write_atomically
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.models.weights.model_catalogue import CATALOGUE, CatalogueEntry, find_entry


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """A file and its hash.

    Attributes:
        inode: Its number in the file system; another file in its place has another.
        mtime_ns: When it was last written, in nanoseconds of the epoch.
        size_bytes: The file's length.
        sha256: Of its content, in hexadecimal digits.
    """

    inode: int
    mtime_ns: int
    size_bytes: int
    sha256: str


def stamp_path(path: Path) -> Path:
    """Where the stamp of a file lies: beside it."""
    return path.with_name(f".{path.name}.verified")


def sha256_of(path: Path) -> str:
    """The hash of a file; read from its stamp where the file is still the stamped one.

    Raises:
        StorageError: The file cannot be read.
    """
    try:
        stamp = _stamp(path, "")
        with contextlib.suppress(OSError, ValueError, TypeError):
            known = Stamp(**json.loads(stamp_path(path).read_bytes()))
            if known == _stamp(path, known.sha256):
                return known.sha256
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if stamp == _stamp(path, ""):  # nobody wrote to it meanwhile
            write_stamp(path, digest)
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    return digest


def write_stamp(path: Path, sha256: str) -> None:
    """Note the hash of a file as it is now; where that cannot be written, it is computed anew each time."""
    with contextlib.suppress(StorageError):
        write_atomically(stamp_path(path), json.dumps(asdict(_stamp(path, sha256))).encode("ascii"))


def _stamp(path: Path, sha256: str) -> Stamp:
    facts = path.stat()
    return Stamp(inode=facts.st_ino, mtime_ns=facts.st_mtime_ns, size_bytes=facts.st_size, sha256=sha256)


@dataclass(frozen=True, kw_only=True)
class CachedModel:
    """A catalogue entry and how much of it is here.

    Attributes:
        entry: The model's entry in the catalogue.
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
        PrerequisiteError: It is not here, or what is here is not the published file.
        StorageError: It cannot be read.
    """
    found = _look(find_entry(name), cache)
    if found.path is None:
        if weights_path(found.entry, cache).is_file():
            raise PrerequisiteError(
                f"{str(weights_path(found.entry, cache))!r} is not the published file of {name!r}",
                remedy=f"fetch it anew with `suture models pull {name}`",
            )
        raise PrerequisiteError(
            f"the model {name!r} is not here yet", remedy=f"fetch it once with `suture models pull {name}`"
        )
    return found.path


def verified(entry: CatalogueEntry, cache: Path) -> Path | None:
    """The file of the weights where it is the published one; `None` where it is another, or not here.

    Its hash is computed again whenever the file is not the one that was hashed last: seconds for a gigabyte.

    Raises:
        StorageError: It cannot be read.
    """
    path = weights_path(entry, cache)
    if not path.is_file() or path.stat().st_size != entry.size_bytes:
        return None
    return path if sha256_of(path) == entry.sha256 else None


def remove_model(name: str, cache: Path) -> int:
    """Delete a model's weights and what a download left of them.

    Returns:
        Bytes freed.

    Raises:
        UsageError: The catalogue has no such model, or it is being fetched.
        StorageError: A file cannot be deleted.
    """
    entry = find_entry(name)
    if not weights_path(entry, cache).parent.is_dir():
        return 0
    with exclusive(entry, cache, on_wait=partial(_refuse_to_wait, name)):
        weights = weights_path(entry, cache)
        _delete(stamp_path(weights))
        return _delete(weights) + _delete(partial_path(entry, cache))


@contextlib.contextmanager
def exclusive(entry: CatalogueEntry, cache: Path, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a model's files for this process alone.

    Args:
        entry: The model's entry in the catalogue.
        cache: The folder `paths.cache`, where weights are kept.
        on_wait: Called once where another process holds them, before waiting for it; it may raise instead.

    Raises:
        StorageError: The folder cannot be written.
    """
    target = weights_path(entry, cache)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = target.with_name(f".{target.name}.lock").open("ab")
    except OSError as fault:
        raise StorageError(
            f"{str(target.parent)!r} cannot be written: {fault.strerror}",
            remedy="set paths.cache to a folder that you can write",
        ) from fault
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _refuse_to_wait(name: str) -> None:
    raise UsageError(f"the model {name!r} is being fetched by another process", remedy="wait for it to end")


def _delete(path: Path) -> int:
    try:
        size_bytes = path.stat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be deleted: {fault.strerror}") from fault
    return size_bytes


def _look(entry: CatalogueEntry, cache: Path) -> CachedModel:
    unfinished = partial_path(entry, cache)
    return CachedModel(
        entry=entry,
        path=verified(entry, cache),
        partial_bytes=unfinished.stat().st_size if unfinished.is_file() else 0,
    )
