"""Texts for the reasons why something about a change was not measured."""

from __future__ import annotations

from suture.core.records.task import UnmeasuredReason

UNMEASURED_TEXTS: dict[UnmeasuredReason, str] = {
    "certification_seconds": "the setting certification.seconds allows no more time for it",
    "disabled": "it is disabled (certification.mutants = 0)",
    "left_out": "it is left out of a quick judgement, and where the verdict is certain without it",
    "linter_failed": "the linter failed on this project",
    "mutant_limit": "the setting certification.mutants allows no more",
    "no_changed_code": "no code was changed that Suture can parse, or only in a file that is too large",
    "no_linter": "ruff is not in the project's environment, in Suture's environment or on PATH",
    "no_mutants": "no operator applies to the changed code",
    "no_python_file": "no Python file was changed",
    "no_python_started": (
        "the test command starts no Python, or starts it with -I, which loads no recorder, or with another tracer"
    ),
    "no_tests": "no tests run",
    "no_time": "there was no time for it",
    "python_only": "it is only measured for Python",
    "separate_checks": "the checks call the code in a separate process, where Suture cannot record which lines run",
    "tool_fix": "the change is what the linter or formatter itself makes of the code",
    "unsupported_language": "Suture has no parser for this language",
}


def render_unmeasured(reason: UnmeasuredReason) -> str:
    """Return a reason as text that continues a sentence: `not measured: there was no time for it`."""
    return UNMEASURED_TEXTS[reason]
