"""The briefing that an agent gets when its turn begins: the task and the failing tests, as text or JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from suture.agents.context.failure_causes import collect_deciding_facts
from suture.agents.prompting.prompt_parts import describe_fact
from suture.agents.roles.project_coder import render_project_rules
from suture.agents.tuning import MAX_BRIEFED_OUTPUT_CHARS, MAX_LISTED_FACTS, MAX_LISTED_TESTS
from suture.core.records import Counterexample, Task, Verdict, encode_record
from suture.project.workspace import DEFAULT_PROTECTED

TOOLS_TEXT = (
    "Repair what the tools report. A comment that silences a tool, or a wider type such as `Any`, is no repair. "
    "Of a test that a tool reports, only the layout and unused imports may change."
)


@dataclass(frozen=True, kw_only=True)
class TaskBriefing:
    """What is known when an agent's turn begins.

    Attributes:
        failing: Ids of the failing tests that decide.
        facts: The counterexamples of these tests.
        reasons: Why what the agent has changed so far is not accepted.
        hints: What a person has added since the run began.
        judged_by_exit_status: Whether the command is judged by its exit status alone. The output is then shown
            even if there are facts.
    """

    task: Task
    failing: tuple[str, ...] = ()
    facts: tuple[Counterexample, ...] = ()
    output: str = ""
    reasons: tuple[str, ...] = ()
    hints: Sequence[str] = ()
    judged_by_exit_status: bool = False

    @property
    def command(self) -> str:
        """Return the command that decides, with its linters and other tools, as a shell line."""
        return " && ".join(map(shlex.join, self.task.commands))

    def render_task(self) -> str:
        """Return what is wanted, as Markdown."""
        task = self.task
        parts = ["# Repair this project" if task.kind == "heal" else "# Write this program"]
        if task.statement.strip():
            parts.append(task.statement.strip())
        if task.project is not None:
            parts.append(render_project_rules(task))
        elif task.kind == "write":
            content = f", with `{task.entry_point}` in it" if task.entry_point else ""
            parts.append(f"Write the file `{task.module}`{content}.")
        if self.command:
            parts.append(f"This command must pass:\n\n    {self.command}")
        if task.tools:
            parts.append(TOOLS_TEXT)
        return "\n\n".join(parts)

    def render_markdown(self) -> str:
        """Return the briefing as a page of Markdown."""
        parts = [self.render_task()]
        if self.reasons:
            parts.append(f"Your change so far is not accepted:\n\n{_bullet_list(self.reasons)}")
        if self.failing:
            parts.append(f"Tests that fail:\n\n{_bullet_list(self.failing[:MAX_LISTED_TESTS])}")
        if self.facts:
            facts = [describe_fact(fact) for fact in self.facts[:MAX_LISTED_FACTS]]
            parts.append(f"What they saw:\n\n{_bullet_list(facts)}")
        if self.output.strip() and (self.judged_by_exit_status or not self.facts):
            parts.append(
                f"What the command printed:\n\n```\n{self.output.strip()[-MAX_BRIEFED_OUTPUT_CHARS:]}\n```"
            )
        parts += [hint.strip() for hint in self.hints]
        parts.append(
            "Your change will be judged. The tests as they are now run on the new code, too: a test that is "
            "loosened, skipped or removed does not hide a fault, and code that serves only the examples of the "
            "tests is found."
        )
        return "\n\n".join(parts) + "\n"

    def render_json(self) -> str:
        """Return the briefing as one JSON document, for agents that are programs."""
        task = self.task
        return json.dumps(
            {
                "kind": task.kind,
                "statement": task.statement,
                "language": task.language,
                "test_command": list(task.full_command),
                "failing": list(self.failing),
                "facts": [encode_record(fact) for fact in self.facts],
                "output": self.output,
                "reasons": list(self.reasons),
                "hints": list(self.hints),
                "protected": list(task.protected or DEFAULT_PROTECTED),
                "only": list(task.writable),
            },
            indent=1,
        )


def make_briefing(
    task: Task, verdict: Verdict | None, threshold: float, hints: Sequence[str] = ()
) -> TaskBriefing:
    """Return the briefing on a failing candidate, or on the task alone where there is no candidate yet."""
    if verdict is None:
        return TaskBriefing(task=task, hints=hints)
    failing = tuple(
        outcome.check_id
        for outcome in verdict.outcomes
        if outcome.trust >= threshold and outcome.check_id in verdict.failed
    )
    return TaskBriefing(
        task=task,
        failing=failing,
        facts=collect_deciding_facts(verdict, threshold),
        output=verdict.output,
        hints=hints,
        judged_by_exit_status=verdict.evidence == "exit_status",
    )


def _bullet_list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
