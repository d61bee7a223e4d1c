"""What was proved of a result and what was done with it, as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from suture.ledger import RunFolder, read_ledger

__all__ = ["PROOF_TELLERS", "handover_lines", "proof_lines"]


def proof_lines(folder: RunFolder) -> Iterator[str]:
    """What the run's certificate says, and how to check it; nothing where there is none."""
    events = read_ledger(folder.ledger_path).events
    data = next((event.data for event in reversed(events) if event.kind == "certificate.written"), None)
    if data is None:
        return
    yield f"proved: {_measured(data)}"
    if data.get("left_out"):
        parts = ", ".join(data["left_out"])
        yield f"left out, for no test needs it: {parts}; the whole: suture show {folder.id} --full-diff"
    yield from (f"lint: {finding}" for finding in data["lint"])
    if data["lint_absent"]:
        yield f"lint: not asked, {data['lint_absent']}"
    yield f"certificate: {data['file']} (suture verify {folder.id})"


def handover_lines(folder: RunFolder) -> Iterator[str]:
    """What was done to the user's tree or repository, and how to take it back."""
    events = read_ledger(folder.ledger_path).events
    if any(event.kind == "tree.undone" for event in events):
        return
    done = [event for event in events if event.kind in HANDED_OVER]
    yield from (PROOF_TELLERS[event.kind](event.data) for event in done)
    if any(event.kind != "patch.written" for event in done):
        yield f"undo: suture undo {folder.id}"


def _measured(data: Mapping[str, Any]) -> str:
    parts = []
    if data["edits_found"]:
        least = "" if data["is_minimal"] else ", perhaps not the fewest"
        parts.append(f"{data['edits']} of {data['edits_found']} edits are left{least}")
    parts.append(
        f"coverage of the change not measured ({data['coverage_unmeasured']})"
        if data["coverage_unmeasured"]
        else f"the tests run {data['covered']} of {data['statements']} changed statements"
    )
    parts.append(
        f"mutants not run ({data['mutation_unmeasured']})"
        if data["mutation_unmeasured"] and not data["mutants"]
        else f"they notice {data['killed']} of {data.get('drawn', data['mutants'])} mutants of these"
        + (f" ({data['mutation_unmeasured']})" if data["mutation_unmeasured"] else "")
    )
    return f"{'; '.join(parts)}; confidence {data['confidence']:.2f}"


def _certified(data: Mapping[str, Any]) -> str:
    return f"certificate: {data['fixed']} tests fixed; {_measured(data)}"


def _begun(data: Mapping[str, Any]) -> str:
    return f"about to write: {', '.join(data['files'])} in {data['root']}; to take it back: {data['undo']}"


def _commit_begun(data: Mapping[str, Any]) -> str:
    return f"about to commit in {data['root']}" + (f" on {data['branch']}" if data["branch"] else "")


def _applied(data: Mapping[str, Any]) -> str:
    return f"applied to: {', '.join(data['files'])} in {data['root']}"


def _committed(data: Mapping[str, Any]) -> str:
    where = f"on the new branch {data['branch']}" if data["branch"] else "on what is checked out"
    return f"committed: {data['commit'][:12]} {where} in {data['root']}"


def _patched(data: Mapping[str, Any]) -> str:
    return f"patch: {data['file']}"


def _checked_commit(data: Mapping[str, Any]) -> str:
    said = f"these do not pass: {', '.join(data['failing'])}" if data["failing"] else "its tests pass"
    return f"checked what would be committed, without your uncommitted changes: {said}"


def _undone(data: Mapping[str, Any]) -> str:
    if data.get("why"):
        return f"taken back: {data['why']}"
    if data["branch"]:
        return f"taken back: the branch {data['branch']} is deleted"
    reverted = f", reverted by commit {data['commit'][:12]}" if data["commit"] else ""
    return f"taken back: {', '.join(data['files'])} in {data['root']}{reverted}"


HANDED_OVER = ("tree.applied", "commit.made", "patch.written")
PROOF_TELLERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "certificate.written": _certified,
    "apply.started": _begun,
    "tree.applied": _applied,
    "commit.checked": _checked_commit,
    "commit.started": _commit_begun,
    "commit.made": _committed,
    "patch.written": _patched,
    "tree.undone": _undone,
}
