"""Jobs for `go test`: all bodies that a function may have are compiled into one program.

Mutant schemata: Untch, Offutt and Harrold, ISSTA 1993.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import decode_source, encode_source
from suture.mutation.tree_sitter.value_kinds import parse_source_tree

PROGRAMS = ("go_trials.py", "go_schemata.py")
MODULE = re.compile(rb"^module\s+\"?([^\s\"]+)", re.MULTILINE)
PANIC = re.compile(r"^(?:panic|fatal error): .*", re.MULTILINE)
LABEL = re.compile(rb"\bgoto\s|^\s*(?!default)\w+:\s*$", re.MULTILINE)


def build_argv(python: str, lines: Sequence[str], driver_folder: str) -> tuple[str, ...]:
    """Return the command line of the driver, which is Python and starts `go` itself.

    All drivers take the same arguments. `lines` are the shell lines of the test command (see
    `driver_protocol`). They are not needed here, because `go` finds the tests on its own.
    """
    return (python, "-I", "-S", f"{driver_folder}/go_trials.py")


def extract_error(output: str) -> str:
    """Return the first panic in the output of the tests; empty if there is none."""
    panic = PANIC.search(output)
    return panic[0] if panic else ""


def build_job(proposal: Proposal, text: str, language: Language) -> dict[str, Any] | None:
    """Return the job of a candidate; `None` unless it changes one function's body, and the body parses."""
    change_start, change_end = proposal.edits[0].start, proposal.edits[-1].end
    for start, end, returns_value in _function_bodies(text):
        if start < change_start and change_end < end:
            edits = [
                Edit(start=edit.start - start, end=edit.end - start, text=edit.text)
                for edit in proposal.edits
            ]
            body = apply_edits(decode_source(encode_source(text)[start:end]), edits)
            if parse_source_tree(f"package a\nfunc a() {body}\n", "", "go").has_error:
                return None  # after a syntax error the compiler rejects everything that follows
            return {
                "path": proposal.path,
                "start": start,
                "end": end,
                "body": body,
                "returns_value": returns_value,
            }
    return None


def build_common(files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """Return what all jobs share: the name of the Go module. Other drivers also use the tests and shell lines."""
    match = MODULE.search(files.get("go.mod", b""))
    return {"module": match[1].decode("utf-8", "replace") if match else ""}


@lru_cache(maxsize=64)
def _function_bodies(text: str) -> tuple[tuple[int, int, bool], ...]:
    """Return `(start, end, returns a value)` for the body of each function, in bytes.

    Functions with labels are left out: a label may be defined only once in a function.
    """
    bodies = []
    for node in parse_source_tree(text, "", "go").children:
        body = node.child_by_field_name("body")
        if node.type not in ("function_declaration", "method_declaration") or body is None:
            continue
        if not LABEL.search(body.text or b""):
            returns_value = node.child_by_field_name("result") is not None
            bodies.append((body.start_byte, body.end_byte, returns_value))
    return tuple(bodies)
