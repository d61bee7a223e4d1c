"""Languages as data: how their commands and files are recognised, and which programs they mean.

The package consists of plain data, and of functions over argument vectors and the contents of files. It
starts no process and calls no model; `suture.sandbox` finds programs and runs them.
"""

from suture.project.languages.calling.javascript_calls import CallDriver, CallSite, JsonPlus
from suture.project.languages.command_prefix import add_prefix, find_working_folder, split_prefix
from suture.project.languages.interpreter import LOANED_PYTEST_MOUNT, PACKAGES_MOUNT, Interpreter, Toolchain
from suture.project.languages.language import LanguageFacts, ModuleLookup, PackageCache, ProjectOverview
from suture.project.languages.language_table import (
    BUILT_IN_LANGUAGES,
    LANGUAGES,
    DetectedCommand,
    add_report_arguments,
    detect_command,
    detect_file_languages,
    detect_language,
    find_language,
    find_runner,
    is_source,
)
from suture.project.languages.layouts import ProjectLayout, fill_placeholders
from suture.project.languages.package_scripts import (
    TASK_FILES,
    bypass_npm,
    find_reachable_scripts,
    find_started_scripts,
    find_task_commands,
)
from suture.project.languages.python import (
    find_django_tests,
    is_pytest_command,
    program_environment,
    pytest_equivalent,
    resolve_command,
)
from suture.project.languages.reports import Report, ReportedTest, Runner, RunnerOutput
from suture.project.languages.wrapped_commands import WrappedTests, find_search_command, find_wrapped_tests

__all__ = [
    "BUILT_IN_LANGUAGES",
    "LANGUAGES",
    "LOANED_PYTEST_MOUNT",
    "PACKAGES_MOUNT",
    "TASK_FILES",
    "CallDriver",
    "CallSite",
    "DetectedCommand",
    "Interpreter",
    "JsonPlus",
    "LanguageFacts",
    "ModuleLookup",
    "PackageCache",
    "ProjectLayout",
    "ProjectOverview",
    "Report",
    "ReportedTest",
    "Runner",
    "RunnerOutput",
    "Toolchain",
    "WrappedTests",
    "add_prefix",
    "add_report_arguments",
    "bypass_npm",
    "detect_command",
    "detect_file_languages",
    "detect_language",
    "fill_placeholders",
    "find_django_tests",
    "find_language",
    "find_reachable_scripts",
    "find_runner",
    "find_search_command",
    "find_started_scripts",
    "find_task_commands",
    "find_working_folder",
    "find_wrapped_tests",
    "is_pytest_command",
    "is_source",
    "program_environment",
    "pytest_equivalent",
    "resolve_command",
    "split_prefix",
]
