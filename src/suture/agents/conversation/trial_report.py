"""Tell the model how the deciding tests ended on its patch, and which files the next patch begins from."""

from __future__ import annotations

from suture.agents.context.deciding_checks import collect_deciding_facts
from suture.agents.conversation.patches import Patch
from suture.agents.prompting.prompt_parts import describe_fact
from suture.agents.tuning import MAX_BRIEFED_OUTPUT_CHARS, MAX_LISTED_FACTS
from suture.core.records import Verdict


def render_trial(patch: Patch, best: Patch, threshold: float, *, is_kept: bool) -> str:
    """Return the result of a patch for the model.

    Args:
        best: The best patch before it.
        is_kept: Whether the next patch begins from the files of this one.
    """
    parts = [_render_counts(patch)]
    if not patch.passes and patch.verdict is not None:
        parts += [_render_facts(patch.verdict, threshold), _render_state(patch, best, is_kept=is_kept)]
    return "\n\n".join(filter(None, parts))


def _render_counts(patch: Patch) -> str:
    if patch.is_refused:
        return f"Patch {patch.number} was not run, because the safety scan refuses it."
    total = patch.passed + patch.failed
    if patch.passes:
        return f"Patch {patch.number}: every test passes." if total else f"Patch {patch.number} is applied."
    broken = f", {patch.regressed} of the others passed before your changes" if patch.regressed else ""
    return f"Patch {patch.number}: {patch.passed} of {total} tests pass{broken}."


def _render_facts(verdict: Verdict, threshold: float) -> str:
    facts = collect_deciding_facts(verdict, threshold)[:MAX_LISTED_FACTS]
    if not facts or verdict.evidence == "exit_status":
        return verdict.output.strip()[-MAX_BRIEFED_OUTPUT_CHARS:]
    return "\n".join(f"- {describe_fact(fact)}" for fact in facts)


def _render_state(patch: Patch, best: Patch, *, is_kept: bool) -> str:
    if is_kept:
        return "The files contain your changes so far; the next patch goes on from there."
    place = f"after patch {best.number}" if best.number else "at the beginning"
    why = "That is worse than before" if patch.is_worse_than(best) else "The same tests fail in the same way"
    return (
        f"{why}, so the files are again as they were {place} ({best.passed} of {best.passed + best.failed} pass). "
        f"`use_patch` {patch.number} goes on from this patch instead."
    )
