"""Errors that node and Go print, caused by the environment or by the code."""

from __future__ import annotations

import pytest

from suture.core.records import Language
from suture.judge.triage.environment_faults import find_fault_in_line, find_printed_errors

FILES = {
    "package.json": b'{"dependencies": {"express": "4"}, "devDependencies": {"@scope/kit": "1"}}',
    "go.mod": b"module example.org/rota\n\ngo 1.19\n",
    "lib/data.js": b"fs.writeFileSync('made.txt', text)",
    "lib/list.csv": b"",
}


@pytest.mark.parametrize(
    ("language", "output", "expected"),
    [
        ("javascript", "Error: Cannot find module 'express'\nRequire stack:\n- /box/a.js", "'express'"),
        (
            "javascript",
            "# Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'left-pad' imported",
            "'left-pad'",
        ),
        ("javascript", "    Cannot find module '@scope/kit/inner' from 'a.test.js'", "'@scope/kit'"),
        ("javascript", "Error: Cannot find module './sum'", None),
        ("javascript", "Error: Cannot find module 'expres'", None),
        ("javascript", "Error: Cannot find module 'express'\n  code: 'ERR_ASSERTION'", None),
        ("javascript", "Error: Cannot find module 'express'\nTypeError: a is not a function", None),
        ("javascript", "Error: ENOENT: no such file or directory, open '/box/town.csv'", "'town.csv'"),
        ("javascript", "Error: ENOENT: no such file or directory, open '/box/list.csv'", None),
        ("javascript", "Error: ENOENT: no such file or directory, open 'made.txt'", None),
        ("javascript", "Error: getaddrinfo EAI_AGAIN example.org", "network"),
        ("javascript", "not ok 1 - adds", None),
        ("go", "a.go:3:8: no required module provides package github.com/x/y; to add it:", "github.com/x/y"),
        ("go", "a.go:3:8: no required module provides package example.org/rota/clok", None),
        ("go", "a.go:4:2: undefined: foo", None),
        ("go", "--- FAIL: TestA\n    a_test.go:9: open town.csv: no such file or directory", "'town.csv'"),
        ("go", "--- FAIL: TestA\n    a_test.go:9: got 1, want 2", None),
        ("go", "panic: runtime error: index out of range", None),
        ("go", "a.go:3:8: package clok is not in GOROOT (/usr/lib/go/src/clok)", None),
        (
            "java",
            "[INFO] BUILD FAILURE\n"
            "[ERROR] Plugin org.example:kit:2.6 or one of its dependencies could not be resolved: (Permission denied)\n"
            "[ERROR] \n[ERROR] To see the full stack trace of the errors",
            "org.example:kit:2.6",
        ),
        (
            "java",
            "[ERROR] Failed to execute goal on project a: Could not resolve dependencies for project b: Cannot access "
            "central in offline mode and the artifact org.example:kit:jar:1 has not been downloaded from it before.",
            "org.example:kit:jar:1",
        ),
        (
            "java",
            "[ERROR] /box/src/A.java:[3,8] cannot find symbol\n[ERROR] Re-run Maven using the -X switch",
            None,
        ),
    ],
)
def test_a_failure_counts_only_if_all_its_errors_are_environment_faults(
    language: Language, output: str, expected: str | None
) -> None:
    causes = [find_fault_in_line(line, FILES, language) for line in find_printed_errors(output, language)]
    fault = causes[0] if causes and None not in causes else None
    assert (fault is None) == (expected is None), causes
    assert fault is None or expected is None or expected in fault.explanation
