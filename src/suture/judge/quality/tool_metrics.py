"""What other programs find: ruff and the code's own tests behind the wall; Bandit here, as it only reads."""

from __future__ import annotations

import json
from importlib import resources

from suture.judge.coverage.coverage_run import record_executed_lines, touched
from suture.judge.extraction.program_plans import get_module_name
from suture.judge.quality.evaluator import QualityResult, QualitySubject
from suture.judge.quality.linting import NOT_FOUND, find_ruff, ruff_findings
from suture.judge.quality.source_metrics import NO_PYTHON
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.project.languages import resolve_command
from suture.project.python_source.parsing import parsed
from suture.project.safety.scanning import NO_BANDIT, bandit_issues
from suture.project.workspace import overlay_candidate
from suture.sandbox import BOX, get_own_interpreter

SEVERITIES = ("low", "medium", "high")

NO_STATEMENT = "it has no statement"
NO_TEST = "there is no check and no test command"
NOT_LOADED = "the tests started no Python that could be watched"
PROGRAM = f"{PRIVATE_FOLDER}/check_runner.py"
SOURCES = f"{PRIVATE_FOLDER}/checks.json"


class Lint:
    """Ruff's findings in the candidate's files, by the project's own rules where it has some."""

    name = "lint"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Lint the files where they lie in the project; only the wall runs the linter."""
        paths = [path for path in subject.files if path.endswith(".py")]
        ruff = find_ruff(subject.interpreter)
        if not paths or ruff is None:
            return QualityResult(absent=NO_PYTHON if not paths else NOT_FOUND)
        suite = subject.suite
        files = overlay_candidate(suite.task.files, subject.files)
        found = await ruff_findings(ruff, files, paths, suite.sandbox, suite.settings)
        if found is None:
            return QualityResult(absent="ruff did not end well on this code")
        return QualityResult(
            values={"lint_findings": float(len(found))},
            findings=tuple(f"{path}:{line}: {text}" for path, line, text in found),
        )


class Security:
    """Bandit's findings. A `# nosec` of the candidate does not silence it."""

    name = "security"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Look at the files that can be parsed; nothing of them is run."""
        texts = {path: text for path, text in subject.files.items() if parsed(text) is not None}
        if not texts:
            return QualityResult(absent=NO_PYTHON)
        try:
            issues = bandit_issues(texts)
        except ValueError as fault:
            return QualityResult(absent=str(fault))
        if issues is None:
            return QualityResult(absent=NO_BANDIT)
        counts = {f"security_{level}": 0.0 for level in SEVERITIES}
        for issue in issues:
            counts[f"security_{issue.severity}"] += 1
        return QualityResult(
            values=counts,
            findings=tuple(f"{issue.path}:{issue.line}: {issue.test} {issue.text}" for issue in issues),
        )


class Covered:
    """The share of the statements that run while the tests do, behind the wall. It is no verdict."""

    name = "coverage"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Run the test command where there is one, the function-level checks beside the code where not."""
        suite = subject.suite
        files = drop_private_files(overlay_candidate(suite.task.files, subject.files))
        own = {path: content for path, content in files.items() if path in subject.files}
        statements = touched({}, own)
        if not statements:
            return QualityResult(absent=NO_STATEMENT)
        if suite.command is not None:
            interpreter = suite.command.interpreter
            argv = resolve_command(suite.task.test_command, interpreter)
        elif suite.task.checks:
            interpreter = subject.interpreter or get_own_interpreter()
            argv = (interpreter.executable, f"{BOX}/{PROGRAM}", get_module_name(suite.task.module))
            files[PROGRAM] = resources.files("suture.judge.quality").joinpath("check_runner.py").read_bytes()
            files[SOURCES] = json.dumps([check.source for check in suite.task.checks]).encode("ascii")
        else:
            return QualityResult(absent=NO_TEST)
        ran = await record_executed_lines(argv, files, statements, suite, interpreter)
        if ran is None:
            return QualityResult(absent=NOT_LOADED)
        spots = [(path, spot) for path, found in statements.items() for spot in found]
        missed = [(path, spot) for path, spot in spots if not any((path, line) in ran for line in spot)]
        return QualityResult(
            values={"statement_coverage": 1 - len(missed) / len(spots)},
            findings=tuple(f"{path}:{spot.start}: no test runs it" for path, spot in missed),
        )
