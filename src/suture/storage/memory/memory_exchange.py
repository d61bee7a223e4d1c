"""Memories as JSON lines: written, read and merged, also by way of a data set on the Hugging Face hub."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.storage.memory.memory_items import Item, item_as_plain, item_of_plain
from suture.storage.memory.memory_store import keep, merge_counts, stored_items

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder


FORMAT = "suture-memory/1"
HUB_FILE = "memory.jsonl"
MOST_LINE_CHARS = 256 * 1024
MOST_ITEMS = 1_000_000
BATCH = 256
EXTRA = "pip install 'suture[hub]'"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What came of an import.

    Attributes:
        read: Memories in the file.
        new: Those that were not known.
    """

    read: int
    new: int


def exported_lines(store: Store) -> Iterator[str]:
    """Every active memory as a line of JSON, after one that names the format. Vectors stay here."""
    yield json.dumps({"format": FORMAT})
    for item in stored_items(store):
        if item.source != "placebo":
            yield json.dumps(item_as_plain(item), sort_keys=True)


def import_lines(store: Store, lines: Iterable[str], embedder: Embedder | None, *, where: str) -> Imported:
    """Bring memories in: what is known is not doubled, and what it was good for elsewhere counts here too.

    All lines are read before the first is stored. What a person made forgotten here stays so.

    Args:
        store: The database.
        lines: As `exported_lines` makes them.
        embedder: Makes vectors of what is new.
        where: The file's name, for messages.

    Raises:
        UsageError: It is no such file.
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    items = _parsed(lines, where)
    new = 0
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        known = merge_counts(store, batch)
        fresh = [item for item in batch if item.key not in known]
        keep(store, fresh, embedder)
        new += len({item.key for item in fresh})
    return Imported(read=len(items), new=new)


def push(store: Store, repo: str, *, token: str, endpoint: str | None = None) -> int:
    """Write every active memory into a private data set on the hub, which is made where it is missing.

    Args:
        store: The database.
        repo: `owner/name`.
        token: Of somebody who may write there.
        endpoint: The hub's address, where not its usual one.

    Returns:
        How many memories there were.

    Raises:
        PrerequisiteError: No token is set, or `huggingface-hub` is not installed.
        StorageError: The hub refused, or cannot be reached.
    """
    lines = list(exported_lines(store))
    content = "".join(f"{line}\n" for line in lines).encode()
    hub = _hub(token, endpoint)
    with _faults_of("push to", repo):
        hub.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        hub.upload_file(
            path_or_fileobj=content,
            path_in_repo=HUB_FILE,
            repo_id=repo,
            repo_type="dataset",
            commit_message=f"{len(lines) - 1} memories of Suture",
        )
    return len(lines) - 1


def pull(
    store: Store, repo: str, embedder: Embedder | None, *, token: str, endpoint: str | None = None
) -> Imported:
    """Bring in what `push` wrote; the arguments and errors are those of `push` and `import_lines`."""
    hub = _hub(token, endpoint)
    with tempfile.TemporaryDirectory() as folder:
        with _faults_of("pull from", repo):
            file = hub.hf_hub_download(repo, HUB_FILE, repo_type="dataset", local_dir=folder)
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            return import_lines(store, lines, embedder, where=f"{repo}/{HUB_FILE}")


def _parsed(lines: Iterable[str], where: str) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(lines, 1):
        try:
            if len(line) > MOST_LINE_CHARS or len(items) > MOST_ITEMS:
                raise ValueError("it is too long")
            plain = json.loads(line)
            if not isinstance(plain, dict):
                raise ValueError("it is no object")
            if number == 1:
                if plain.get("format") != FORMAT:
                    raise ValueError(f"it does not begin with the format {FORMAT!r}")
                continue
            item = item_of_plain(plain)
        except (ValueError, RecursionError) as fault:
            raise UsageError(
                f"line {number} of {where!r} is no memory: {fault}",
                remedy="such files are written by `suture memory export`",
            ) from fault
        if item.state == "active" and item.source != "placebo":
            items.append(item)
    return items


def _hub(token: str, endpoint: str | None) -> Any:
    if not token:
        raise PrerequisiteError(
            "the Hugging Face hub needs a token", remedy="set HF_TOKEN, or the setting keys.huggingface"
        )
    try:
        from huggingface_hub import HfApi
    except ImportError as fault:
        raise PrerequisiteError("the Hugging Face hub needs `huggingface-hub`", remedy=EXTRA) from fault
    return HfApi(endpoint=endpoint, token=token)


@contextlib.contextmanager
def _faults_of(doing: str, repo: str) -> Iterator[None]:
    """Map what the hub's library raises, without its texts: they may quote the token."""
    import httpx

    try:
        yield
    except (OSError, ValueError, httpx.HTTPError) as fault:  # its own errors are among these
        status = getattr(getattr(fault, "response", None), "status_code", None)
        why = f"HTTP {status}" if status else type(fault).__name__
        raise StorageError(
            f"cannot {doing} the data set {repo!r} of the Hugging Face hub: {why}",
            remedy="check the name, the token's rights and the network",
        ) from fault
