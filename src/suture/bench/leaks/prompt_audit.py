"""Law 1 over a real run: nothing of the hidden checks stands in what a model was asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from suture.bench.leaks.hidden_calls import (
    LEAST_WEIGHT,
    atoms_of,
    calls_in,
    compact,
    hidden_calls,
    weight_of,
)
from suture.bench.problem import Problem, Regime
from suture.core.ledger import RunFolder
from suture.judge import asserts_in, examples_in

LEAST_LINE = 12
"""Characters of a line that says something; shorter ones stand in any program."""


def leaked_lines(problem: Problem, folder: RunFolder, regime: Regime = "visible") -> tuple[str, ...]:
    """What of the hidden checks stands in a prompt of a run, and nobody had shown or written there.

    Looked for are whole lines, and calls with arguments that are rare enough not to be there by chance, in
    whatever words they are told. A model that knows the set by heart may write a hidden check itself; shown
    to it again with its own code that is no leak. What it only repeats of a prompt it has not written itself.

    Args:
        problem: The task.
        folder: The run's folder, with every prompt and reply.
        regime: What the loop was to see; in `self`, visible checks that the statement does not show are as
            secret as the hidden ones.
    """
    asked = [_Asked.of(json.loads(path.read_bytes())) for path in sorted(folder.replies_path.glob("*.json"))]
    shown = "\n".join(_shown(problem, regime))
    secret = (problem.hidden, *((problem.visible,) if regime == "self" else ()))
    return tuple(
        sorted(
            {
                leak
                for program in secret
                for leak in (*_lines(program, shown, asked), *_calls(program, problem, shown, asked))
            }
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Asked:
    prompt: str
    said: str

    @classmethod
    def of(cls, entry: dict[str, Any]) -> _Asked:
        prompt = "\n".join(message["content"] for message in entry["messages"])
        return cls(prompt=prompt, said=entry.get("reply", {}).get("text", ""))


def _shown(problem: Problem, regime: Regime) -> Iterator[str]:
    """What a solver may see; the examples of the statement also as the asserts that they become."""
    yield problem.statement
    yield from problem.given_files.values()
    yield from (check.source for check in examples_in(problem.statement, problem.entry_point))
    if regime != "self":
        yield problem.visible
        yield from (check.source for check in asserts_in(problem.visible, provenance="visible"))


def _lines(secret: str, shown: str, asked: Sequence[_Asked]) -> Iterator[str]:
    for line in set(map(str.strip, secret.splitlines())):
        says_something = len(line) >= LEAST_LINE and not line.startswith(("def ", "import ", "from "))
        if not says_something or line in shown or not any(line in one.prompt for one in asked):
            continue
        if not any(line in one.said and line not in one.prompt for one in asked):
            yield line


def _calls(secret: str, problem: Problem, shown: str, asked: Sequence[_Asked]) -> Iterator[str]:
    calls = hidden_calls(secret, problem.entry_point)
    shown_calls = [calls_in(one.prompt, calls.names) for one in asked]
    everything = frozenset[str]().union(*shown_calls)
    known, atoms = compact(shown), frozenset(atoms_of(shown))
    said = [compact(one.said) for one in asked]
    for call, written in calls.written.items():
        if not _begins_with(everything, written) or _holds(known, written):
            continue
        new = weight_of(call.removeprefix(problem.entry_point), atoms)
        if new < LEAST_WEIGHT:  # a test of the run's own, made of what the statement shows, may hit upon it
            continue
        own = (
            _holds(words, written) and not _begins_with(there, written)
            for there, words in zip(shown_calls, said, strict=True)
        )
        if not any(own):
            yield call


def _begins_with(shown_calls: Iterable[str], written: tuple[str, ...]) -> bool:
    return any(call.startswith(written) for call in shown_calls)


def _holds(text: str, written: tuple[str, ...]) -> bool:
    """Whether a text has the arguments, handed over in whatever way, such as by a loop over cases."""
    return any(arguments.removesuffix(")") in text for arguments in written)
