"""Tell the model how the deciding tests ended on its patch, and which files the next patch begins from."""

from __future__ import annotations

from suture.agents.context.deciding_checks import collect_deciding_facts
from suture.agents.context.failure_context import render_new_facts
from suture.agents.conversation.agent_turn import AgentTurn
from suture.agents.conversation.patches import Patch
from suture.agents.prompting.prompt_parts import describe_fact
from suture.agents.tuning import MAX_BRIEFED_OUTPUT_CHARS, MAX_LISTED_FACTS
from suture.core.records import Verdict
from suture.project.workspace import overlay_candidate


def render_trial(patch: Patch, best: Patch, turn: AgentTurn, *, is_kept: bool) -> str:
    """Return the result of a patch for the model.

    Args:
        best: The best patch before it.
        is_kept: Whether the next patch begins from the files of this one.
    """
    counts = render_counts(patch)
    if patch.passes or patch.verdict is None:
        return counts
    facts = patch.verdict.output if patch.is_refused else _render_facts(patch, patch.verdict, best, turn)
    return f"{counts} {_render_state(patch, best, turn, is_kept=is_kept)}\n\n{facts.strip()}"


def render_known_trial(patch: Patch, threshold: float) -> str:
    """Return once more what is known of a patch, or of the code at the beginning."""
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


def _render_state(patch: Patch, best: Patch, turn: AgentTurn, *, is_kept: bool) -> str:
    if is_kept:
        return "The files keep your changes so far."
    place = f"after patch {best.number}" if best.number else "at the beginning"
    way_on = f" `use_patch` {patch.number} goes on from this one." if turn.offers_tools else ""
    return f"That is worse, so the files are again as they were {place}.{way_on}"


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
