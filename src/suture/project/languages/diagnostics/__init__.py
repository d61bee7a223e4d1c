"""Linters, type checkers, formatters and compilers as data: how their commands and reports are read.

The package starts no process. `suture.judge.runners.diagnostics` runs the tools inside the sandbox.
"""

from suture.project.languages.diagnostics.annotations import find_lost_annotations
from suture.project.languages.diagnostics.enclosing_definitions import (
    find_definitions,
    find_enclosing_definition,
)
from suture.project.languages.diagnostics.reports import Diagnostic, ToolOutput
from suture.project.languages.diagnostics.suppressions import (
    find_configuration_files,
    find_hook_commands,
    find_new_suppressions,
    find_new_widenings,
)
from suture.project.languages.diagnostics.tool_table import (
    CONFIGURATION_GLOBS,
    TOOLS,
    UNSAFE_OPTIONS,
    DiagnosticTool,
    ToolCommand,
    find_runtime_language,
    find_tool,
    require_tool,
)

__all__ = [
    "CONFIGURATION_GLOBS",
    "TOOLS",
    "UNSAFE_OPTIONS",
    "Diagnostic",
    "DiagnosticTool",
    "ToolCommand",
    "ToolOutput",
    "find_configuration_files",
    "find_definitions",
    "find_enclosing_definition",
    "find_hook_commands",
    "find_lost_annotations",
    "find_new_suppressions",
    "find_new_widenings",
    "find_runtime_language",
    "find_tool",
    "require_tool",
]
