"""An event of the ledger as one line for people. Live progress and `suture show` both speak through this."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from suture.cli.helper_lines import HELPER_TELLERS
from suture.cli.proof_lines import PROOF_TELLERS
from suture.records import Counterexample, Event, Evidence, Spend

__all__ = ["EVIDENCE_WORDS", "describe_share", "describe_spend", "fact_lines", "tell"]

EVIDENCE_WORDS: dict[Evidence, str] = {
    "split": "judged in a process that never loads the code under test",
    "nonce": "pytest's own report, each line signed with a secret of this run",
    "exit_status": "the exit status of the command and nothing else; code that ends it with 0 passes too",
}
"""What each kind of evidence is worth, in words (see docs/verdicts.md)."""

WAITS_BEFORE = {
    "search": "a search without a model",
    "samples": "fresh candidates",
    "repairs": "repairs",
    "hand_over": "the hand-over",
}
MOST_NAMED = 8
SPEND_WORDS = (("attempts", "attempts"), ("tokens", "tokens"), ("money", "$"), ("seconds", "s"))


def tell(event: Event) -> str | None:
    """One line about an event; `None` for mere bookkeeping.

    An event of an unknown kind, or with other fields than expected (an older or newer ledger), is told by its
    kind and its data.
    """
    if event.kind.startswith("budget."):
        return None
    teller = TELLERS.get(event.kind)
    try:
        if teller is not None:
            return teller(event.data)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass  # told by its data, below
    return f"{event.kind} {_compact(event.data)}".rstrip()


def describe_spend(spend: Spend, limits: Mapping[str, float | None]) -> str:
    """What was used, and of how much, such as `3 of 12 attempts, 2,310 of 60,000 tokens, 41 of 900 s`."""
    parts = []
    for name, unit in SPEND_WORDS:
        limit = limits.get(name)
        if name == "money":
            parts += _money(spend, limit)
            continue
        of = "" if limit is None else f" of {limit:,.12g}"
        parts.append(f"{getattr(spend, name):,.0f}{of} {unit}")
    return ", ".join(parts)


def describe_share(spend: Spend) -> str:
    """What one role or one kind of move has used."""
    counts = (f"{spend.attempts:,} attempts", f"{spend.tokens:,} tokens", f"{spend.model_calls:,} calls")
    return ", ".join([*counts, *_money(spend, None)])


def _money(spend: Spend, limit: float | None) -> list[str]:
    """Money, where there is any to speak of."""
    unknown = f" and {spend.unpriced_calls} calls of unknown price" if spend.unpriced_calls else ""
    if not spend.money and limit is None and not unknown:
        return []
    return [f"${spend.money:,.4f}" + ("" if limit is None else f" of ${limit:,.12g}") + unknown]


def fact_lines(fact: Counterexample) -> list[str]:
    """A counterexample, one aspect a line."""
    where = f" ({fact.file or 'the code'} line {fact.line})" if fact.line else ""
    pairs = (
        ("call", fact.call),
        ("expected", fact.expected),
        ("got", fact.got),
        ("raised", fact.exception + where if fact.exception else ""),
    )
    return [fact.check_id, *(f"  {name}: {value}" for name, value in pairs if value)]


def _compact(data: Mapping[str, Any]) -> str:
    text = json.dumps(dict(data), default=str) if data else ""
    return text if len(text) <= 200 else f"{text[:200]}..."


def _started(data: Mapping[str, Any]) -> str:
    parts = [f"{name} {data[name]}" for name in ("model", "recipe") if data.get(name)]
    parts += [f"{data['stronger']} for a hard case"] if data.get("stronger") else []
    scripted = "; scripted, not a model" if str(data.get("model", "")).startswith("scripted:") else ""
    unpriced = ", ".join(data.get("unpriced") or ())
    note = f"; no price is known of {unpriced}, whose money is not counted" if unpriced else ""
    told = f" with {', '.join(parts)}" if parts else ""
    forks = data.get("forks")
    origin = f", from step {forks['at']} of {forks['run']}" if forks else ""
    return f"started: {data.get('kind', 'run')}{told}{origin}{scripted}{note}{_left_out(data)}"


def _left_out(data: Mapping[str, Any]) -> str:
    """Files that no run sees: a test that needs one of them fails for want of it."""
    names = [str(name) for name in data.get("left_out") or ()]
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    told = f"{', '.join(names[:MOST_NAMED])}{more}"
    return f"; left out, as they may hold secrets: {told} (sandbox.secrets lets files in)"


def _prepared(data: Mapping[str, Any]) -> str:
    command = " ".join(data.get("test_command") or ())
    parts = [f"{data['checks']} checks of functions"] if data.get("checks") else []
    origin = f" ({data['test_origin']})" if data.get("test_origin") else ""
    parts += [f"the command {command!r}{origin}"] if command else []
    python = f"; python is {data['python']}, {data['python_origin']}" if data.get("python") else ""
    python += f"; {data['language']} is {data['toolchain']}" if data.get("toolchain") else ""
    return "checks: " + (" and ".join(parts) or "none to trust, so nothing can be verified") + python


def _triaged(data: Mapping[str, Any]) -> str:
    apart = [f"{one['test']} ({one['cause']}: {one['why']})" for one in data["set_apart"]]
    told = f"; not the code's: {'; '.join(apart)}" if apart else ""
    return f"triage: {data['code_faults']} failing test(s) to mend{told}"


def _search_began(data: Mapping[str, Any]) -> str:
    return (
        f"search without a model: {data['failing']} failing, {len(data['files'])} file(s), "
        f"at most {data['candidates']} changes and {data['seconds']:.0f} s"
    )


def _history_searched(data: Mapping[str, Any]) -> str:
    if not data["good"]:
        return "history: the tests fail on the oldest code too; no change broke them"
    return f"history: the tests pass on the code of {data['good']}, and not since {data['broke']}"


def _search_ended(data: Mapping[str, Any]) -> str:
    found = f"{data['plausible']} with which all tests pass" if data["plausible"] else "none that suffices"
    told = f"search: {data['tried']} changes tried in {data['seconds']:.1f} s, {found} ({data['ended']})"
    told += _trials(data.get("trials") or {})
    apart = data.get("difference")
    if apart:
        answers = "; ".join(f"{answer} with {label!r}" for label, answer in apart["answers"].items())
        told += f"; {apart['call']} tells the likeliest apart: {answers}"
    for broken in data.get("broken", ())[:1]:
        told += f"; {broken['operator']!r} broke on {broken['path']}:{broken['line']} and was left out there"
        told += f" (a fault of suture's own: {broken['fault']})"
    return told


def _trials(data: Mapping[str, Any]) -> str:
    """Where the search could not see what the user's own run shows."""
    told = "".join(f"; {note}" for note in (data.get("partly"), *data.get("notes", ())) if note)
    if data.get("disagreements"):
        some = [
            f"{d['test']} ({d['run']} in your run, {d['trial']} in a trial)" for d in data["differing"][:3]
        ]
        more = ", ..." if data["disagreements"] > len(some) else ""
        told += f"; {data['disagreements']} test(s) end otherwise in a trial and are left to the verdict: "
        told += ", ".join(some) + more
    return told


def _user_answered(data: Mapping[str, Any]) -> str:
    first, second = data["answers"]
    return f"asked about {data['call']}: {first} or {second}? the user says {data['choice']}"


def _decided(data: Mapping[str, Any]) -> str:
    moves = data["moves"]
    first = moves[0]
    if first["kind"] == "stop":
        return f"decided: stop, {first['reason']}"
    count = len(moves)
    return f"decided: {count} {first['kind']}{'s' if count > 1 else ''}, {first['reason']}"


def _called(data: Mapping[str, Any]) -> str:
    tokens = f"{data['prompt_tokens']} tokens in, {data['completion_tokens']} out"
    if data.get("replayed"):
        record = f"the record of {data['from_run']}" if data.get("from_run") else "the run's own record"
        return f"model: answered from {record}, {tokens}"
    cut = ", cut short" if data.get("finish") == "length" else ""
    money = f", ${data['money']:.4f}" if data.get("money") else ""
    again = f", after {data['retries']} tries that failed" if data.get("retries") else ""
    return f"{_asked(data)}: {tokens}, {data['seconds']:.1f} s{money}{again}{cut}"


def _asked(data: Mapping[str, Any]) -> str:
    role = data.get("role", "coder")
    return {"coder": "model", "escalate": "stronger model"}.get(role, f"model of the {role}")


def _escalated(data: Mapping[str, Any]) -> str:
    return f"{data['to']} takes over from {data['from']}: {data['reason']}"


def _cut(data: Mapping[str, Any]) -> str:
    return f"the reply broke off in its code: asked again, with {data['again_with_tokens']} tokens"


def _stepped_down(data: Mapping[str, Any]) -> str:
    return f"{data['from']} failed, so {data['to']} is asked: {data['message']}"


def _failed_move(data: Mapping[str, Any]) -> str:
    return f"no candidate: {data['message']}"


def _proposed(data: Mapping[str, Any]) -> str:
    return f"candidate {data['candidate'][:8]}: {data['label']}, writes {', '.join(data['files'])}"


def _checked(data: Mapping[str, Any]) -> str:
    total = data["passed"] + data["failed"]
    if not total:
        return f"not checked {data['candidate'][:8]} ({data['label']}): there is nothing to check it against"
    return f"checked {data['candidate'][:8]} ({data['label']}): {data['passed']} of {total} checks passed"


def _regressed(data: Mapping[str, Any]) -> str:
    return f"candidate {data['candidate'][:8]} breaks what worked: {', '.join(data['checks'])}"


def _unconfirmed(data: Mapping[str, Any]) -> str:
    return f"candidate {data['candidate'][:8]} passed once, and not again: {', '.join(data['checks'])}"


def _asked_person(data: Mapping[str, Any]) -> str:
    return f"a person is asked before {WAITS_BEFORE[data['stage']]}"


def _person_answered(data: Mapping[str, Any]) -> str:
    hint = f": {data['hint']}" if data["hint"] else ""
    return f"the person says: {data['choice']}{hint}"


def _finished(data: Mapping[str, Any]) -> str:
    return f"{data['outcome']}: {data['reason']}"


def _resumed(data: Mapping[str, Any]) -> str:
    return f"resumed at: {', '.join(data['at']) or 'the beginning'}"


def _refused(data: Mapping[str, Any]) -> str:
    return f"ended by an error: {data['message']}"


TELLERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "run.started": _started,
    "task.prepared": _prepared,
    "triage.finished": _triaged,
    "history.searched": _history_searched,
    "search.started": _search_began,
    "search.finished": _search_ended,
    "user.answered": _user_answered,
    "decided": _decided,
    "model.called": _called,
    "model.stepped_down": _stepped_down,
    "model.escalated": _escalated,
    "reply.cut": _cut,
    "move.failed": _failed_move,
    "candidate.proposed": _proposed,
    "candidate.checked": _checked,
    "candidate.regressed": _regressed,
    "candidate.unconfirmed": _unconfirmed,
    "review.asked": _asked_person,
    "review.answered": _person_answered,
    "run.parked": _finished,
    "run.resumed": _resumed,
    "run.finished": _finished,
    "run.refused": _refused,
    **HELPER_TELLERS,
    **PROOF_TELLERS,
}
