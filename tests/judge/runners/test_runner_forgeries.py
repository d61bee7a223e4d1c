"""More code that tries to pass: it exits early, makes tests do nothing, or signs with patched functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import pytest

from judge.conftest import require_language
from requirements import Require
from suture.core.records import Candidate, Language, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import Sandbox, discover_programs

pytestmark = pytest.mark.timeout(240)
JS_WRONG = "exports.twice = (n) => n + 3;\n"
NODE = {
    "package.json": '{"scripts": {"test": "node --test"}}',
    "twice.js": JS_WRONG,
    "test/twice.test.js": (
        "const { test: it } = require('node:test'), assert = require('node:assert');\n"
        "const { twice } = require('../twice');\n"
        "it('even', () => assert.strictEqual(twice(2), 4));\n"
    ),
}
GO_WRONG = "func Twice(n int) int { return n + 3 }\n"
GO = {
    "go.mod": "module example.org/twice\n\ngo 1.19\n",
    "twice.go": f"package twice\n\n{GO_WRONG}",
    "twice_test.go": 'package twice\n\nimport "testing"\n\nfunc TestEven(t *testing.T) {\n'
    '\tif Twice(2) != 4 {\n\t\tt.Fatal("even")\n\t}\n}\n',
}
GET_PROCESS = "const outer = require('fs').readFileSync.constructor('return process')();\n"
JS_ATTACKS = {
    "leaves by the internal exit": "process.reallyExit(0);\n",
    "leaves as soon as it may": f"process.on('exit', () => process.reallyExit(0));\n{JS_WRONG}",
    "ends its parent": "require('child_process').spawnSync('/bin/sh', ['-c', `kill -9 ${process.ppid}`]);\n"
    + JS_WRONG,
    "leaves a child behind": "require('child_process')"
    ".spawn('/bin/sh', ['-c', 'sleep 1; rm -f _suture/report'], "
    f"{{ detached: true, stdio: 'ignore' }}).unref();\n{JS_WRONG}",
    "makes tests idle": "const t = require('node:test'), was = t.test;\n"
    f"t.test = t.it = (name) => was(name, () => {{}});\n{JS_WRONG.replace('+', '-')}process.exitCode = 0;\n",
    "signs with what it patched": GET_PROCESS
    + "const { Hmac } = require('crypto'), { update, digest } = Hmac.prototype;\nlet lines = '';\n"
    "Hmac.prototype.update = function (text) { this.text = String(text).replace('failed', 'passed');\n"
    "  return update.call(this, this.text); };\n"
    "Hmac.prototype.digest = function (form) { const made = digest.call(this, form);\n"
    "  lines += `${made} ${this.text}\\n`; return made; };\n"
    "outer.on('exit', () => { require('fs').writeFileSync('/box/_suture/report', lines); "
    f"outer.reallyExit(0); }});\n{JS_WRONG}",
}
GO_ATTACKS = {
    "asks for no test": 'import "os"\n\nfunc init() { os.Args = append(os.Args, "-test.run=^$") }\n\n',
    "asks for no run": 'import "os"\n\nfunc init() { os.Args = append(os.Args, "-test.count=0") }\n\n',
    "writes JSON of its own": 'import (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {\n'
    '\tfmt.Println(`{"Action":"pass","Package":"example.org/twice","Test":"TestEven"}`)\n'
    '\tfmt.Println(`{"Action":"pass","Package":"example.org/twice"}`)\n\tos.Exit(0)\n}\n\n',
    "leaves a child behind": 'import "os/exec"\n\nfunc init() {\n'
    '\texec.Command("/bin/sh", "-c", "sleep 1; echo PASS > twice_test.go &").Start()\n}\n\n',
}


@pytest.mark.parametrize(
    ("language", "project", "attacks"),
    [
        ("javascript", NODE, {name: {"twice.js": text} for name, text in JS_ATTACKS.items()}),
        (
            "go",
            GO,
            {name: {"twice.go": f"package twice\n\n{text}{GO_WRONG}"} for name, text in GO_ATTACKS.items()},
        ),
    ],
    ids=["javascript", "go"],
)
async def test_no_forgery_passes_a_runner(
    language: Language,
    project: Mapping[str, str],
    attacks: Mapping[str, Mapping[str, str]],
    sandbox: Sandbox,
    require: Require,
) -> None:
    require_language(language, require)
    files = {path: text.encode() for path, text in project.items()}
    command = ("npm", "test") if language == "javascript" else ("go", "test", "./...")
    task = Task(statement="", kind="heal", files=files, test_command=command, language=language)
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, language)
    suite = await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=120), programs)
    code = "twice.js" if language == "javascript" else "twice.go"
    right = {code: project[code].replace("n + 3", "n * 2")}
    assert (await check_candidate(Candidate(files=right, origin="sample"), suite)).all_passed

    for name, changed_files in attacks.items():
        verdict = await check_candidate(Candidate(files=dict(changed_files), origin="sample"), suite)
        assert not verdict.all_passed, name
