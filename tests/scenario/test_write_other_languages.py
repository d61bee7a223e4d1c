"""One function in JavaScript or Go; the model is wrong first and right second."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from requirements import Require
from suture.api import WriteOptions, replay, solve, verify
from suture.core.ledger import find_run
from suture.core.settings import Settings
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

INITIALS = """
/**
 * The initials of a name, each with how often it occurs.
 *
 * initials("Ada Lovelace") // => {A: 1, L: 1}
 * initials("") // => {}
 * initials(null) throws TypeError
 */
function initials(name) {}
"""
WRONG_JS = (
    "```javascript\nfunction initials(name) {\n  const found = {};\n"
    "  for (const word of name.split(' ')) found[word[0]] = 1;\n  return found;\n}\n"
    "module.exports = { initials };\n```"
)
RIGHT_JS = WRONG_JS.replace("found[word[0]] = 1", "if (word) found[word[0]] = (found[word[0]] || 0) + 1")
DIVIDE = "func Divide(a, b int) (int, error)\n\nDivide(6, 3) == 2, nil\nDivide(1, 0) returns an error\n"
WRONG_GO = "```go\npackage solution\n\nfunc Divide(a, b int) (int, error) {\n\treturn a / b, nil\n}\n```"
RIGHT_GO = WRONG_GO.replace("solution\n", 'solution\n\nimport "errors"\n').replace(
    "\treturn a", '\tif b == 0 {\n\t\treturn 0, errors.New("by zero")\n\t}\n\treturn a'
)


@pytest.fixture
def repairing_settings(settings: Settings) -> Settings:
    """Settings that repair the best candidate in each round and leave time for compilers."""
    budget = settings.budget.model_copy(update={"seconds": 300})
    loop = settings.loop.model_copy(update={"recipe": "always_repair"})
    return settings.model_copy(update={"budget": budget, "loop": loop})


@pytest.mark.timeout(300)
async def test_a_javascript_function_is_repaired_and_certified(
    repairing_settings: Settings, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    model = ScriptedModel([WRONG_JS, RIGHT_JS])

    result = await solve(
        INITIALS,
        WriteOptions(language="javascript", settings=repairing_settings, model=model, sandbox=sandbox),
    )

    assert (result.outcome, result.evidence) == ("healed", "split"), result.reason
    prompt = model.calls[1].messages[-1].content
    assert 'initials("")' in prompt
    assert "{undefined: 1}" in prompt
    certificate = find_run(repairing_settings.paths.home, result.run_id).path / "certificate.json"
    document = json.loads(certificate.read_text())
    assert (document["evidence"], document["task"]["language"]) == ("split", "javascript")
    assert [check["id"] for check in document["task"]["checks"]] == [
        'initials("Ada Lovelace") => {A: 1, L: 1}',
        'initials("") => {}',
        "initials(null) => throws TypeError",
    ]

    findings = [
        finding async for finding in verify(certificate, settings=repairing_settings, sandbox=sandbox)
    ]
    assert all(finding.ok for finding in findings), findings

    replayed = await replay(result.run_id, settings=repairing_settings, sandbox=sandbox)
    assert replayed.difference is None


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_a_go_function_is_repaired(
    repairing_settings: Settings, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")
    model = ScriptedModel([WRONG_GO, RIGHT_GO])
    result = await solve(
        DIVIDE, WriteOptions(language="go", settings=repairing_settings, model=model, sandbox=sandbox)
    )
    assert (result.outcome, result.evidence) == ("healed", "split"), result.reason
    assert "integer divide by zero" in model.calls[1].messages[-1].content
    assert Path("solution.go").exists() is False
