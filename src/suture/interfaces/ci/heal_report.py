"""The report of a heal in a pipeline, and how it is written to a folder."""

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
from suture.interfaces.ci.report_files import refuse_links
from suture.interfaces.narrative.exit_codes import EXIT_CODES

REFUSED = 7
"""The exit code of a command that a gate of `ci` refuses."""
CERTIFICATE, PATCH, SUMMARY = "certificate.json", "fix.patch", "summary.md"
"""Names of files in the report folder."""


@dataclass(frozen=True, kw_only=True)
class HealReport:
    """How a heal in a pipeline ended.

    Attributes:
        outcome: The run's outcome, or `refused` if a gate refused.
        reason: The refusal's code for `refused`, the cause for `not_a_code_fault`; else empty.
        detail: The reason as text; it can contain untrusted text.
        base: The commit that it was compared with.
        run: The run's id; empty if no run was started.
        old_failures: The failing tests that also fail at the base and were left out.
        verdict: The verdict on the unchanged code, if the tests were run.
        diff: The change, even if a gate refused it.
        edits: The change as line edits.
        confidence: The confidence, in [0, 1].
        evidence: The kind of evidence of its verdict.
        certificate: The certificate in the run's folder, if there is one.
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
        """Return the exit code of `suture ci heal`."""
        return REFUSED if self.outcome == "refused" else EXIT_CODES[self.outcome]  # type: ignore[index] # an Outcome

    @property
    def name(self) -> str:
        """Return the outcome with its reason, both codes."""
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome


def refused_report(refusal: Refusal) -> HealReport:
    """Return the report of a heal that a gate refused."""
    detail = f"{REFUSAL_TEXTS[refusal.reason]} ({refusal.detail})"
    return HealReport(outcome="refused", reason=refusal.reason, detail=detail)


def heal_report_as_json(report: HealReport) -> dict[str, object]:
    """Return a report as JSON values."""
    report_json = encode_record(report)
    report_json.pop("certificate")
    verdict = report_json.pop("verdict")
    tests = {outcome["check_id"]: outcome["status"] for outcome in verdict["outcomes"]} if verdict else {}
    return {**report_json, "tests": tests, "exit_code": report.exit_code}


def write_report_folder(
    report: HealReport, texts: Mapping[str, str], folder: Path, *, checkout: Path
) -> None:
    """Write what a later job needs: the certificate, the patch, and the report in each format.

    Raises:
        UsageError: As `refuse_links` does.
        StorageError: The folder cannot be written.
    """
    refuse_links(folder, checkout)
    report_text = json.dumps(heal_report_as_json(report), indent=1) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {"report.json": report_text, PATCH: report.diff, **texts}
        # A checkout may contain such names: a hard link or a pipe would redirect the write, a certificate would
        # be forged. Files are created with mode `x`, which follows no link.
        for name in (*files, CERTIFICATE):
            (folder / name).unlink(missing_ok=True)
        for name, text in files.items():
            # In a patch of a file that is not UTF-8, surrogates stand for its bytes.
            with (folder / name).open("xb") as file:
                file.write(text.encode("utf-8", "surrogateescape"))
        if report.certificate is not None and report.outcome == "healed":
            shutil.copyfile(report.certificate, folder / CERTIFICATE)
    except OSError as fault:
        raise StorageError(f"{str(folder)!r} cannot be written: {fault.strerror}") from fault
