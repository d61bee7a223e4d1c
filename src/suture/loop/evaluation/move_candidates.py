"""Turn what a move wrote into candidates. The patches of a conversation are judged at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Move, Verdict
from suture.errors import MalformedReply
from suture.judge import Suite, find_protected_files
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, record_verdict, with_verdict
from suture.loop.evaluation.safety_questions import find_safety_question
from suture.loop.policy.attempts import Attempt, code_fingerprint
from suture.loop.services.candidate_store import Lineage, make_attempt
from suture.loop.state import LoopState
from suture.sandbox.packages import AddedPackages, PackagesRefused


@dataclass(frozen=True, kw_only=True)
class WrittenFiles:
    """What a model wrote.

    Attributes:
        files: Path -> text.
        call: The model call that produced the files, if it was a single one.
        shown: The project's files that the model saw.
        surplus: Files in the reply that the candidate does not write.
    """

    files: dict[str, str]
    call: str = ""
    shown: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MoveCandidates:
    """Makes the candidates of one move.

    Attributes:
        parent: The candidate that the move repairs; `None` if it repairs none.
        suite: The suite that judges the candidates.
    """

    move: Move
    parent: Attempt | None
    suite: Suite
    state: LoopState
    context: RunContext

    @property
    def lineage(self) -> Lineage:
        """Return the place of the candidates in the run."""
        parent, round_ = self.parent, self.state["round"]
        if parent is None or parent.origin == "user":
            return Lineage.beginning(round_)
        return Lineage(round=round_, start=parent.start, depth=parent.depth + 1)

    def make(self, files: Mapping[str, str], label: str) -> tuple[Candidate, dict[str, str]]:
        """Return the candidate with these files, and the files with the packages that they request.

        Raises:
            MalformedReply: The files cannot be a candidate.
        """
        parent = self.parent
        written = _with_requested_packages(dict(files), self.suite)
        inherited = dict(self.context.candidates.load(parent.blob).files) if parent else {}
        candidate = Candidate(
            files=drop_protected_files({**inherited, **written}, self.suite),
            origin="sample" if self.move.kind == "sample" or parent is None else "repair",
            parent=self.move.parent,
            label=label,
        )
        return candidate, written

    def propose(self, written: WrittenFiles, label: str) -> Attempt:
        """Propose what a model wrote as a candidate.

        Raises:
            MalformedReply: The files cannot be a candidate.
        """
        candidate, files = self.make(written.files, label)
        dropped = {path for path in files if path not in candidate.files}
        proposal = replace(
            self.context.candidates.make_proposal(candidate),
            call=written.call,
            shown_files=written.shown,
            files=tuple(sorted(path for path in files if path in candidate.files)),
            surplus_files=tuple(sorted({*written.surplus, *dropped})),
        )
        return self.context.candidates.propose(proposal, self.lineage)


class JudgedPatches:
    """Judges the patches of a conversation as candidates of the run (a `PatchJudge`).

    Attributes:
        attempts: The attempts of the patches so far, in their order.
    """

    def __init__(self, candidates: MoveCandidates) -> None:
        self.attempts: list[Attempt] = []
        self._candidates = candidates

    async def judge(self, changed: Mapping[str, str], number: int, call: str) -> Verdict | None:
        """Propose a patch, and run the deciding tests on it unless a person has to allow that first."""
        source, context = self._candidates, self._candidates.context
        attempt = source.propose(WrittenFiles(files=dict(changed), call=call), self._label(number))
        if find_safety_question([attempt], source.state, context) is not None:
            self.attempts.append(attempt)
            return None
        verdict = await judge(context.candidates.load(attempt.blob), source.suite, context)
        baseline = context.candidates.baseline_verdict(source.state)
        self.attempts.append(record_verdict(attempt, verdict, baseline, context))
        return verdict

    def restore(self, changed: Mapping[str, str], number: int, verdict: Verdict | None) -> None:
        """Take over a patch that an earlier process of this run has judged and recorded."""
        source, context = self._candidates, self._candidates.context
        candidate, _ = source.make(changed, self._label(number))
        proposal = context.candidates.find_proposal(candidate.hash)
        attempt = make_attempt(proposal or context.candidates.make_proposal(candidate), source.lineage)
        if verdict is not None:
            baseline = context.candidates.baseline_verdict(source.state)
            attempt = with_verdict(attempt, verdict, baseline, context)
            attempt = replace(attempt, fingerprint=code_fingerprint(candidate.files))
        self.attempts.append(attempt)

    def _label(self, number: int) -> str:
        turn = self._candidates.move.index + 1
        return f"patch {number}" if turn == 1 else f"patch {number} of turn {turn}"


def _with_requested_packages(files: dict[str, str], suite: Suite) -> dict[str, str]:
    """Return the files; in an existing project, requests for packages are written into its manifest.

    Raises:
        MalformedReply: A requested package is not available.
    """
    if not isinstance(suite.packages, AddedPackages):
        return files
    try:
        return suite.packages.normalize_requested_files(files)
    except PackagesRefused as fault:
        raise MalformedReply(f"no such packages are installed: {fault.reason}") from fault


def drop_protected_files(files: dict[str, str], suite: Suite) -> dict[str, str]:
    """Return the files that a candidate may write: what is judged must be what is delivered.

    Raises:
        MalformedReply: No file is left.
    """
    protected = find_protected_files(files, suite)
    allowed = {path: text for path, text in files.items() if path not in protected}
    mixed = suite.mixed_files.intersection(protected)
    if not allowed and mixed:
        raise MalformedReply(
            f"the reply changes tests in {', '.join(sorted(mixed))}: they must stay as they are"
        )
    if not allowed:
        raise MalformedReply(f"the reply writes only files that are protected: {', '.join(protected)}")
    return allowed
