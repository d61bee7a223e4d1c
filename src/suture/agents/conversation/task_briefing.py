"""What an agent is told: the task, the failing tests and the facts, in words and as data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from suture.agents import describe_fact
from suture.agents.context.briefs import deciding_facts
from suture.agents.roles.project_coder import rules_of
from suture.core.records import Counterexample, Task, Verdict, encode_record
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.project.workspace import DEFAULT_PROTECTED

MOST_TESTS = 200
MOST_FACTS = 20
"""Counterexamples that are told in full; by taste, as more of them mostly say the same."""
LONGEST_OUTPUT = 6000
"""Characters, the last ones: a command says at its end what failed."""


@dataclass(frozen=True, kw_only=True)
class Briefing:
    """What is known when an agent's turn begins.

    Attributes:
        task: What is wanted.
        failing: Ids of the tests that fail and decide.
        facts: One for each failure that says something.
        output: What the test command printed.
        hints: What a person has said since.
        as_a_whole: Whether the command is judged by its exit status, so that only its output tells more.
    """

    task: Task
    failing: tuple[str, ...]
    facts: tuple[Counterexample, ...]
    output: str = ""
    hints: Sequence[str] = ()
    as_a_whole: bool = False

    @property
    def command(self) -> str:
        """The test command as a line."""
        return shlex.join(self.task.test_command)

    def as_words(self) -> str:
        """For whoever reads: a page of Markdown."""
        task = self.task
        parts = ["# Repair this project" if task.kind == "heal" else "# Write this program"]
        if task.statement.strip():
            parts.append(task.statement.strip())
        if task.project is not None:
            parts.append(rules_of(task))
        elif task.kind == "write":
            named = f", with `{task.entry_point}` in it" if task.entry_point else ""
            parts.append(f"Write the file `{task.module}`{named}.")
        if task.test_command:
            parts.append(f"This command must pass:\n\n    {self.command}")
        if self.failing:
            parts.append(f"Tests that fail:\n\n{_listed(self.failing[:MOST_TESTS])}")
        if self.facts:
            cards = [describe_fact(fact) for fact in self.facts[:MOST_FACTS]]
            parts.append(f"What they saw:\n\n{_listed(cards)}")
        if self.output.strip() and (self.as_a_whole or not self.facts):
            parts.append(f"What the command printed:\n\n```\n{self.output.strip()[-LONGEST_OUTPUT:]}\n```")
        parts += [hint.strip() for hint in self.hints]
        parts.append(
            "Change the code, not the tests: tests, and the files that say how they run, are put back before "
            "anything is judged. A file that is deleted comes back."
        )
        return "\n\n".join(parts) + "\n"

    def as_json(self) -> str:
        """The brief as one JSON document, for agents that are programs."""
        task = self.task
        return json.dumps(
            {
                "kind": task.kind,
                "statement": task.statement,
                "language": task.language,
                "test_command": list(task.test_command),
                "failing": list(self.failing),
                "facts": [encode_record(fact) for fact in self.facts],
                "output": self.output,
                "hints": list(self.hints),
                "protected": list(task.protected or DEFAULT_PROTECTED),
                "only": list(task.only),
            },
            indent=1,
        )


def briefing_on(parent: Attempt | None, hints: Sequence[str], context: RunContext) -> Briefing:
    """What is known of a candidate that fails; of a task alone where there is none."""
    verdict = context.verdict(parent.verdict) if parent else None
    return briefing_of(verdict, hints, context)


def briefing_of(verdict: Verdict | None, hints: Sequence[str], context: RunContext) -> Briefing:
    """What a verdict tells; facts of checks that nobody trusts are left out."""
    if verdict is None:
        return Briefing(task=context.task, failing=(), facts=(), hints=hints)
    threshold = context.settings.loop.trust_threshold
    failing = tuple(
        o.check_id for o in verdict.outcomes if o.trust >= threshold and o.check_id in verdict.failed
    )
    return Briefing(
        task=context.task,
        failing=failing,
        facts=deciding_facts(verdict, threshold),
        output=verdict.output,
        hints=hints,
        as_a_whole=verdict.evidence == "exit_status",
    )


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
