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

from suture.core.installation import format_install_command
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.storage.memory.memory_items import MemoryItem, item_to_plain, parse_item
from suture.storage.memory.memory_store import count_by_state, iter_items, store_items

if TYPE_CHECKING:
    from suture.storage.database.store import Store


FORMAT = "suture-memory/1"
HUB_FILE = "memory.jsonl"
MAX_LINE_CHARS = 256 * 1024
"""Limits of an imported file, because it may come from anybody. Chosen by judgement; not measured."""
MAX_ITEMS = 1_000_000
"""See `MAX_LINE_CHARS`."""
BATCH = 256
"""Items that are stored at a time. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class ImportCount:
    """How many items a file had, and how many of them were unknown before."""

    read: int
    new: int


def export_lines(store: Store) -> Iterator[str]:
    """Yield a line with the format, then each active item, without its vector, as a line of JSON."""
    yield json.dumps({"format": FORMAT})
    for item in iter_items(store):
        yield json.dumps(item_to_plain(item), sort_keys=True)


def import_lines(store: Store, lines: Iterable[str], *, file_name: str) -> ImportCount:
    """Import the lines of an export. Known items are not stored again.

    All lines are parsed before the first item is stored. Items that were forgotten in this database stay forgotten.

    Raises:
        UsageError: The lines are not such an export; the message names the file.
    """
    items = _parse_lines(lines, file_name)
    known_count = _count_items(store)
    for start in range(0, len(items), BATCH):
        store_items(store, items[start : start + BATCH])
    return ImportCount(read=len(items), new=_count_items(store) - known_count)


def _count_items(store: Store) -> int:
    return sum(sum(counts.values()) for counts in count_by_state(store).values())


def push_to_hub(store: Store, repo: str, *, token: str, endpoint: str | None = None) -> int:
    """Write all active items into a private data set on the hub, and return how many.

    Args:
        store: The database.
        repo: `owner/name`; the data set is created if it is missing.
        token: Token of a user with write access.
        endpoint: The hub's address, if not the usual one.
    """
    lines = list(export_lines(store))
    item_count = len(lines) - 1  # the first line is the format
    content = "".join(f"{line}\n" for line in lines).encode()
    hub = _connect_to_hub(token, endpoint)
    with _map_hub_errors("push to", repo):
        hub.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        hub.upload_file(
            path_or_fileobj=content,
            path_in_repo=HUB_FILE,
            repo_id=repo,
            repo_type="dataset",
            commit_message=f"{item_count} memories of Suture",
        )
    return item_count


def pull_from_hub(store: Store, repo: str, *, token: str, endpoint: str | None = None) -> ImportCount:
    """Import what `push_to_hub` wrote; arguments and errors are those of `push_to_hub` and `import_lines`."""
    hub = _connect_to_hub(token, endpoint)
    with tempfile.TemporaryDirectory() as folder:
        with _map_hub_errors("pull from", repo):
            file = hub.hf_hub_download(repo, HUB_FILE, repo_type="dataset", local_dir=folder)
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            return import_lines(store, lines, file_name=f"{repo}/{HUB_FILE}")


def _parse_lines(lines: Iterable[str], file_name: str) -> list[MemoryItem]:
    items: list[MemoryItem] = []
    for number, line in enumerate(lines, 1):
        try:
            if len(line) > MAX_LINE_CHARS:
                raise ValueError("it is too long")
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError("it is not an object")
            if number == 1:
                if values.get("format") != FORMAT:
                    raise ValueError(f"it does not start with the format {FORMAT!r}")
                continue
            item = parse_item(values)
        except (ValueError, RecursionError) as fault:
            raise UsageError(
                f"line {number} of {file_name!r} is not a memory item: {fault}",
                remedy="such files are written by `suture memory export`",
            ) from fault
        if item.state == "active":
            if len(items) == MAX_ITEMS:
                raise UsageError(
                    f"{file_name!r} holds more than {MAX_ITEMS} memory items", remedy="import it in parts"
                )
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
        raise PrerequisiteError(
            "the Hugging Face hub needs `huggingface-hub`", remedy=format_install_command("hub")
        ) from fault
    return HfApi(endpoint=endpoint, token=token)


@contextlib.contextmanager
def _map_hub_errors(action: str, repo: str) -> Iterator[None]:
    """Map the exceptions of the hub's library without their messages, which may quote the token."""
    import httpx

    try:
        yield
    except (OSError, ValueError, httpx.HTTPError) as fault:  # its own errors are among these
        status = getattr(getattr(fault, "response", None), "status_code", None)
        reason = f"HTTP {status}" if status else type(fault).__name__
        raise StorageError(
            f"cannot {action} the data set {repo!r} of the Hugging Face hub: {reason}",
            remedy="check the name, the token's rights and the network",
        ) from fault
