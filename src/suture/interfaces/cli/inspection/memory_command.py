"""`suture memory`: show, share and delete what runs have learned."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_answer,
    print_json,
    print_note,
    print_raw,
    print_text,
)

if TYPE_CHECKING:
    from suture.core.settings import Settings
    from suture.storage.database.store import Store
    from suture.storage.memory.memory_items import MemoryItem

HELP = "Manage what runs have learned: list, search, show, forget, learn, export, import, push, pull."
memory_app = typer.Typer(name="memory", help=HELP, no_args_is_help=True)

Key = Annotated[str, Argument(help="The start of a memory's key, as `suture memory list` shows it.")]
Repo = Annotated[str, Argument(help="A data set on the Hugging Face hub: owner/name.")]
Limit = Annotated[int, Option("--limit", min=1, max=1000, help="Max number of memories.")]
DASH = Path("-")
"""Stands for stdin or stdout."""
MAX_TEXT_WIDTH = 70
"""Characters of a memory in a list, chosen so that a line fits an ordinary terminal."""


@memory_app.command()
@handle_errors
def stats(assignments: Assignments = None, as_json: Json = False) -> None:
    """Show how many memories there are."""
    from suture.storage.memory.memory_store import count_by_state

    with _open_store(assignments) as (_, store):
        counts = count_by_state(store)
    rows = [
        (table, ", ".join(f"{count:,} {state}" for state, count in state_counts.items()) or "none")
        for table, state_counts in counts.items()
    ]
    print_answer({"memories": counts}, format_table(rows), as_json=as_json)


@memory_app.command("list")
@handle_errors
def list_command(
    limit: Limit = 50,
    state: Annotated[str, Option("--state", help="active or forgotten.")] = "active",
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """List memories by kind, oldest first."""
    from itertools import islice

    from suture.storage.memory.memory_store import iter_items

    if state not in ("active", "forgotten"):
        raise UsageError(f"unknown state {state!r}", remedy="use active or forgotten")
    with _open_store(assignments) as (_, store):
        _print_items(list(islice(iter_items(store, state=state), limit)), as_json=as_json)


@memory_app.command()
@handle_errors
def search(
    words: Annotated[str, Argument(help="Words of an error, of code or of a task.")],
    limit: Limit = 5,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Find memories that contain all of the words, oldest first."""
    from itertools import islice

    from suture.storage.memory.memory_store import find_with_words

    with _open_store(assignments) as (_, store):
        _print_items(list(islice(find_with_words(store, words.split()), limit)), as_json=as_json)


@memory_app.command()
@handle_errors
def show(key: Key, assignments: Assignments = None, as_json: Json = False) -> None:
    """Show all of one memory."""
    from suture.storage.memory.memory_items import item_to_plain
    from suture.storage.memory.memory_store import find_item

    with _open_store(assignments) as (_, store):
        item = find_item(store, key)
    fields = item_to_plain(item)
    if as_json:
        print_json(fields)
        return
    del fields["search_text"]
    for name in ("text", "patch", "tests", "diagnosis", "counterexample"):
        fields[name] = str(fields[name]).strip()
    lines = {name: str(value) for name, value in fields.items() if value not in ("", {}, [])}
    for name, text in lines.items():
        print_text(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")


@memory_app.command()
@handle_errors
def forget(
    key: Annotated[str | None, Argument(help="The start of a memory's key.")] = None,
    run: Annotated[str, Option("--run", help="Forget everything learned from this run.")] = "",
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Forget a memory, or everything learned from a run: the texts are deleted and do not come back."""
    from suture.storage.memory.memory_store import find_item, forget_items, iter_items

    if (key is None) == (not run):
        raise UsageError("name what to forget", remedy="suture memory forget KEY, or --run RUN")
    with _open_store(assignments) as (_, store):
        items = [find_item(store, key)] if key is not None else list(iter_items(store, state=None, run=run))
        if run and not items:
            raise UsageError(f"there is no memory from run {run!r}", remedy="see `suture memory list --json`")
        count = forget_items(store, [(item.table, item.key) for item in items])
    print_answer({"forgotten": count}, f"{count:,} forgotten", as_json=as_json)


@memory_app.command()
@handle_errors
def learn(assignments: Assignments = None, as_json: Json = False) -> None:
    """Create memories from all runs of this machine; existing memories do not change."""
    from suture.core.ledger import list_runs
    from suture.storage.memory.run_memory import relearn_from_runs

    with _open_store(assignments) as (settings, store):
        runs = list_runs(settings.paths.home)
        counts = relearn_from_runs(store, runs, only_recorded=False, on_fault=print_note)
    # After the number of runs come those of the memories, by table.
    text = f"{counts['runs']:,} runs read: " + ", ".join(f"{counts[n]:,} {n}" for n in list(counts)[1:])
    print_answer(counts, text, as_json=as_json)


@memory_app.command("export")
@handle_errors
def export_command(
    file: Annotated[Path, Argument(help="The file to write; - is stdout.", allow_dash=True)] = DASH,
    assignments: Assignments = None,
) -> None:
    """Write all active memories as JSON lines."""
    from suture.core.safe_files import write_text_atomically
    from suture.storage.memory.memory_exchange import export_lines

    with _open_store(assignments) as (_, store):
        lines = list(export_lines(store))
    if file == DASH:
        print_raw("\n".join(lines))
    else:
        write_text_atomically(file, "".join(f"{line}\n" for line in lines))
        print_note(f"{len(lines) - 1:,} memories written to {file}")


@memory_app.command("import")
@handle_errors
def import_command(
    file: Annotated[
        Path, Argument(help="A file that `suture memory export` wrote; - is stdin.", allow_dash=True)
    ],
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Merge memories of another database; duplicates are skipped."""
    from suture.storage.memory.memory_exchange import import_lines

    with _open_store(assignments) as (_, store):
        if file == DASH:
            counts = import_lines(store, sys.stdin, file_name="stdin")
        else:
            try:
                with file.open(encoding="utf-8", errors="replace") as lines:
                    counts = import_lines(store, lines, file_name=str(file))
            except OSError as fault:
                raise UsageError(
                    f"{str(file)!r} cannot be read: {fault.strerror}",
                    remedy="name a file that `suture memory export` wrote",
                ) from fault
    print_answer(vars(counts), f"{counts.read:,} read, {counts.new:,} new", as_json=as_json)


@memory_app.command()
@handle_errors
def push(repo: Repo, assignments: Assignments = None, as_json: Json = False) -> None:
    """Upload all active memories to a private data set on the Hugging Face hub."""
    from suture.storage.memory.memory_exchange import push_to_hub

    with _open_store(assignments) as (settings, store):
        count = push_to_hub(store, repo, token=_token(settings))
    print_answer({"pushed": count}, f"{count:,} memories uploaded to {repo}", as_json=as_json)


@memory_app.command()
@handle_errors
def pull(repo: Repo, assignments: Assignments = None, as_json: Json = False) -> None:
    """Merge the memories of a data set on the Hugging Face hub."""
    from suture.storage.memory.memory_exchange import pull_from_hub

    with _open_store(assignments) as (settings, store):
        counts = pull_from_hub(store, repo, token=_token(settings))
    print_answer(vars(counts), f"{counts.read:,} read, {counts.new:,} new", as_json=as_json)


@contextmanager
def _open_store(assignments: list[str] | None) -> Iterator[tuple[Settings, Store]]:
    from suture.storage.database.store import open_configured_store

    settings = load_command_settings(Path(), assignments, read_only=True).settings
    with open_configured_store(settings) as store:
        yield settings, store


def _token(settings: Settings) -> str:
    key = settings.keys.huggingface
    return key.get_secret_value() if key is not None else ""


def _print_items(items: list[MemoryItem], *, as_json: bool) -> None:
    from suture.storage.memory.memory_items import item_to_plain

    if as_json:
        print_json([item_to_plain(item) for item in items])
        return
    if not items:
        print_note("no memories")
        return
    rows = []
    for item in items:
        summary = " ".join((item.error_signature or item.text).split())[:MAX_TEXT_WIDTH]
        outcome = "fixed" if item.repaired else "not fixed"
        rows.append((item.key[:10], item.table, item.language, outcome, summary))
    print_text(format_table(rows))
