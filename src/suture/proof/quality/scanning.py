"""What linters find: ruff behind the wall, Bandit in this process, where it only reads."""

from __future__ import annotations

from suture.proof.linting import NOT_FOUND, find_ruff, ruff_findings
from suture.proof.quality.counting import NO_PYTHON
from suture.proof.quality.evaluator import Measured, Subject
from suture.pysource.parsing import parsed
from suture.safety.bandit import NO_BANDIT, bandit_issues
from suture.workspace import overlay

SEVERITIES = ("low", "medium", "high")


class Lint:
    """Ruff's findings in the candidate's files, by the project's own rules where it has some."""

    name = "lint"

    async def evaluate(self, subject: Subject) -> Measured:
        """Lint the files where they lie in the project; only the wall runs the linter."""
        paths = [path for path in subject.files if path.endswith(".py")]
        ruff = find_ruff(subject.interpreter)
        if not paths or ruff is None:
            return Measured(absent=NO_PYTHON if not paths else NOT_FOUND)
        suite = subject.suite
        files = overlay(suite.task.files, subject.files)
        found = await ruff_findings(ruff, files, paths, suite.sandbox, suite.settings)
        if found is None:
            return Measured(absent="ruff did not end well on this code")
        return Measured(
            values={"lint_findings": float(len(found))},
            findings=tuple(f"{path}:{line}: {text}" for path, line, text in found),
        )


class Security:
    """Bandit's findings. A `# nosec` of the candidate does not silence it."""

    name = "security"

    async def evaluate(self, subject: Subject) -> Measured:
        """Look at the files that can be parsed; nothing of them is run."""
        texts = {path: text for path, text in subject.files.items() if parsed(text) is not None}
        if not texts:
            return Measured(absent=NO_PYTHON)
        try:
            issues = bandit_issues(texts)
        except ValueError as fault:
            return Measured(absent=str(fault))
        if issues is None:
            return Measured(absent=NO_BANDIT)
        counts = {f"security_{level}": 0.0 for level in SEVERITIES}
        for issue in issues:
            counts[f"security_{issue.severity}"] += 1
        return Measured(
            values=counts,
            findings=tuple(f"{issue.path}:{issue.line}: {issue.test} {issue.text}" for issue in issues),
        )
