"""A use of the test machinery or of the interpreter that a change adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CapabilityCode = Literal[
    "imports_test_machinery",
    "skips_tests",
    "inspects_callers",
    "reaches_memory",
    "reads_loaded_modules",
    "hooks_interpreter",
    "patches_code",
    "computes_names",
    "ends_process",
    "loosens_comparison",
    "writes_project_files",
    "reads_tests",
    "detects_environment",
    "starts_test_process",
    "hides_effects",
]
"""What new code can do so that its tests pass although it is wrong."""


@dataclass(frozen=True, kw_only=True)
class CapabilityUse:
    """One place where a change does what the file did not do before.

    Attributes:
        path: File of the use.
        line: Line in that file after the change, from 1.
        name: What is used, such as `sys._getframe`. It is taken from the candidate's code.
    """

    code: CapabilityCode
    path: str
    line: int
    name: str
