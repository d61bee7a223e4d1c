"""Jobs for `node:test`: one worker process reloads the test files for each candidate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation import Edit, apply_edits
from suture.mutation.tree_sitter.syntax_tree import walk
from suture.mutation.tree_sitter.value_kinds import parse_source_tree

PROGRAMS = (
    "node_trials.cjs", "node_worker.cjs", "node_test_shim.cjs", "node_isolation.cjs", "node_coverage.cjs",
    "node_hooks.mjs",
)  # fmt: skip
LOADER_FLAGS = re.compile(r"--(?:import|require|loader|experimental-loader|conditions)(?:[= ](\S+))|-r (\S+)")
"""Options of Node that load something before the tests, or that choose which file an import finds."""
TSX = re.compile(r"(?:^|[\s/])tsx\s")
RUNTIME = re.compile(r"(?:^|[\s/])(?:node|tsx)\s")
TICK = "globalThis.sutureTick?.()"
"""The call that is inserted into each loop. With it, `node_worker.cjs` interrupts a loop that takes too long.
In other processes nothing defines it."""
SOURCE_ENDINGS = (".js", ".cjs", ".jsx", ".ts", ".cts", ".tsx")
"""Endings of sources that are not modules by their name alone."""
MODULE_TYPE = re.compile(rb"\"type\"\s*:\s*\"module\"")
"""What in a package.json makes all `.js` files of the package modules."""


def build_argv(python: str, lines: Sequence[str], driver_folder: str) -> tuple[str, ...]:
    """Return the command line of the driver: Node with the loaders of the user's command."""
    node_line = next((line for line in lines if RUNTIME.search(line)), "")
    flags = [word for match in LOADER_FLAGS.finditer(node_line) for word in match[0].split(" ")]
    if TSX.search(node_line) and not flags:
        flags = ["--import", "tsx"]
    return ("node", "--enable-source-maps", *flags, f"{driver_folder}/node_trials.cjs")


def build_job(proposal: Proposal, text: str, language: Language) -> dict[str, Any]:
    """Return the job of a candidate: one file with its new source, whose loops can be interrupted."""
    ticks = [
        tick
        for tick in _tick_edits(text, proposal.path, language)
        if not any(edit.start < tick.start < edit.end for edit in proposal.edits)
    ]
    return {"path": proposal.path, "text": apply_edits(text, [*proposal.edits, *ticks])}


def make_interruptible(path: str, text: str, language: Language) -> str:
    """Return the unchanged file with loops that can be interrupted; its line numbers stay the same."""
    return apply_edits(text, _tick_edits(text, path, language))


@lru_cache(maxsize=64)
def _tick_edits(text: str, path: str, language: Language) -> tuple[Edit, ...]:
    """Return insertions that make each loop call `TICK`; none for a file that does not parse."""
    root = parse_source_tree(text, path, language)
    if root.has_error:
        return ()
    insertions: list[tuple[int, str]] = []
    for node in walk(root):
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        if node.type in ("while_statement", "do_statement") and condition is not None:
            insertions.append((condition.start_byte + 1, f"{TICK}, "))
        elif node.type == "for_statement" and condition is not None:
            is_empty = condition.type == "empty_statement"
            insertions.append((condition.start_byte, f"{TICK}, true" if is_empty else f"{TICK}, "))
        elif node.type == "for_in_statement" and body is not None and body.type == "statement_block":
            insertions.append((body.start_byte + 1, f" {TICK};"))
    return tuple(Edit(start=offset, end=offset, text=text) for offset, text in insertions)


def build_common(files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """Return what all jobs share: whether `import`, which caches modules, loads project files."""
    return {"uses_import": uses_es_modules(files)}


def uses_es_modules(files: Mapping[str, bytes]) -> bool:
    """Return whether `import` may load something in a project."""
    return any(
        path.endswith((".mjs", ".mts"))
        or (path.endswith("package.json") and MODULE_TYPE.search(content))
        or (path.endswith(SOURCE_ENDINGS) and b"import(" in content)
        for path, content in files.items()
    )
