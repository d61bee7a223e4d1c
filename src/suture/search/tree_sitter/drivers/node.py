"""Candidates on `node:test`: one worker thread loads the test files anew for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import Edit, apply_edits
from suture.mutation.tree_sitter.grammars import parse_tree
from suture.mutation.tree_sitter.syntax_tree import walk

PROGRAMS = (
    *("node_trials.cjs", "node_worker.cjs", "node_shim.cjs", "node_kept.cjs", "node_coverage.cjs"),
    "node_hooks.mjs",
)
LOADERS = re.compile(r"--(?:import|require|loader|experimental-loader|conditions)(?:[= ](\S+))|-r (\S+)")
TYPES = re.compile(r"(?:^|[\s/])tsx\s")
TICK = "globalThis.sutureTick?.()"
"""What a loop does in each round: `node_worker.cjs` ends one there that takes too long. In another process
nobody listens."""
ENDINGS = (".js", ".cjs", ".jsx", ".ts", ".cts", ".tsx")
MODULE = re.compile(rb"\"type\"\s*:\s*\"module\"")


def argv(python: str, lines: Sequence[str], box: str) -> tuple[str, ...]:
    """Node with what the command has it load first.

    Args:
        python: Not used.
        lines: What starts the tests.
        box: The folder of the driver.
    """
    line_of_script = next((line for line in lines if re.search(r"(?:^|[\s/])(?:node|tsx)\s", line)), "")
    flags = [word for match in LOADERS.finditer(line_of_script) for word in match[0].split(" ")]
    if TYPES.search(line_of_script) and not flags:
        flags = ["--import", "tsx"]
    return ("node", "--enable-source-maps", *flags, f"{box}/node_trials.cjs")


def job(proposal: Proposal, text: str, language: Language) -> dict[str, Any]:
    """A candidate: one file with another text, whose loops can be ended.

    Args:
        proposal: The candidate.
        text: The file as it is.
        language: What it is written in.
    """
    ticks = [
        tick
        for tick in _ticks(text, proposal.path, language)
        if not any(edit.start < tick.start < edit.end for edit in proposal.edits)
    ]
    return {"path": proposal.path, "text": apply_edits(text, [*proposal.edits, *ticks])}


def watched(path: str, text: str, language: Language) -> str:
    """A file as it is, whose loops can be ended; each of its lines stays where it is.

    Args:
        path: For its ending.
        text: The file.
        language: What it is written in.
    """
    return apply_edits(text, _ticks(text, path, language))


@lru_cache(maxsize=64)
def _ticks(text: str, path: str, language: Language) -> tuple[Edit, ...]:
    """Insertions that have each loop say that it goes round; none in a file that cannot be read."""
    root = parse_tree(text, path, language)
    if root.has_error:
        return ()
    found: list[tuple[int, str]] = []
    for node in walk(root):
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        if node.type in ("while_statement", "do_statement") and condition is not None:
            found.append((condition.start_byte + 1, f"{TICK}, "))
        elif node.type == "for_statement" and condition is not None:
            is_empty = condition.type == "empty_statement"
            found.append((condition.start_byte, f"{TICK}, true" if is_empty else f"{TICK}, "))
        elif node.type == "for_in_statement" and body is not None and body.type == "statement_block":
            found.append((body.start_byte + 1, f" {TICK};"))
    return tuple(Edit(start=at, end=at, text=inserted) for at, inserted in found)


def common(files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """Whether files of the project are loaded by `import`, which keeps what it has loaded."""
    return {"esm": holds_modules(files)}


def holds_modules(files: Mapping[str, bytes]) -> bool:
    """Whether something in a project may be loaded by `import`.

    Args:
        files: Path -> content.
    """
    return any(
        path.endswith((".mjs", ".mts"))
        or (path.endswith("package.json") and MODULE.search(content))
        or (path.endswith(ENDINGS) and b"import(" in content)
        for path, content in files.items()
    )
