"""The result of a step of a conversation, and its record in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suture.agents import tuning
from suture.agents.context.failure_causes import collect_deciding_facts
from suture.agents.context.failure_context import render_new_facts
from suture.agents.conversation.agent_turn import AgentTurn, Patch, make_patch
from suture.agents.prompting.prompt_parts import describe_fact
from suture.agents.tuning import MAX_BRIEFED_OUTPUT_CHARS, MAX_LISTED_FACTS
from suture.core.ledger.kinds import AgentStepped
from suture.core.ledger.kinds.agents import AgentEnding, AgentProblem
from suture.core.records import Verdict, decode_record, encode_record
from suture.models import Message, ToolCall
from suture.project.workspace import overlay_candidate


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What a reply led to.

    Attributes:
        answer: The messages that answer the reply.
        changed: The files that the next change begins from, as far as they differ from the beginning.
        patch: The patch that was tested, if there was one.
        problem: Why the reply achieved nothing; empty if it achieved something.
        ending: Why the turn ends; empty if it continues.
    """

    answer: tuple[Message, ...]
    changed: Mapping[str, str]
    patch: Patch | None = None
    problem: AgentProblem = ""
    ending: AgentEnding = ""


def record_step(
    result: StepResult, used: Sequence[ToolCall], turn: AgentTurn, number: int, seconds: float
) -> None:
    """Record a step.

    Args:
        used: The calls of its reply.
        number: The number of the step in the turn, from 1.
        seconds: The wall-clock seconds of its tools and tests.
    """
    folder, patch = turn.calls.folder, result.patch
    verdict = patch.verdict if patch else None
    turn.calls.ledger.append(
        AgentStepped(
            turn=turn.number,
            number=number,
            tools=tuple(call.name[: tuning.MAX_ECHOED_CHARS] for call in used),
            input=_describe_inputs(used)[: tuning.MAX_LEDGER_INPUT_CHARS],
            problem=result.problem,
            patch=patch.number if patch else 0,
            passed=patch.passed if patch else 0,
            failed=patch.failed if patch else 0,
            regressed=patch.regressed if patch else 0,
            answer=folder.save_json(encode_messages(result.answer)),
            changes=folder.save_json(dict(result.changed)),
            tested=folder.save_json(dict(patch.changed)) if patch else "",
            verdict=folder.save_record(verdict) if verdict else "",
            seconds=round(seconds, 3),
            ending=result.ending,
        )
    )


def decode_step(step: AgentStepped, blobs: Mapping[str, Any], turn: AgentTurn) -> StepResult:
    """Return the result of a recorded step."""
    patch = None
    if step.verdict:
        verdict = decode_record(Verdict, blobs[step.verdict])
        tested = _decode_texts(blobs[step.tested])
        patch = make_patch(step.patch, tested, verdict, turn.baseline, turn.trust_threshold)
    return StepResult(
        answer=decode_messages(blobs[step.answer]),
        changed=_decode_texts(blobs[step.changes]),
        patch=patch,
        problem=step.problem,
        ending=step.ending,
    )


def encode_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as JSON values."""
    return [encode_record(message) for message in messages]


def decode_messages(values: Any) -> tuple[Message, ...]:
    """Return messages from their JSON values."""
    return tuple(decode_record(Message, value) for value in values)


def _describe_inputs(calls: Sequence[ToolCall]) -> str:
    values = (str(value) for call in calls for value in (*call.arguments.values(), call.undecoded) if value)
    return "; ".join(values)


def _decode_texts(values: object) -> dict[str, str]:
    return {str(path): str(text) for path, text in values.items()} if isinstance(values, dict) else {}


def render_trial(patch: Patch, best: Patch, turn: AgentTurn, *, is_kept: bool) -> str:
    """Return the result of a patch for the model.

    Args:
        is_kept: Whether the next patch begins from the files of this one.
    """
    counts = render_counts(patch)
    if patch.passes or patch.verdict is None:
        return counts
    facts = patch.verdict.output if patch.is_refused else _render_facts(patch, patch.verdict, best, turn)
    return f"{counts} {_render_state(best, is_kept=is_kept)}\n\n{facts.strip()}"


def render_known_trial(patch: Patch, threshold: float) -> str:
    """Return again what is known about a patch, or about the code at the beginning."""
    if patch.passes or patch.verdict is None:
        return render_counts(patch)
    return f"{render_counts(patch)}\n\n{_render_all_facts(patch.verdict, threshold)}"


def render_counts(patch: Patch) -> str:
    """Return in one sentence how many tests pass with a patch."""
    name = f"Patch {patch.number}" if patch.number else "The code at the beginning"
    if patch.is_refused:
        return f"{name} was not run, because the safety scan refuses it."
    total = patch.passed + patch.failed
    if patch.passes:
        return f"{name}: every test passes." if total else f"{name} is applied."
    return f"{name}: {patch.passed} of {total} tests pass."


def _render_state(best: Patch, *, is_kept: bool) -> str:
    if is_kept:
        return "The files keep your changes so far."
    place = f"after patch {best.number}" if best.number else "at the beginning"
    return f"That is worse, so the files are again as they were {place}."


def _render_facts(patch: Patch, verdict: Verdict, best: Patch, turn: AgentTurn) -> str:
    if best.verdict is None or verdict.evidence == "exit_status":
        return _render_all_facts(verdict, turn.trust_threshold)
    files = overlay_candidate(turn.files, patch.changed)
    return render_new_facts(
        best.verdict, verdict, turn.suite.task, files, turn.suite, threshold=turn.trust_threshold
    )


def _render_all_facts(verdict: Verdict, threshold: float) -> str:
    facts = collect_deciding_facts(verdict, threshold)[:MAX_LISTED_FACTS]
    if not facts or verdict.evidence == "exit_status":
        return verdict.output.strip()[-MAX_BRIEFED_OUTPUT_CHARS:]
    return "\n".join(f"- {describe_fact(fact)}" for fact in facts)
