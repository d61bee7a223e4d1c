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
def few(settings: Settings) -> Settings:
    """Each round mends the best candidate, and there is time for compilers."""
    budget = settings.budget.model_copy(update={"seconds": 300})
    loop = settings.loop.model_copy(update={"recipe": "always_repair"})
    return settings.model_copy(update={"budget": budget, "loop": loop})


@pytest.mark.timeout(300)
async def test_a_function_in_javascript(few: Settings, sandbox: BubblewrapSandbox, require: Require) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    model = ScriptedModel([WRONG_JS, RIGHT_JS])
    result = await solve(
        INITIALS, WriteOptions(language="javascript", settings=few, model=model, sandbox=sandbox)
    )
    assert (result.outcome, result.evidence) == ("healed", "split"), result.reason
    prompt = model.calls[1].messages[-1].content
    assert 'initials("")' in prompt
    assert "{undefined: 1}" in prompt
    certificate = find_run(few.paths.home, result.run_id).path / "certificate.json"
    document = json.loads(certificate.read_text())
    assert (document["evidence"], document["task"]["language"]) == ("split", "javascript")
    assert [check["id"] for check in document["task"]["checks"]] == [
        'initials("Ada Lovelace") => {A: 1, L: 1}',
        'initials("") => {}',
        "initials(null) => throws TypeError",
    ]
    findings = [found async for found in verify(certificate, settings=few, sandbox=sandbox)]
    assert all(found.ok for found in findings), findings
    again = await replay(result.run_id, settings=few, sandbox=sandbox)
    assert again.difference is None


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_a_function_in_go(few: Settings, sandbox: BubblewrapSandbox, require: Require) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")
    model = ScriptedModel([WRONG_GO, RIGHT_GO])
    result = await solve(DIVIDE, WriteOptions(language="go", settings=few, model=model, sandbox=sandbox))
    assert (result.outcome, result.evidence) == ("healed", "split"), result.reason
    assert "integer divide by zero" in model.calls[1].messages[-1].content
    assert Path("solution.go").exists() is False
