"""What linters find: ruff behind the wall, Bandit in this process, where it only reads."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

from suture.proof.linting import NOT_FOUND, find_ruff, ruff_findings
from suture.proof.quality.counting import NO_PYTHON
from suture.proof.quality.evaluator import Measured, Subject
from suture.pysource.parsing import parsed
from suture.workspace import overlay

NO_BANDIT = "Bandit is not installed; pip install 'suture[quality]'"
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
        with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="suture-bandit-") as folder:
            warnings.simplefilter("ignore", DeprecationWarning)  # Bandit's own, about its plugins
            return _scanned(_laid(texts, Path(folder)))


def _scanned(places: Mapping[str, str]) -> Measured:
    for chatty in ("bandit", "stevedore"):  # what they miss is no business of the user's terminal
        logging.getLogger(chatty).addHandler(logging.NullHandler())
    try:
        from bandit.core import config, manager
    except ImportError:
        return Measured(absent=NO_BANDIT)
    scan = manager.BanditManager(config.BanditConfig(), "file", quiet=True, ignore_nosec=True)
    scan.files_list = sorted(places)
    scan.run_tests()
    if scan.skipped:
        return Measured(absent=f"Bandit could not read {places[scan.skipped[0][0]]}")
    counts = {f"security_{level}": 0.0 for level in SEVERITIES}
    issues = [(places[issue.fname], issue) for issue in scan.get_issue_list()]
    for _, issue in issues:
        counts[f"security_{str(issue.severity).lower()}"] += 1
    return Measured(
        values=counts,
        findings=tuple(f"{path}:{issue.lineno}: {issue.test_id} {issue.text}" for path, issue in issues),
    )


def _laid(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write files under names of ours, and say which is which: a path of a candidate is not to be trusted."""
    places: dict[str, str] = {}
    for number, (path, text) in enumerate(texts.items()):
        place = folder / f"{number}.py"
        place.write_text(text, "utf-8", "surrogateescape")
        places[str(place)] = path
    return places
