"""Exchange of memory items as JSON lines: export, import, and a data set on the Hugging Face hub.

`huggingface_hub` is imported only to push to or pull from the hub.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.storage.memory.memory_items import MemoryItem, item_to_plain, parse_item
from suture.storage.memory.memory_store import iter_items, merge_counts, store_items

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
class ImportCount:
    """The result of an import.

    Attributes:
        read: Items in the file.
        new: Items that were unknown before.
    """

    read: int
    new: int


def export_lines(store: Store) -> Iterator[str]:
    """Yield each active item, without its vector, as a line of JSON after a line with the format."""
    yield json.dumps({"format": FORMAT})
    for item in iter_items(store):
        if item.source != "placebo":
            yield json.dumps(item_to_plain(item), sort_keys=True)


def import_lines(store: Store, lines: Iterable[str], embedder: Embedder | None, *, where: str) -> ImportCount:
    """Import items: known ones are not duplicated, and their uses elsewhere are added to those here.

    All lines are parsed before the first item is stored. Items that were forgotten here stay forgotten.

    Args:
        store: The database.
        lines: Lines that `export_lines` wrote.
        embedder: Computes vectors of new items.
        where: The file's name, for messages.

    Raises:
        UsageError: The lines are not such an export.
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    items = _parse_lines(lines, where)
    new = 0
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        known = merge_counts(store, batch)
        fresh = [item for item in batch if item.key not in known]
        store_items(store, fresh, embedder)
        new += len({item.key for item in fresh})
    return ImportCount(read=len(items), new=new)


def push_to_hub(store: Store, repo: str, *, token: str, endpoint: str | None = None) -> int:
    """Write all active items into a private data set on the hub, which is created if it is missing.

    Args:
        store: The database.
        repo: `owner/name`.
        token: Token of a user with write access.
        endpoint: The hub's address, if not the usual one.

    Returns:
        How many items were written.

    Raises:
        PrerequisiteError: There is no token, or `huggingface-hub` is not installed.
        StorageError: The hub refused the request or cannot be reached.
    """
    lines = list(export_lines(store))
    content = "".join(f"{line}\n" for line in lines).encode()
    hub = _connect_to_hub(token, endpoint)
    with _map_hub_errors("push to", repo):
        hub.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        hub.upload_file(
            path_or_fileobj=content,
            path_in_repo=HUB_FILE,
            repo_id=repo,
            repo_type="dataset",
            commit_message=f"{len(lines) - 1} memories of Suture",
        )
    return len(lines) - 1


def pull_from_hub(
    store: Store, repo: str, embedder: Embedder | None, *, token: str, endpoint: str | None = None
) -> ImportCount:
    """Import what `push_to_hub` wrote; arguments and errors are those of `push_to_hub` and `import_lines`."""
    hub = _connect_to_hub(token, endpoint)
    with tempfile.TemporaryDirectory() as folder:
        with _map_hub_errors("pull from", repo):
            file = hub.hf_hub_download(repo, HUB_FILE, repo_type="dataset", local_dir=folder)
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            return import_lines(store, lines, embedder, where=f"{repo}/{HUB_FILE}")


def _parse_lines(lines: Iterable[str], where: str) -> list[MemoryItem]:
    items: list[MemoryItem] = []
    for number, line in enumerate(lines, 1):
        try:
            if len(line) > MOST_LINE_CHARS or len(items) > MOST_ITEMS:
                raise ValueError("it is too long")
            plain = json.loads(line)
            if not isinstance(plain, dict):
                raise ValueError("it is not an object")
            if number == 1:
                if plain.get("format") != FORMAT:
                    raise ValueError(f"it does not start with the format {FORMAT!r}")
                continue
            item = parse_item(plain)
        except (ValueError, RecursionError) as fault:
            raise UsageError(
                f"line {number} of {where!r} is not a memory item: {fault}",
                remedy="such files are written by `suture memory export`",
            ) from fault
        if item.state == "active" and item.source != "placebo":
            items.append(item)
    return items


def _connect_to_hub(token: str, endpoint: str | None) -> Any:
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
def _map_hub_errors(doing: str, repo: str) -> Iterator[None]:
    """Map the exceptions of the hub's library without their texts, which may quote the token."""
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
