"""Suture's own evaluators: line counts, docstrings, complexity, lint, security and statement coverage.

Ruff and the code's own tests run inside the sandbox. Radon and Bandit only parse the code, so they run here.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from suture.core.installation import format_install_command
from suture.core.records import UnmeasuredReason
from suture.core.records.unmeasured_text import render_unmeasured
from suture.core.settings import SandboxSettings
from suture.judge.coverage.coverage_run import find_changed_lines, find_touched_by_file, record_executed_lines
from suture.judge.extraction.program_plans import get_module_name
from suture.judge.quality.evaluator import QualityResult, QualitySubject
from suture.judge.runners.diagnostics.lent_programs import find_ruff
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files, make_program_limits
from suture.judge.tuning import MAX_LINT_FINDINGS
from suture.project.languages import Interpreter, resolve_command
from suture.project.python_source.parsing import parse_module
from suture.project.safety.scanning import bandit_issues
from suture.project.workspace import decode_text, overlay_candidate
from suture.sandbox import BOX, Mount, RunRequest, Sandbox, get_own_interpreter

NO_PYTHON = "no file of the code is Python"
NO_STATEMENT = "the code has no statement"
NO_TEST = "the task has no check and no test command"
NO_RECORDER = "the tests started no Python that loads the recorder"
MAX_COMPLEXITY = 10
"""McCabe's own limit (1976), and radon's border between the grades B and C."""
SEVERITIES = ("low", "medium", "high")
CHECK_RUNNER = f"{PRIVATE_FOLDER}/check_runner.py"
CHECK_SOURCES = f"{PRIVATE_FOLDER}/checks.json"
LAYOUT_TOKENS = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)
"""Tokens that do not make a line a line of code."""


def _select_parsable(subject: QualitySubject) -> dict[str, str]:
    """Return path -> text of the subject's files that are valid Python."""
    return {path: text for path, text in subject.files.items() if parse_module(text) is not None}


class LineCounts:
    """Counts lines of code, lines with comments, and all lines."""

    name = "lines"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Count the lines of the files that can be parsed."""
        texts = _select_parsable(subject).values()
        code = comments = 0
        try:
            for text in texts:
                tokens = list(_iter_line_tokens(text))
                code += len({line for line, kind in tokens if kind not in LAYOUT_TOKENS})
                comments += len({line for line, kind in tokens if kind == tokenize.COMMENT})
        except (tokenize.TokenError, SyntaxError) as fault:
            return QualityResult(unmeasured=f"the code cannot be tokenized: {fault}")
        total = sum(len(text.splitlines()) for text in texts)
        values = {"lines_total": total, "lines_of_code": code, "lines_with_comments": comments}
        return QualityResult(values=values) if texts else QualityResult(unmeasured=NO_PYTHON)


def _iter_line_tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield (line, token type), once for each line that a token spans."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        for line in range(token.start[0], token.end[0] + 1):
            yield line, token.type


class DocstringCoverage:
    """Measures the share of public functions, methods and classes that have a docstring."""

    name = "docstrings"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Check each definition whose name has no leading underscore; nested functions do not count."""
        trees = {
            path: tree for path, text in subject.files.items() if (tree := parse_module(text)) is not None
        }
        if not trees:
            return QualityResult(unmeasured=NO_PYTHON)
        public = [(path, node) for path, tree in trees.items() for node in _iter_public_definitions(tree)]
        undocumented = [(path, node) for path, node in public if not ast.get_docstring(node)]
        if not public:
            return QualityResult(unmeasured="the code defines nothing public")
        return QualityResult(
            values={"docstring_coverage": 1 - len(undocumented) / len(public)},
            findings=tuple(
                f"{path}:{node.lineno}: {node.name} has no docstring" for path, node in undocumented
            ),
        )


def _iter_public_definitions(
    scope: ast.Module | ast.ClassDef,
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_"):
                yield node
            if isinstance(node, ast.ClassDef):
                yield from _iter_public_definitions(node)


class Complexity:
    """Counts paths through each function, and rates each file's maintainability from 0 to 100 by radon."""

    name = "complexity"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Measure the files that can be parsed. Radon parses them and runs nothing."""
        try:
            from radon.complexity import cc_visit
            from radon.metrics import mi_visit
        except ImportError:
            return QualityResult(unmeasured=f"radon is not installed; {format_install_command('quality')}")
        texts = _select_parsable(subject)
        if not texts:
            return QualityResult(unmeasured=NO_PYTHON)
        try:
            return _measure_complexity(texts, cc_visit, mi_visit)
        except RecursionError:
            return QualityResult(unmeasured="the code is nested too deeply for radon")


def _measure_complexity(
    texts: Mapping[str, str], cc_visit: Callable[[str], Any], mi_visit: Callable[..., float]
) -> QualityResult:
    blocks: list[tuple[str, Any]] = [
        (path, block) for path, text in texts.items() for block in cc_visit(text)
    ]
    paths = [block.complexity for _, block in blocks] or [1]  # code without a branch has one path
    return QualityResult(
        values={
            "complexity_max": float(max(paths)),
            "complexity_mean": sum(paths) / len(paths),
            # `multi`: strings of several lines count as comments.
            "maintainability_min": min(float(mi_visit(text, multi=True)) for text in texts.values()),
        },
        findings=tuple(
            f"{path}:{block.lineno}: {block.name} has {block.complexity} paths"
            for path, block in blocks
            if block.complexity > MAX_COMPLEXITY
        ),
    )


class LintFindings:
    """Counts ruff's findings in the candidate's files, by the project's own rules if it has some."""

    name = "lint"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Lint the files at their places in the project, inside the sandbox."""
        paths = [path for path in subject.files if path.endswith(".py")]
        ruff = find_ruff(subject.interpreter)
        if not paths or ruff is None:
            return QualityResult(unmeasured=NO_PYTHON if not paths else render_unmeasured("no_linter"))
        suite = subject.suite
        files = overlay_candidate(suite.task.files, subject.files)
        findings = await run_ruff(ruff, files, paths, suite.sandbox, suite.settings)
        if findings is None:
            return QualityResult(unmeasured=render_unmeasured("linter_failed"))
        return QualityResult(
            values={"lint_findings": float(len(findings))},
            findings=tuple(f"{path}:{line}: {text}" for path, line, text in findings),
        )


class SecurityFindings:
    """Counts Bandit's findings. A `# nosec` comment of the candidate does not silence it."""

    name = "security"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Check the files that can be parsed; nothing of them runs."""
        texts = _select_parsable(subject)
        if not texts:
            return QualityResult(unmeasured=NO_PYTHON)
        try:
            issues = bandit_issues(texts)
        except ValueError as fault:
            return QualityResult(unmeasured=str(fault))
        if issues is None:
            return QualityResult(unmeasured=f"Bandit is not installed; {format_install_command('quality')}")
        counts = {f"security_{level}": 0.0 for level in SEVERITIES}
        for issue in issues:
            counts[f"security_{issue.severity}"] += 1
        return QualityResult(
            values=counts,
            findings=tuple(f"{issue.path}:{issue.line}: {issue.test} {issue.text}" for issue in issues),
        )


class StatementCoverage:
    """Measures the share of statements that the tests run, inside the sandbox. It is not a verdict."""

    name = "coverage"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Run the test command, or the function-level checks in the process of the code if there is none."""
        suite = subject.suite
        files = drop_private_files(overlay_candidate(suite.task.files, subject.files))
        candidate_files = {path: content for path, content in files.items() if path in subject.files}
        statements = find_touched_by_file({}, candidate_files)
        if not statements:
            return QualityResult(unmeasured=NO_STATEMENT)
        if suite.command is not None:
            interpreter = suite.command.interpreter
            argv = resolve_command(suite.task.test_command, interpreter)
        elif suite.task.checks:
            interpreter = subject.interpreter or get_own_interpreter()
            argv = (interpreter.executable, f"{BOX}/{CHECK_RUNNER}", get_module_name(suite.task.module))
            runner = resources.files("suture.judge.quality").joinpath("check_runner.py")
            files[CHECK_RUNNER] = runner.read_bytes()
            files[CHECK_SOURCES] = json.dumps([check.source for check in suite.task.checks]).encode("ascii")
        else:
            return QualityResult(unmeasured=NO_TEST)
        executed = await record_executed_lines(argv, files, statements, suite, interpreter)
        if executed is None:
            return QualityResult(unmeasured=NO_RECORDER)
        missed = [
            (path, lines.start)
            for path, ranges in statements.items()
            for lines in ranges
            if not any((path, line) in executed for line in lines)
        ]
        return QualityResult(
            values={"statement_coverage": 1 - len(missed) / sum(map(len, statements.values()))},
            findings=tuple(f"{path}:{line}: no test runs it" for path, line in missed),
        )


RUFF_IN_SANDBOX = "/tmp/ruff"


@dataclass(frozen=True, kw_only=True)
class LintResult:
    """New findings of a linter on changed lines.

    Attributes:
        tool: Name of the linter; empty if there was none to run.
        unmeasured: Why it did not run to its end; `None` if it did.
        findings: The new findings, as `path:line: text`.
    """

    tool: str = ""
    unmeasured: UnmeasuredReason | None = None
    findings: tuple[str, ...] = ()


async def lint_changes(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter | None,
) -> LintResult:
    """Lint the changed Python files by the project's own rules; the linter runs inside the sandbox.

    The environment of the project's interpreter may have the linter.
    """
    changed = [path for path in after if path.endswith(".py") and before.get(path) != after[path]]
    if not changed:
        return LintResult(unmeasured="no_python_file")
    ruff = find_ruff(interpreter)
    if ruff is None:
        return LintResult(unmeasured="no_linter")
    findings_after = await run_ruff(ruff, after, changed, sandbox, settings)
    existing = [path for path in changed if path in before]
    findings_before = await run_ruff(ruff, before, existing, sandbox, settings)
    if findings_after is None or findings_before is None:
        return LintResult(tool="ruff", unmeasured="linter_failed")
    # Lines move, so findings are matched by their file and text, each as often as it occurred before.
    old_counts = Counter((path, text) for path, _, text in findings_before)
    changed_lines = {
        path: find_changed_lines(decode_text(before.get(path, b"")), decode_text(after[path]))
        for path in changed
    }
    new_findings: list[str] = []
    for path, line, text in findings_after:
        if old_counts[path, text] > 0:
            old_counts[path, text] -= 1
        elif line in changed_lines[path]:
            new_findings.append(f"{path}:{line}: {text}")
    return LintResult(tool="ruff", findings=tuple(new_findings[:MAX_LINT_FINDINGS]))


async def run_ruff(
    ruff: Path, files: Mapping[str, bytes], paths: list[str], sandbox: Sandbox, settings: SandboxSettings
) -> list[tuple[str, int, str]] | None:
    """Run ruff on some files of a project, and return (path, line, text) of each finding; `None` if it failed."""
    if not paths:
        return []
    options = ("check", "--quiet", "--no-cache", "--exit-zero", "--output-format=json", "--")
    result = await sandbox.run(
        RunRequest(
            argv=(RUFF_IN_SANDBOX, *options, *sorted(paths)),
            files=drop_private_files(files),
            mounts=(Mount(source=str(ruff), target=RUFF_IN_SANDBOX),),
            limits=make_program_limits(settings, settings.check_timeout_s),
        )
    )
    if result.status != "ok":
        return None
    try:
        return [
            (
                str(finding["filename"]).removeprefix(f"{BOX}/"),
                int(finding["location"]["row"]),
                " ".join(f"{finding.get('code') or 'syntax'} {finding['message']}".split()),
            )
            for finding in json.loads(result.stdout)
        ]
    except (ValueError, KeyError, TypeError):
        return None
