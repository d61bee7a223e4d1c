"""Candidates on `go test`: all bodies that a function may have are compiled into one program.

Mutant schemata: Untch, Offutt and Harrold, ISSTA 1993.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import Edit, apply_edits
from suture.mutation.tree_sitter.grammars import parse_tree

PROGRAMS = ("go_trials.py", "go_schemata.py")
MODULE = re.compile(rb"^module\s+\"?([^\s\"]+)", re.MULTILINE)
PANIC = re.compile(r"^(?:panic|fatal error): .*", re.MULTILINE)
LABEL = re.compile(rb"\bgoto\s|^\s*(?!default)\w+:\s*$", re.MULTILINE)


def argv(python: str, lines: Sequence[str], box: str) -> tuple[str, ...]:
    """Our interpreter: the driver is Python, and starts `go` itself.

    Args:
        python: The interpreter.
        lines: Not used.
        box: The folder of the driver.
    """
    return (python, "-I", "-S", f"{box}/go_trials.py")


def fault(words: str) -> str:
    """What a test broke off with: its words are the output of all tests."""
    broke = PANIC.search(words)
    return broke[0] if broke else ""


def job(proposal: Proposal, text: str, language: Language) -> dict[str, Any] | None:
    """A candidate: a function's body with another text; `None` where it changes no function's body alone, or
    cannot be read.
    """
    first, last = proposal.edits[0].start, proposal.edits[-1].end
    for start, end, answers in _bodies(text):
        if start < first and last < end:
            inside = [
                Edit(start=edit.start - start, end=edit.end - start, text=edit.text)
                for edit in proposal.edits
            ]
            body = text.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")
            made = apply_edits(body, inside)
            if parse_tree(f"package a\nfunc a() {made}\n", "", "go").has_error:
                return None  # a compiler would complain of all that stands behind it
            return {"path": proposal.path, "start": start, "end": end, "body": made, "answers": answers}
    return None


def common(files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """The module's name."""
    match = MODULE.search(files.get("go.mod", b""))
    return {"module": match[1].decode("utf-8", "replace") if match else ""}


@lru_cache(maxsize=64)
def _bodies(text: str) -> tuple[tuple[int, int, bool], ...]:
    """Where functions' bodies lie, and whether each answers; none that has labels, which must differ."""
    found = []
    for node in parse_tree(text, "", "go").children:
        body = node.child_by_field_name("body")
        if node.type not in ("function_declaration", "method_declaration") or body is None:
            continue
        if not LABEL.search(body.text or b""):
            answers = node.child_by_field_name("result") is not None
            found.append((body.start_byte, body.end_byte, answers))
    return tuple(found)
