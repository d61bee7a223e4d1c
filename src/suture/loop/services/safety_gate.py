"""Refuse to run candidates that the safety scan blocks, or that a person has to allow first."""

from __future__ import annotations

from collections.abc import Iterable

from suture.core.ledger import Ledger, RunFolder, select_events
from suture.core.ledger.kinds import ReviewAnswered, ReviewAsked
from suture.core.records import Candidate, CheckOutcome, Counterexample, Verdict, VerdictNote
from suture.core.settings import SafetySettings
from suture.loop.services.suite_provider import SuiteProvider
from suture.loop.tuning import MAX_LISTED_FINDINGS
from suture.project.safety import Finding, resolve_levels, scan_change
from suture.project.workspace import decode_text

CHECK_ID_PREFIX = "safety: "
"""Prefix of the check ids of findings; no test of a project has such an id."""
WRITTEN_BY_PEOPLE = ("user", "edit")
"""Origins of candidates that are not scanned."""
RuleUse = tuple[str, str]
"""The check id of a rule and a piece of code: what a person allows, wherever the code occurs."""


class SafetyGate:
    """Scans candidates before they run, and finds in the ledger what a person has allowed.

    Raises:
        UsageError: The settings name a rule that does not exist.
    """

    def __init__(
        self, settings: SafetySettings, suites: SuiteProvider, folder: RunFolder, ledger: Ledger
    ) -> None:
        self._levels = resolve_levels(settings)
        self._suites = suites
        self._folder = folder
        self._ledger = ledger
        self._scans: dict[tuple[str, str], tuple[Finding, ...]] = {}

    def scan(self, candidate: Candidate) -> tuple[Finding, ...]:
        """Return what the safety scan finds in the changes of a candidate; nothing in a person's own code."""
        key = (candidate.hash, candidate.origin)
        if key not in self._scans:
            self._scans[key] = self._scan(candidate)
        return self._scans[key]

    def _scan(self, candidate: Candidate) -> tuple[Finding, ...]:
        if candidate.origin in WRITTEN_BY_PEOPLE:
            return ()
        files, task_files = candidate.files, self._suites.task.files
        before = {path: decode_text(task_files[path]) for path in files if path in task_files}
        findings = scan_change(before, files, self._levels)
        packages = self._suites.packages
        if packages is None:
            return findings
        # Suture itself wrote these files. They name the packages that a requested package requires, and a
        # person was asked about that one.
        return tuple(
            finding for finding in findings if not packages.wrote_file(finding.path, files[finding.path])
        )

    def vet(self, candidate: Candidate) -> Verdict | None:
        """Return a verdict on a candidate that must not run; `None` if it may run."""
        findings = [finding for finding in self.scan(candidate) if finding.level in ("block", "ask")]
        if not findings:
            return None
        allowed_uses = self.answered_uses(only_allowed=True)
        refused = [
            finding
            for finding in findings
            if finding.level == "block" or rule_use(finding) not in allowed_uses
        ]
        return make_refusal(candidate, refused) if refused else None

    def answered_uses(
        self, *, before_round: int | None = None, only_allowed: bool = False
    ) -> frozenset[RuleUse]:
        """Return the uses of rules that a person has answered a question about.

        Args:
            before_round: Leave out questions of this round and later.
            only_allowed: Leave out uses that the person did not approve.
        """
        events = self._ledger.events
        choices = {answer.key: answer.choice for _, answer in select_events(events, ReviewAnswered)}
        uses: set[RuleUse] = set()
        for _, question in select_events(events, ReviewAsked):
            if question.stage != "safety" or (before_round is not None and question.round >= before_round):
                continue
            choice = choices.get(question.key)
            if choice is not None and (choice == "approve" or not only_allowed):
                verdict = self._folder.load_record(Verdict, question.verdict)
                uses |= {(fact.check_id, fact.call) for fact in verdict.counterexamples}
        return frozenset(uses)


def rule_use(finding: Finding) -> RuleUse:
    """Return what a person would allow by approving a finding."""
    return f"{CHECK_ID_PREFIX}{finding.rule}", finding.code


def make_refusal(
    candidate: Candidate, findings: Iterable[Finding], *, awaits_answer: bool = False
) -> Verdict:
    """Return the verdict on a candidate that is not run, with each finding as a counterexample.

    Args:
        findings: The findings that stop it; at least one.
        awaits_answer: Whether a person is being asked, who may still allow it.
    """
    listed = tuple(findings)[:MAX_LISTED_FINDINGS]
    why = "a person has to allow it" if awaits_answer else "it is not run"
    facts = [
        Counterexample(
            check_id=f"{CHECK_ID_PREFIX}{finding.rule}",
            call=finding.code,
            actual=f"no result, for {why}: {finding.reason} (rule {finding.rule})",
            expected="the same by other means",
            file=finding.path,
            line=finding.line,
        )
        for finding in listed
    ]
    return Verdict(
        candidate=candidate.hash,
        outcomes=tuple(
            CheckOutcome(check_id=fact.check_id, status="error", counterexample=fact) for fact in facts
        ),
        evidence="split",
        output="\n".join(f"{why}: {finding.render()}" for finding in listed),
        notes=(VerdictNote(code="scan_asks" if awaits_answer else "scan_refused"),),
    )


def is_refusal(verdict: Verdict) -> bool:
    """Return whether a verdict says that the candidate was not run."""
    return any(outcome.check_id.startswith(CHECK_ID_PREFIX) for outcome in verdict.outcomes)


def summarise_findings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the findings as warnings of a result, one line each."""
    lines = [f"safety: {finding.render()}" for finding in findings]
    left_out = len(lines) - MAX_LISTED_FINDINGS
    more = [f"safety: and {left_out} more"] if left_out > 0 else []
    return (*lines[:MAX_LISTED_FINDINGS], *more)
