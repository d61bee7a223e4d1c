"""What came of a heal in a pipeline, as a record, as a folder of files, and as the outputs of its step."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from suture.core.records import Evidence, Outcome, Verdict, encode_record
from suture.errors import StorageError
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, Refusal
from suture.interfaces.ci.line_edits import LineEdit
from suture.interfaces.narrative.exit_codes import EXIT_CODES

REFUSED = 7
"""The exit code of a command that a gate of `ci` forbids to go on."""
CERTIFICATE, PATCH, SUMMARY = "certificate.json", "fix.patch", "summary.md"


@dataclass(frozen=True, kw_only=True)
class HealReport:
    """How a heal in a pipeline ended.

    Attributes:
        outcome: The run's, or `refused_report` where a gate stayed shut.
        reason: The gate's name for `refused_report`, the cause for `not_a_code_fault`; else empty.
        detail: In words; it may hold text of others.
        commit: The commit that was looked at.
        branch: Its branch.
        base: What it was compared with.
        run: The id of the run; empty where none was begun.
        failing: The tests that fail.
        old_failures: Those of them that fail at the base too, and were left out.
        verdict: How the tests end on the code as it is, where they were run.
        diff: The change that was found; also where a gate holds it back.
        edits: The same by lines.
        confidence: In [0, 1].
        evidence: The kind of evidence of its verdict.
        warnings: Signs that the change games the tests.
        seconds: How long it took.
        certificate: The certificate in the run's folder, where there is one.
    """

    outcome: Outcome | str
    reason: str = ""
    detail: str = ""
    commit: str = ""
    branch: str = ""
    base: str = ""
    run: str = ""
    failing: tuple[str, ...] = ()
    old_failures: tuple[str, ...] = ()
    verdict: Verdict | None = None
    diff: str = ""
    edits: tuple[LineEdit, ...] = ()
    confidence: float = 0.0
    evidence: Evidence | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    certificate: Path | None = field(default=None, compare=False)

    @property
    def exit_code(self) -> int:
        """What `suture ci heal` ends with."""
        return REFUSED if self.outcome == "refused" else EXIT_CODES[self.outcome]  # type: ignore[index] # an Outcome

    @property
    def name(self) -> str:
        """The outcome with its reason, in fixed words."""
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome


def refused_report(refusal: Refusal) -> HealReport:
    """The report of a heal that a gate forbids."""
    detail = f"{REFUSAL_TEXTS[refusal.reason]} ({refusal.detail})"
    return HealReport(outcome="refused", reason=refusal.reason, detail=detail)


def heal_report_as_json(report: HealReport) -> dict[str, object]:
    """A report for programs."""
    plain = encode_record(report)
    plain.pop("certificate")
    verdict = plain.pop("verdict")
    tests = {one["check_id"]: one["status"] for one in verdict["outcomes"]} if verdict else {}
    return {**plain, "tests": tests, "exit_code": report.exit_code}


def write_report_folder(report: HealReport, texts: Mapping[str, str], folder: Path) -> None:
    """Write what a later job needs: the certificate, the patch, and the report in each of its forms.

    Args:
        report: How the heal ended.
        texts: Name -> content, of files beside these.
        folder: It is made where it is not there.

    Raises:
        StorageError: It cannot be written.
    """
    whole = json.dumps(heal_report_as_json(report), indent=1) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {"report.json": whole, PATCH: report.diff, **texts}
        # Of a checkout that brings such files along: a link would lead elsewhere, a certificate is not ours.
        for name in (*names, CERTIFICATE):
            (folder / name).unlink(missing_ok=True)
        for name, text in names.items():
            # A patch of a file in another encoding holds surrogates for its bytes.
            (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        if report.certificate is not None and report.outcome == "healed":
            shutil.copyfile(report.certificate, folder / CERTIFICATE)
    except OSError as fault:
        raise StorageError(f"{str(folder)!r} cannot be written: {fault.strerror}") from fault


def write_step_outputs(report: HealReport, summary: str, environ: Mapping[str, str]) -> None:
    """Add to the files that GitHub names for a step: its outputs, which are words of ours, and its summary.

    Raises:
        StorageError: One of them cannot be written.
    """
    outputs = f"outcome={report.outcome}\nreason={report.reason}\n"
    for variable, text in (("GITHUB_OUTPUT", outputs), ("GITHUB_STEP_SUMMARY", summary)):
        if not environ.get(variable):
            continue
        try:
            with Path(environ[variable]).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as fault:
            raise StorageError(f"{variable} cannot be written: {fault.strerror}") from fault
