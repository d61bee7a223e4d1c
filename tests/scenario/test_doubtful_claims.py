"""A repair that few tests guard, and one that removes code for no test, say so in any language."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from project_files import write_files
from requirements import Require
from suture.api import HealOptions, heal
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import RepairUndetermined
from suture.core.settings import CertificationSettings, PathSettings, RepairSettings, Settings
from suture.interfaces.narrative.result_text import render_full_result
from suture.judge.confidence import MAX_WEAKLY_TESTED_CONFIDENCE
from suture.sandbox import Sandbox
from suture.testing import ScriptedModel

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(300),
    pytest.mark.heavy,
    pytest.mark.usefixtures("active_bare_python"),
]
PYTHON = """def rate(n, days):
    if days < 0:
        raise ValueError(days)
    n = int(n)
    return missing
"""
JAVASCRIPT = """exports.rate = function rate(n, days) {
  if (days < 0) {
    throw new Error('days');
  }
  n = Number(n);
  return missing;
};
"""
GO = """package rate

func Rate(n int, days int) int {
	if days < 0 {
		return -1
	}
	n++
	panic("missing")
}
"""
PROJECTS = {
    "python": {
        "rate.py": PYTHON,
        "test_rate.py": "from rate import rate\n\n\ndef test_rate():\n    assert rate(3, 2) is not None\n",
    },
    "javascript": {
        "rate.js": JAVASCRIPT,
        "package.json": '{"scripts": {"test": "node --test"}}',
        "rate.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "const { rate } = require('./rate.js');\n"
        "test('rate', () => assert.notStrictEqual(rate(3, 2), undefined));\n",
    },
    "go": {
        "rate.go": GO,
        "go.mod": "module rate\n\ngo 1.20\n",
        "rate_test.go": 'package rate\n\nimport "testing"\n\nfunc TestRate(t *testing.T) {\n'
        '\tif Rate(3, 2) == -7 {\n\t\tt.Fatal("rate")\n\t}\n}\n',
    },
}
SUM = "return (n * 12 + 7) * (days + 3) - 5"
REPLIES = {
    "python": PYTHON.replace("    if days < 0:\n        raise ValueError(days)\n", "").replace(
        "return missing", SUM
    ),
    "javascript": JAVASCRIPT.replace("  if (days < 0) {\n    throw new Error('days');\n  }\n", "").replace(
        "return missing", SUM
    ),
    "go": GO.replace("\tif days < 0 {\n\t\treturn -1\n\t}\n", "").replace('panic("missing")', SUM),
}
PROGRAMS = {"python": "python3", "javascript": "npm", "go": "go"}


@pytest.mark.parametrize("language", PROJECTS)
async def test_a_claim_says_that_the_tests_hardly_guard_it_and_that_it_removes_code(
    language: str, tmp_path: Path, sandbox: Sandbox, require: Require
) -> None:
    require(PROGRAMS[language], shutil.which(PROGRAMS[language]) is not None, "it is not installed")
    project = write_files(tmp_path / "project", PROJECTS[language])
    path, text = next(iter(PROJECTS[language])), REPLIES[language]
    settings = Settings(
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "cache"),
        repair=RepairSettings(enabled=False),
        certification=CertificationSettings(mutants=6),
    )
    model = ScriptedModel([f"### {path}\n```{language}\n{text}```\n"] * 3)
    result = await heal(project, HealOptions(settings=settings, model=model, sandbox=sandbox))
    assert result.outcome == "healed", result.reason
    assert result.confidence <= MAX_WEAKLY_TESTED_CONFIDENCE
    assert [warning for warning in result.warnings if "removes code" in warning and path in warning]
    folder = find_run(settings.paths.home, result.run_id)
    ((_, doubt),) = select_events(read_ledger(folder.ledger_path).events, RepairUndetermined)
    assert doubt.noticed < doubt.mistakes / 2
    first, *_ = render_full_result(result, settings.budget, folder)
    assert first.startswith("Healed, but your tests do not decide")
    assert f"only {doubt.noticed} of {doubt.mistakes} deliberate mistakes" in first
