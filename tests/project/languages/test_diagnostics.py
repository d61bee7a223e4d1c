"""Commands and reports of linters, type checkers, formatters and compilers are understood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from suture.project.languages.diagnostics import (
    TOOLS,
    ToolOutput,
    find_definitions,
    find_enclosing_definition,
    find_lost_annotations,
    find_new_suppressions,
    find_new_widenings,
    find_tool,
)
from suture.project.languages.diagnostics.reports import read_report
from suture.project.languages.diagnostics.tool_table import drop_options


@pytest.mark.parametrize(
    ("command", "report"),
    [
        ("ruff check -q src", "ruff check --output-format=json --no-cache --no-fix src"),
        ("ruff check --output-format github .", "ruff check --output-format=json --no-cache --no-fix ."),
        ("python -m flake8 --format=pylint a", "python -m flake8 --format={flake8} --color=never -j1 a"),
        ("npx --no eslint -f stylish .", "eslint --format json ."),
        ("pnpm exec tsc --noEmit --pretty", "tsc --noEmit --pretty false"),
        ("env -C web prettier -c .", "env -C web prettier --list-different ."),
        ("go vet ./...", "go vet -json ./..."),
        ("go build -o bin/app ./...", "go build -gcflags=-e -o=/dev/null ./..."),
        ("cargo clippy --all", "cargo clippy --message-format=json --all"),
        ("pre-commit run --all-files", "pre-commit run --color=never --all-files"),
    ],
)
def test_a_tool_is_asked_for_its_report_in_place_of_the_users_own(command: str, report: str) -> None:
    found = find_tool(command.split())
    assert found is not None
    words = report.replace("{flake8}", "%(path)s:%(row)d:%(col)d:_%(code)s_%(text)s").split()
    assert [word.replace(" ", "_") for word in found.make_report_command()] == words


@pytest.mark.parametrize(
    "command",
    [
        "ruff check --fix .", "ruff check --exit-zero .", "flake8 --exit-zero", "eslint --fix .",
        "prettier --check --write .", "cargo clippy --fix", "ruff format .",
        "prettier --write .", "pytest", "npm test", "go test ./...", "ruff", "env", "",
    ],
)  # fmt: skip
def test_a_command_that_changes_files_or_runs_tests_is_no_check(command: str) -> None:
    assert find_tool(command.split()) is None


@pytest.mark.parametrize(
    ("command", "fixes"),
    [
        ("ruff check .", ["ruff check --fix .", "ruff check --fix --unsafe-fixes ."]),
        ("ruff format --check .", ["ruff format ."]),
        ("npx prettier --check src", ["prettier --write src"]),
        ("cargo check", ["cargo fix --allow-no-vcs --broken-code"]),
        ("mypy src", []),
    ],
)
def test_the_fixes_of_a_tool_are_its_own(command: str, fixes: list[str]) -> None:
    found = find_tool(command.split())
    assert found is not None
    assert [" ".join(words) for words in found.make_fix_commands()] == fixes


def test_options_with_values_are_dropped_with_them() -> None:
    words = ("-f", "json", "--format=x", "--fix", "src", "-q")
    assert drop_options(words, ("-f=", "--format=", "--fix")) == ("src", "-q")


CARGO = {
    "reason": "compiler-message",
    "message": {
        "level": "error",
        "code": {"code": "E0384"},
        "message": "cannot assign twice",
        "spans": [{"is_primary": True, "file_name": "src/lib.rs", "line_start": 4, "byte_start": 50}],
    },
}
PYRIGHT = {
    "generalDiagnostics": [
        {
            "file": "/box/a.py",
            "severity": "error",
            "rule": "reportX",
            "message": "wrong\n  type",
            "range": {"start": {"line": 8}},
        },
        {"file": "/box/a.py", "severity": "information", "message": "hint"},
    ]
}
ESLINT = [
    {"filePath": "/box/a.js", "messages": [{"line": 2, "ruleId": "no-var", "message": "m", "severity": 2}]}
]
RUFF = [{"filename": "/box/a.py", "location": {"row": 1}, "code": "F401", "message": "unused"}]
VET = '# p\n{\n"p": {"printf": [{"posn": "/box/a.go:7:2", "message": "bad verb"}]}\n}\n'
HOOKS = (
    "ruff....................Failed\n- hook id: ruff-check\n- exit code: 1\n\na.py:1:8: F401 unused\n\n"
    "yaml...Passed\n"
)


@pytest.mark.parametrize(
    ("tool", "stdout", "stderr", "expected"),
    [
        ("ruff check", RUFF, "", [("a.py", 1, "F401", "unused")]),
        ("ruff format", "Would reformat: b/a.py\n1 file", "", [("b/a.py", 0, "format", "is not formatted")]),
        (
            "ruff format",
            "unformatted: File would be reformatted\n --> a.py:1:7\n  |\n\ninvalid-syntax: Odd\n --> b.py:2:1\n",
            "",
            [("a.py", 0, "format", "is not formatted"), ("b.py", 2, "syntax", "invalid-syntax: Odd")],
        ),
        ("flake8", "./a.py:3:1: E302 expected 2 blank lines\n", "", [("a.py", 3, "E302", "expected 2 blank lines")]),
        (
            "mypy",
            'a.py:9:16: error: Bad operand ("None")  [operator]\na.py:9: note: left\nFound 1 error\n',
            "",
            [("a.py", 9, "operator", 'Bad operand ("None")')],
        ),
        ("pyright", PYRIGHT, "", [("a.py", 9, "reportX", "wrong type")]),
        ("eslint", ESLINT, "", [("a.js", 2, "no-var", "m")]),
        ("tsc", "a.ts(7,3): error TS2551: No 'prize'.\n", "", [("a.ts", 7, "TS2551", "No 'prize'.")]),
        ("prettier", "src/a.js\n", "[error] b.js: SyntaxError: Unexpected (2:1)", [
            ("src/a.js", 0, "format", "is not formatted"), ("b.js", 2, "syntax", "SyntaxError: Unexpected")]),
        ("go vet", "", VET, [("a.go", 7, "printf", "bad verb")]),
        ("go build", "", "# p\n./m.go:9:2: count declared but not used\n", [
            ("m.go", 9, "error", "count declared but not used")]),
        (
            "cargo clippy",
            # The library itself, and the library as its tests use it.
            f"{json.dumps(CARGO)}\n{json.dumps(CARGO)}\n",
            "",
            [("src/lib.rs", 4, "E0384", "cannot assign twice")],
        ),
        ("pre-commit run", HOOKS, "", [("a.py", 1, "ruff-check F401", "unused")]),
    ],
)  # fmt: skip
def test_each_report_is_read(
    tool: str, stdout: Any, stderr: str, expected: list[tuple[str, int, str, str]]
) -> None:
    read = next(known.read for known in TOOLS if known.name == tool)
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    found = read_report(read, ToolOutput(stdout=text, stderr=stderr, root="/box"))
    assert [(one.file, one.line, one.code, one.message) for one in found] == expected


def test_paths_are_relative_to_the_project_and_not_to_the_folder_of_the_command() -> None:
    read = next(known.read for known in TOOLS if known.name == "flake8")
    output = ToolOutput(stdout="./a.py:3:1: E302 x\n", stderr="", root="/box", folder="back/end")
    assert [one.file for one in read_report(read, output)] == ["back/end/a.py"]


@pytest.mark.parametrize("tool", ["ruff check", "pyright", "eslint", "go vet", "cargo check", "tsc", "mypy"])
def test_a_report_that_is_none_holds_no_diagnostics(tool: str) -> None:
    read = next(known.read for known in TOOLS if known.name == tool)
    assert read_report(read, ToolOutput(stdout="Oops: [1] {", stderr="{", root="/box")) == ()


@pytest.mark.parametrize(
    ("path", "text", "line", "name"),
    [
        ("a.py", "class A:\n    def f(self):\n        return 1\n", 3, "A.f"),
        ("a.py", "x = 1\n", 1, ""),
        ("a.ts", "class A {\n  f() {\n    return 1;\n  }\n}\n", 3, "A.f"),
        ("a.go", "package a\n\nfunc F() int {\n\treturn 1\n}\n", 4, "F"),
        ("a.txt", "def f(): pass\n", 1, ""),
    ],
)
def test_the_definition_around_a_line_is_found(path: str, text: str, line: int, name: str) -> None:
    assert find_enclosing_definition(path, text, line) == name


def test_a_file_that_does_not_parse_has_no_definitions() -> None:
    assert find_definitions("a.py", "def f(:\n") == ()


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa", "x = 1  # noqa: F841", "# ruff: noqa", "# flake8: noqa", "x: int = ''  # type: ignore[x]",
        "# mypy: ignore-errors", "# pyright: basic", "# pylint: disable=all", "# fmt: off", "@no_type_check",
        "if not TYPE_CHECKING:", "// eslint-disable-next-line", "/* eslint-disable */", "/* eslint no-var: off */",
        "// @ts-ignore", "// @ts-nocheck", "// @ts-expect-error", "// prettier-ignore", "//nolint:errcheck",
        "//go:build ignore", "// Code generated by hand. DO NOT EDIT.", "#[allow(dead_code)]", "#![allow(warnings)]",
        "#[cfg(any())]", "\t_ = count", "var _ = os.Args", "x = 1  # NOQA", "x = 1  # NoQA", "# ruff: ignore[F401]",
        "# ruff: file-ignore[F401]", "# see pylint: disable=all", "/* eslint @typescript-eslint/x: 0 */",
        "/* exported x */", "# [allow(x)]", "// NOLINT", "// NOLINTNEXTLINE(x)", "x = 1  # nosec", "# yapf: disable",
        "# shellcheck disable=SC2086",
    ],
)  # fmt: skip
def test_what_switches_rules_off_is_found(line: str) -> None:
    assert find_new_suppressions("a\n", f"a\n{line}\n")
    assert not find_new_suppressions(f"{line}\n", f"b\n{line}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\nx = 1  # noqa: E501\n", "import os  # noqa\nx = 1\n"),
        ("import os\nx = 1  # noqa: E501\n", "import os  # noqa: E501\nx = 1\n"),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa\n"),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa: E501, F401\n"),
        ("x = 1  # type: ignore[x]\n", "x = 1  # type: ignore\n"),
        ("#[allow(dead_code)]\nfn a() {}\n", "#[allow(dead_code, unused_variables)]\nfn a() {}\n"),
        ("#[allow(dead_code)]\nfn a() {}\nfn b() {}\n", "fn a() {}\n#[allow(dead_code)]\nfn b() {}\n"),
        ("#[allow(\n  dead_code)]\nfn a() {}\n", "#[allow(\n  warnings)]\nfn a() {}\n"),
        ("/* eslint-disable a */\n", "/* eslint-disable */\n"),
        ("/* eslint-disable a\n*/\n", "/* eslint-disable a,\n b */\n"),
        ("// @ts-ignore\nf(a);\nf(b);\n", "f(a);\n// @ts-ignore\nf(b);\n"),
        ("//go:build linux || darwin\n", "//go:build linux\n"),
    ],
)
def test_a_suppression_that_is_wider_or_moves_to_other_code_is_new(before: str, after: str) -> None:
    assert find_new_suppressions(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: E501, F401\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # type: ignore\n", "x = 1  # type: ignore[a]\n"),
        ("x = f( 'a' )  # noqa: E501\n", 'x = f("a")  # noqa: E501\n'),
        ("x = f(a)  # noqa: E501\n", "x = f(\n    a\n)  # noqa: E501\n"),
        ("x = f(a)  # noqa: E501\n", "x = f(a + 1)  # noqa: E501\n"),
        ("# ruff: noqa: E501\nimport os\nx = 1\n", "# ruff: noqa: E501\nx = 1\n"),
        ("x = 1  # noqa\n", "y = 2\nx = 1  # noqa\n"),
        ("a = 'b/*'\nx = 1  # noqa\ny = 2\n", "a = 'b/*'\nx = 1  # noqa\ny = 3\n"),
        ("#[allow(a)]\nfn a() { 1 }\n", "#[allow(a)]\nfn a() { 2 }\n"),
    ],
)
def test_a_suppression_may_become_narrower_and_its_code_may_change(before: str, after: str) -> None:
    assert not find_new_suppressions(before, after)


@pytest.mark.parametrize(
    ("path", "line", "names"),
    [
        ("a.py", "def f(x: Any) -> int: ...", ("Any",)),
        ("a.py", "x = cast(int, y)", ("cast",)),
        ("a.py", "x = getattr(y, 'z')", ("getattr",)),
        ("a.py", "def f(company: Company) -> int: ...", ()),
        ("a.ts", "const x: any = 1;", ("any",)),
        ("a.ts", "(item as any).prize", ("any",)),
        ("a.ts", "(x as unknown as T)", ("unknown",)),
        ("a.ts", "const many: number = 1;", ()),
        ("a.js", "last = /** @type {any} */ (error);", ("any",)),
        ("a.js", "/** @param {Array<*>} items */", ("any",)),
        ("a.js", "/** @param {string[]} items of any kind */", ()),
        ("a.ts", "type T = any;", ("any",)),
        ("a.ts", "const f: () => any = g;", ("any",)),
        ("a.ts", "f(x as never)", ("never",)),
        ("a.ts", "const y = x!", ("!",)),
        ("a.ts", "const y = x! + 1", ("!",)),
        ("a.ts", "if (x !== y && !z) f(x != 1)", ()),
        ("a.ts", "let f: Function", ("Function",)),
        ("a.py", "x: ty.Any = 1", ("Any",)),
        ("a.py", "if TYPE_CHECKING:\n    def f() -> str: ...\n\nelse:\n    f = g", ("TYPE_CHECKING",)),
        ("a.py", "if TYPE_CHECKING:\n    import a\nif x:\n    y = 1\nelse:\n    y = 2", ()),
    ],
)
def test_wider_types_are_found(path: str, line: str, names: tuple[str, ...]) -> None:
    assert find_new_widenings(path, "", f"{line}\n") == names


@pytest.mark.parametrize(
    ("path", "before", "after", "names"),
    [
        ("a.py", "def f(x: int) -> str: return x", "def f(x): return x", ("f",)),
        ("a.py", "class A:\n def f(self, *, x: int) -> str: ...", "class A:\n def f(self, *, x) -> str: ...", ("A.f",)),
        ("a.py", "def f(x: int, y: int) -> str: ...", "def f(x: int) -> str: ...", ()),
        ("a.py", "def f(x): ...", "def f(x, y): ...", ()),
        ("a.ts", "function f(x: A): B { return x; }", "function f(x: A) { return x; }", ("f",)),
        ("a.ts", "const f = (x: A): B => x;", "const f = (x): B => x;", ("f",)),
        ("a.ts", "class A { f(x?: B, y: B): C {} }", "class A { f(x?: B): C {} }", ()),
        ("a.js", "function f(x) {}", "", ()),
    ],
)  # fmt: skip
def test_functions_that_lose_annotations_are_found(
    path: str, before: str, after: str, names: tuple[str, ...]
) -> None:
    assert find_lost_annotations(path, before, after) == names
