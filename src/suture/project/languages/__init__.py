"""What a language is: how its commands and files are recognised and which programs they mean.

This room is plain data and plain functions over argument vectors and files' contents. It starts no process
and calls no model; `suture.sandbox` finds programs and runs things.
"""

from suture.project.languages.calling.call_driver import CallDriver, CallSite, Plus
from suture.project.languages.interpreter import SHOWN_PACKAGES, Interpreter, Toolchain
from suture.project.languages.language import DownloadedPackages, LanguageFacts, ProjectSigns
from suture.project.languages.layouts import ProjectLayout, filled
from suture.project.languages.package_scripts import (
    TASK_FILES,
    scripts_reached_by,
    scripts_run_by,
    task_lines,
    without_npm,
)
from suture.project.languages.python import (
    is_pytest_command,
    program_environment,
    pytest_equivalent,
    resolve_command,
)
from suture.project.languages.registry import (
    LANGUAGES,
    OURS,
    DetectedCommand,
    argv_for_report,
    detect_command,
    is_source,
    language_named,
    language_of_command,
    languages_of_files,
    runner_of,
)
from suture.project.languages.reports import Report, ReportedTest, Runner, RunnerOutput

__all__ = [
    "LANGUAGES",
    "OURS",
    "SHOWN_PACKAGES",
    "TASK_FILES",
    "CallDriver",
    "CallSite",
    "DetectedCommand",
    "DownloadedPackages",
    "Interpreter",
    "LanguageFacts",
    "Plus",
    "ProjectLayout",
    "ProjectSigns",
    "Report",
    "ReportedTest",
    "Runner",
    "RunnerOutput",
    "Toolchain",
    "argv_for_report",
    "detect_command",
    "filled",
    "is_pytest_command",
    "is_source",
    "language_named",
    "language_of_command",
    "languages_of_files",
    "program_environment",
    "pytest_equivalent",
    "resolve_command",
    "runner_of",
    "scripts_reached_by",
    "scripts_run_by",
    "task_lines",
    "without_npm",
]
