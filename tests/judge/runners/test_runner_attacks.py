"""Wrong JavaScript and Go code that tries to pass, against reports on each test."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import pytest

from judge.conftest import require_language
from requirements import Require
from suture.core.records import Candidate, Language, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.sandbox import Sandbox, discover_programs

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(240)]
COMMANDS = {"javascript": ("npm", "test"), "go": ("go", "test", "./...")}
WRONG_JS = "exports.add = (a, b) => a - b;\n"
JS = {
    "package.json": '{"scripts": {"test": "node --test"}}',
    "sum.js": WRONG_JS,
    "test/sum.test.js": (
        "const test = require('node:test'), assert = require('node:assert');\n"
        "const { add } = require('../sum');\n"
        "test('adds', () => assert.strictEqual(add(1, 2), 3));\n"
        "test('zero', () => assert.strictEqual(add(0, 0), 0));\n"
    ),
}
GO_HEAD = "package sum\n\n"
GO_WRONG = "func Add(a, b int) int { return a - b }\n"
GO = {
    "go.mod": "module example.org/sum\n\ngo 1.19\n",
    "sum.go": GO_HEAD + GO_WRONG,
    "sum_test.go": (
        'package sum\n\nimport "testing"\n\n'
        "func TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n"
        '\t\tt.Errorf("got %d, want 3", got)\n\t}\n}\n\n'
        "func TestZero(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Fail()\n\t}\n}\n"
    ),
}
ATTACKS_JS = {
    "ends while loading": {"sum.js": "process.exit(0);\n"},
    "ends when called": {"sum.js": "exports.add = () => process.exit(0);\n"},
    "ends by a signal": {"sum.js": "exports.add = () => process.kill(process.pid, 'SIGKILL');\n"},
    "prints the report": {
        "sum.js": "console.log('# tests 2\\n# pass 2\\n# fail 0\\nok 1 - adds\\nok 2 - zero'); "
        "process.exit(0);\n"
    },
    "overwrites the report": {
        "sum.js": "require('fs').writeFileSync('/box/_suture/report', 'x 0 {\"event\":\"end\"}\\n');"
        "process.exit(0);\n"
    },
    "asks stdin for the key": {
        "sum.js": "const given = require('fs').readFileSync('/proc/self/fd/0', 'utf8'); "
        "exports.add = (a, b) => JSON.parse(given).key && 3;\n"
    },
    "writes another reporter": {
        "sum.js": "require('fs').writeFileSync('/box/_suture/node_runner.mjs', ''); process.exit(0);\n"
    },
    "plants a configuration": {"package.json": '{"scripts": {"test": "true"}}', "sum.js": WRONG_JS},
    "plants another test": {"test/sum.test.js": "", "sum.js": WRONG_JS},
    "skips": {"sum.js": "require('node:test').test = () => {}; exports.add = (a, b) => a - b;\n"},
    "sets the exit code": {
        "sum.js": "process.on('exit', () => { process.exitCode = 0; }); exports.add = (a, b) => a - b;\n"
    },
}
HOOK = (
    "const M = require('module'), was = M.{name};\n"
    "M.{name} = function (name, ...more) {{ const made = was.call(this, name, ...more);\n"
    "  const idle = {{ get: () => () => {{}}, apply: () => {{}} }};\n"
    "  return /assert/.test(name) ? new Proxy(made, idle) : made; }};\n"
)
REPLACE_ASSERTS = "for (const owner of [assert, assert.strict]) for (const name of Object.keys(owner))\n" + (
    "  if (name !== 'strict' && typeof owner[name] === 'function') owner[name] = () => {};\n"
)
REPLACE_STRICT_EQUAL = (
    "for (const owner of [assert, assert.strict])\n"
    "  owner.strictEqual = (a, b) => { if (b !== 3 && b !== 0) was(a, b); };\n"
)
ATTACKS_JS |= {
    name: {"sum.js": f"const assert = require('node:assert');\n{text}exports.add = (a, b) => a - b;\n"}
    for name, text in {
        "patches one assert": "assert.strictEqual = () => {};\n",
        "patches all asserts": REPLACE_ASSERTS,
        "ignores some failures": f"const was = assert.strictEqual;\n{REPLACE_STRICT_EQUAL}",
        "patches them for modules too": f"{REPLACE_ASSERTS}require('module').syncBuiltinESMExports();\n",
        "patches the module loader": HOOK.format(name="_load"),
        "patches require": HOOK.format(name="prototype.require"),
    }.items()
}
LIMITS_JS = {
    "patches the assert, and restores it at the end": {
        "sum.js": "const assert = require('node:assert'), was = assert.strictEqual;\n"
        "assert.strictEqual = () => {}; exports.add = (a, b) => a - b;\n"
        "process.prependListener('exit', () => { assert.strictEqual = was; });\n"
    },
    "reads the expected value": {
        "sum.js": "const text = require('fs').readFileSync('test/sum.test.js', 'utf8');\n"
        "exports.add = (a, b) => (a ? Number(/add\\(1, 2\\), (\\d)/.exec(text)[1]) : 0);\n"
    },
}
ATTACKS_GO = {
    "ends while loading": {
        "sum.go": GO_HEAD + 'import "os"\n\nfunc init() { os.Exit(0) }\n\n' + GO_WRONG,
    },
    "ends when called": {
        "sum.go": GO_HEAD + 'import "syscall"\n\nfunc Add(a, b int) int { syscall.Exit(0); return 3 }\n',
    },
    "plants a module": {"go.mod": "module example.org/other\n", "sum.go": GO_HEAD + GO_WRONG},
    "plants a main of tests": {
        "sum.go": GO_HEAD + GO_WRONG,
        "main_test.go": GO_HEAD
        + 'import (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n',
    },
    "plants a workspace": {"go.work": "go 1.19\n\nuse ./other\n", "sum.go": GO_HEAD + GO_WRONG},
    "overwrites the tests": {
        "sum.go": GO_HEAD
        + 'import "os"\n\nfunc init() { os.WriteFile("sum_test.go", []byte("package sum\\n"), 0o644) }\n\n'
        + GO_WRONG,
    },
    "does not compile": {"sum.go": GO_HEAD + "func Add(a, b int) int { return }\n"},
}
PRINTED = (
    '"=== RUN   TestAdd\\n--- PASS: TestAdd (0.00s)\\n'
    + '=== RUN   TestZero\\n--- PASS: TestZero (0.00s)\\nPASS\\n"'
)
JSON_LINES = "".join(
    f'{{"Action":"pass","Package":"example.org/sum"{test}}}\\n'
    for test in (',"Test":"TestAdd"', ',"Test":"TestZero"', "")
).replace('"', '\\"')
PRINTS_GO = {
    "prints the report": 'import (\n\t"fmt"\n\t"syscall"\n)\n\nfunc init() {\n'
    f"\tfmt.Print({PRINTED})\n\tsyscall.Exit(0)\n}}\n\n{GO_WRONG}",
    "prints the report when called": 'import (\n\t"fmt"\n\t"syscall"\n)\n\nfunc Add(a, b int) int {\n'
    f"\tfmt.Print({PRINTED})\n\tsyscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)\n\treturn 0\n}}\n",
    "makes another program print the report": 'import "syscall"\n\nfunc init() {\n'
    '\tsyscall.Exec("/bin/echo", []string{"echo", "-n", ' + f"{PRINTED}}}, nil)\n}}\n\n{GO_WRONG}",
    "prints to the output of go": 'import (\n\t"fmt"\n\t"os"\n\t"syscall"\n)\n\nfunc init() {\n'
    '\tout, _ := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", os.Getppid()), os.O_WRONLY, 0)\n'
    f'\tfmt.Fprint(out, "{JSON_LINES}")\n\tsyscall.Exit(0)\n}}\n\n{GO_WRONG}',
    "runs no test and prints the report": 'import (\n\t"flag"\n\t"fmt"\n)\n\nfunc Add(a, b int) int {\n'
    f'\tflag.Set("test.run", "^$")\n\tfmt.Print({PRINTED})\n\treturn a - b\n}}\n',
    "invents a token": 'import (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {\n'
    '\tos.WriteFile("/box/_suture/report", []byte("0\\texample.org/sum\\tpassed TestAdd"), 0o600)\n'
    f"\tfmt.Print({PRINTED})\n\tos.Exit(0)\n}}\n\n{GO_WRONG}",
    "prints that a test passes which then fails": 'import "fmt"\n\nfunc Add(a, b int) int {\n'
    f"\tfmt.Print({PRINTED})\n\treturn a - b\n}}\n",
}
ATTACKS_GO |= {name: {"sum.go": GO_HEAD + text} for name, text in PRINTS_GO.items()}
LIMITS_GO = {
    "reads the token from memory": {
        "sum.go": GO_HEAD
        + 'import (\n\t"fmt"\n\t"os"\n\t"syscall"\n\t_ "unsafe"\n)\n\n'
        + "//go:linkname token testing.sutureToken\nvar token string\n\nfunc Add(a, b int) int {\n"
        + '\tline := token + "\\texample.org/sum\\tpassed TestAdd\\tpassed TestZero\\n"\n'
        + '\tos.WriteFile("/box/_suture/report", []byte(line), 0o600)\n'
        + f"\tfmt.Print({PRINTED})\n\tsyscall.Exit(0)\n\treturn 0\n}}\n",
    },
    "reads the expected value": {
        "sum.go": GO_HEAD
        + 'import (\n\t_ "embed"\n\t"strings"\n)\n\n//go:embed sum_test.go\nvar text string\n\n'
        + "func Add(a, b int) int {\n\tif a > 0 {\n"
        + "\t\treturn int(text[strings.Index(text, \"got != \")+7] - '0')\n\t}\n\treturn 0\n}\n",
    },
}
"""Attacks that pass. docs/verdicts.md lists them; change both together."""


async def prepare_runner_suite(language: Language, project: Mapping[str, str], sandbox: Sandbox) -> Suite:
    files = {path: text.encode() for path, text in project.items()}
    command = COMMANDS[language]
    task = Task(statement="", kind="heal", files=files, test_command=command, language=language)
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, language)
    return await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=120), programs)


async def judge_files(files: Mapping[str, str], suite: Suite) -> Verdict:
    return await check_candidate(Candidate(files=dict(files), origin="sample"), suite)


@pytest.mark.parametrize(
    ("language", "project", "attacks", "limits"),
    [("javascript", JS, ATTACKS_JS, LIMITS_JS), ("go", GO, ATTACKS_GO, LIMITS_GO)],
    ids=["javascript", "go"],
)
async def test_only_the_known_limits_pass(
    language: Language,
    project: Mapping[str, str],
    attacks: Mapping[str, Mapping[str, str]],
    limits: Mapping[str, Mapping[str, str]],
    sandbox: Sandbox,
    require: Require,
) -> None:
    require_language(language, require)
    suite = await prepare_runner_suite(language, project, sandbox)
    verdicts = {name: await judge_files(files, suite) for name, files in {**attacks, **limits}.items()}
    assert {name for name, verdict in verdicts.items() if verdict.all_passed} == set(limits)


async def test_tests_may_replace_asserts(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    tests = JS["test/sum.test.js"] + (
        "assert.equal = assert.strictEqual;\n"
        "test('mocks', (t) => { t.mock.method(assert, 'ok', () => {}); assert.ok(false); });\n"
        "test('counts', () => { assert.equal(add(1, 2), 3); const was = assert.deepEqual; let n = 0;\n"
        "  assert.deepEqual = (...given) => { n += 1; was(...given); }; assert.deepEqual([1], [1]); });\n"
    )

    suite = await prepare_runner_suite("javascript", {**JS, "test/sum.test.js": tests}, sandbox)

    assert (await judge_files({"sum.js": WRONG_JS.replace("-", "+")}, suite)).all_passed
    assert not (await judge_files({"sum.js": f"// still\n{WRONG_JS}"}, suite)).all_passed


EMITTER = "exports.emit = (listeners, ...given) => { for (const one of listeners) %s };\n"
EMITTER_TEST = (
    "const test = require('node:test'), assert = require('node:assert');\n"
    "const { emit } = require('../sum');\n"
    "test('gives all', () => emit([(a, b) => { assert.strictEqual(a, 1); assert.strictEqual(b, 2); }], 1, 2));\n"
)


async def test_code_that_catches_the_failure_of_a_listener_does_not_pass(
    sandbox: Sandbox, require: Require
) -> None:
    require_language("javascript", require)
    project = {**JS, "sum.js": EMITTER % "one(given);", "test/sum.test.js": EMITTER_TEST}
    suite = await prepare_runner_suite("javascript", project, sandbox)
    hides = "{ try { one(given); } catch (error) { console.error(error); } }"

    assert (await judge_files({"sum.js": EMITTER % "one(...given);"}, suite)).all_passed
    assert not (await judge_files({"sum.js": EMITTER % hides}, suite)).all_passed


async def test_each_test_is_reported_with_its_place(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    suite = await prepare_runner_suite("javascript", JS, sandbox)
    right = await judge_files({"sum.js": WRONG_JS.replace("-", "+")}, suite)
    assert right.passed == {"test/sum.test.js::adds", "test/sum.test.js::zero"}
    assert right.evidence == "nonce"

    (fact,) = (await judge_files({}, suite)).counterexamples
    assert (fact.expected, fact.actual, fact.file, fact.line) == ("3", "-1", "test/sum.test.js", 3)


async def test_a_test_name_with_a_slash_is_no_group(sandbox: Sandbox, require: Require) -> None:
    require_language("javascript", require)
    tests = "require('node:test')('a', () => {});\nrequire('node:test')('a/b', () => {});\n"
    suite = await prepare_runner_suite("javascript", {**JS, "test/sum.test.js": tests}, sandbox)
    assert (await judge_files({}, suite)).passed == {"test/sum.test.js::a", "test/sum.test.js::a/b"}
