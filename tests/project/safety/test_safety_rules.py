"""The rules of the safety scan, language by language, and what counts as new."""

from __future__ import annotations

import pytest

from suture.core.settings import SafetySettings
from suture.errors import UsageError
from suture.mutation import apply_edits, generate_mutants
from suture.project.languages import LANGUAGES
from suture.project.safety import Levels, resolve_levels, scan_change, scan_files

LEVELS = Levels()
USES = {
    "python.eval": ["eval(x)", "list(map(eval, xs))", "import builtins\nbuiltins.eval(x)", "f = eval"],
    "python.exec": ["exec(x)", "__builtins__.exec(x)"],
    "python.compile": ["compile(x, 'a', 'exec')"],
    "python.hidden-code": [
        "import base64\nexec(base64.b64decode(x))",
        "from zlib import decompress as d\neval(d(x))",
        "import urllib.request as r\nexec(r.urlopen('http://a').read())",
        "exec(bytes.fromhex('00').decode())",
    ],
    "python.shell": [
        "import os as o\no.system('ls')",
        "from os import popen as p\np('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "from subprocess import Popen\nPopen(x, shell=flag)",
        "__import__('os').system('ls')",
        "import os\ngetattr(os, 'system')('ls')",
        "import os\ngetattr(os, 'sys' + 'tem', None)('ls')",
        "import os\nvars(os)['system']('ls')",
        "o = __import__('o' + 's')\no.system('ls')",
        "import importlib\nimportlib.import_module('os').system('ls')",
    ],
    "python.process": ["import os\nos.execv('/bin/sh', [])", "import os\nos.fork()"],
    "python.pickle": [
        "import pickle\npickle.loads(x)",
        "from marshal import loads\nloads(x)",
        "import torch\ntorch.load(x)",
    ],
    "python.yaml-load": ["import yaml\nyaml.load(x)", "import yaml\nyaml.load(x, Loader=yaml.Loader)"],
    "python.all-interfaces": ["s.bind(('', 80))", "app.run(host='0.0.0.0')", "serve(app, host='::')"],
    "python.debug-server": ["app.run(debug=True)"],
    "python.tls-off": ["requests.get(u, verify=False)", "import ssl\nssl._create_unverified_context()"],
    "python.native-code": ["import ctypes\nctypes.CDLL('libc.so.6')"],
    "python.sql": [
        "c.execute(f'SELECT * FROM {t}')",
        "c.execute('delete from t where a = %s' % a)",
        "c.execute('select ' + a + ' from t')",
        "c.execute('select {}'.format(a))",
    ],
    "python.temporary-name": ["import tempfile\ntempfile.mktemp()"],
    "python.delete-tree": ["from shutil import rmtree\nrmtree(x)"],
    "javascript.eval": ["eval(x)", "globalThis.eval(x)", "new Function('a', x)", "setTimeout('a()', 1)"],
    "javascript.hidden-code": ["eval(atob(x))", "new Function(Buffer.from(x, 'base64').toString())"],
    "javascript.shell": [
        "import {exec} from 'node:child_process'; exec('ls ' + x)",
        "require('child_process').exec(x)",
        "cp.spawn('ls', [], {shell: true})",
    ],
    "javascript.dynamic-require": ["require(x)", "await import('./' + x)"],
    "javascript.dynamic-regexp": ["new RegExp(x)"],
    "javascript.all-interfaces": ["server.listen(80, '0.0.0.0')", "start({host: '0.0.0.0'})"],
    "javascript.tls-off": [
        "go({rejectUnauthorized: false})",
        "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'",
    ],
    "javascript.html": ["a.innerHTML = x", "document.write(x)"],
    "javascript.prototype": ["a.__proto__.b = 1", "Array.prototype.at = f"],
    "javascript.unserialize": ["serialize.unserialize(x)"],
    "javascript.old-buffer": ["new Buffer(3)", "Buffer.allocUnsafe(3)"],
    "javascript.weak-random": ["crypto.pseudoRandomBytes(3)"],
    "javascript.secret-comparison": ["if (user.password === given) go()"],
    "javascript.sql": ["db.query(`select * from ${t}`)", "db.query('select ' + t)"],
    "javascript.delete-tree": ["fs.rmSync(x, {recursive: true})"],
    "go.shell": [
        'exec.Command("sh", "-c", x)',
        "exec.Command(x)",
        'exec.CommandContext(c, "bash", "-c", x)',
        "syscall.Exec(a, b, c)",
    ],
    "go.all-interfaces": ['net.Listen("tcp", ":80")', 'http.ListenAndServe("0.0.0.0:80", nil)'],
    "go.tls-off": ["_ = tls.Config{InsecureSkipVerify: true}", "ssh.InsecureIgnoreHostKey()"],
    "go.unsafe": ['import "unsafe"'],
    "go.native-code": ['import "C"', "plugin.Open(x)"],
    "go.sql": ['db.Query(fmt.Sprintf("SELECT %s", x))', 'db.Exec("delete from t where a = " + x)'],
    "go.html": ["template.HTML(x)"],
    "go.profiler": ['import _ "net/http/pprof"'],
    "go.weak-crypto": ['import "crypto/md5"'],
    "go.open-to-all": ['os.WriteFile("a", b, 0666)'],
    "go.delete-tree": ["os.RemoveAll(x)"],
}
HARMLESS = {
    "a.py": """
import ast, json, os, re, subprocess, yaml
re.compile("a"); ast.literal_eval(x); json.loads(x); os.getcwd(); model.eval(); parser.compile(x)
subprocess.run(["ls"]); subprocess.run(["ls"], shell=False); yaml.safe_load(x)
yaml.load(x, Loader=yaml.SafeLoader); s.bind(("127.0.0.1", 80)); app.run(debug=False)
c.execute("select 1 where a = ?", (a,)); c.execute(statement); eval_score = 3; text = "eval(x)  # 0.0.0.0"
""",
    "a.js": """
const m = /a/.exec(text); re.exec(text); require("fs"); import("./a.js"); new RegExp("a"); evaluate(x);
server.listen(80, "127.0.0.1"); cp.spawn("ls", [], {shell: false}); cp.execFile("ls"); setTimeout(f, 1);
db.query("select 1 where a = ?", [a]); if (user.name === given) {} ; fs.rmSync(x); const eval_ = 3;
a.textContent = x;
if (password === undefined) {}
""",
    "a.go": """package main
import ("os"; "os/exec"; "crypto/sha256")
func f() {
 exec.Command("ls", x); net.Listen("tcp", "127.0.0.1:80"); db.Query("select 1 where a = ?", a)
 os.WriteFile("a", b, 0o644); os.Remove(x); _ = tls.Config{InsecureSkipVerify: false}; exec(x)
}
""",
}


def make_file(rule: str, code: str) -> dict[str, str]:
    """Return a file with the code, in the language of the rule."""
    language = rule.split(".")[0]
    if language == "go":
        body = code if code.startswith("import") else f"func f() {{\n{code}\n}}"
        return {"src/a.go": f"package p\n{body}\n"}
    return {f"src/a.{'py' if language == 'python' else 'js'}": code}


def find_rules(files: dict[str, str]) -> set[str]:
    return {finding.rule for finding in scan_files(files, LEVELS)}


@pytest.mark.parametrize(("rule", "code"), [(rule, code) for rule, codes in USES.items() for code in codes])
def test_a_dangerous_use_is_found(rule: str, code: str) -> None:
    findings = scan_files(make_file(rule, code), LEVELS)
    assert rule in {finding.rule for finding in findings}
    assert all(0 < finding.line <= 3 and finding.code and len(finding.code) <= 160 for finding in findings)


def test_every_rule_has_an_example() -> None:
    assert set(USES) == {rule.name for facts in LANGUAGES.values() for rule in facts.safety_rules}


@pytest.mark.parametrize("path", HARMLESS)
def test_harmless_code_is_not_reported(path: str) -> None:
    assert find_rules({path: HARMLESS[path]}) == set()


def test_typescript_and_jsx_follow_the_rules_of_javascript() -> None:
    typed = "export const run = (x: string): unknown => eval(x) as unknown;\n"
    assert find_rules({"a.ts": typed}) == {"javascript.eval"}
    assert find_rules({"a.tsx": "const A = (p: {x: string}) => <b onClick={() => eval(p.x)}>a</b>;\n"})
    assert find_rules({"a.jsx": "const A = (p) => <b onClick={() => eval(p.x)}>a</b>;\n"})


def test_only_new_uses_are_reported() -> None:
    before = {"a.py": "def f(x):\n    return eval(x)\n", "b.py": "import os\n"}
    moved = {"a.py": "def f(x):\n    return 1\n", "b.py": "import os\n\ndef f(x):\n    return eval(x)\n"}
    edited = {"a.py": "def f(x):\n    y = x.strip()\n    return eval(y)\n"}
    assert scan_change(before, moved, LEVELS) == ()
    assert scan_change(before, edited, LEVELS) == ()

    twice = {"a.py": "def f(x):\n    return eval(x)\n\ndef g(x):\n    return 1 + eval(x)\n"}
    (finding,) = scan_change(before, twice, LEVELS)
    assert (finding.rule, finding.path, finding.line) == ("python.eval", "a.py", 5)

    other = {"a.py": "def f(x):\n    return exec(x)\n"}
    assert [finding.rule for finding in scan_change(before, other, LEVELS)] == ["python.exec"]


def test_the_quoted_line_is_right_despite_odd_line_ends() -> None:
    text = "note = '\x0c \x1c \u2028'\nsafe = 1\r\n\rhidden = eval(word)\nmore = 2\n"
    assert [(finding.line, finding.code) for finding in scan_files({"a.py": text}, LEVELS)] == [
        (4, "hidden = eval(word)")
    ]


def test_settings_change_the_level_of_a_rule() -> None:
    levels = resolve_levels(SafetySettings(block=("python.*",), warn=("python.eval",), off=("go.unsafe",)))
    code = {"a.py": "eval(x); exec(x)\n", "a.go": 'package p\nimport "unsafe"\n'}

    assert {finding.rule: finding.level for finding in scan_files(code, levels)} == {
        "python.eval": "warn",
        "python.exec": "block",
    }
    assert Levels().level_for("python.hidden-code", "block") == "block"


@pytest.mark.parametrize("name", ["python.evil", "nothing.*", "bandit.602"])
def test_an_unknown_rule_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match=r"safety\.ask: there is no rule"):
        resolve_levels(SafetySettings(ask=(name,)))


def test_bandit_runs_if_it_is_enabled() -> None:
    pytest.importorskip("bandit")
    levels = resolve_levels(SafetySettings(bandit=True, block=("bandit.B324",)))
    code = {"../odd name.py": "import hashlib\nhashlib.md5(b'a')  # nosec\n", "b.py": "def"}
    (finding,) = scan_files(code, levels)
    assert (finding.rule, finding.level, finding.path, finding.line) == (
        "bandit.B324",
        "block",
        "../odd name.py",
        2,
    )

    chain = {"a.py": f"x = a{'.b()' * 900}\n", **code}
    assert {(finding.path, finding.rule) for finding in scan_files(chain, levels)} == {
        ("a.py", "unread"),
        ("../odd name.py", "bandit.B324"),
    }


def test_a_file_that_is_too_large_is_reported_unread() -> None:
    (finding,) = scan_files({"a.py": "eval(x)\n" + "# a\n" * 200_000, "b.txt": "eval(x)" * 100_000}, LEVELS)
    assert finding.rule == "unread"


@pytest.mark.parametrize(
    "text",
    [
        "f(1)" + "(1)" * 3000,
        "a" + ".a" * 3000,
        "getattr(" * 90 + "a, 'b'" + ", 'b')" * 90,
        "(" * 10_000,
        "eval(x); " * 20_000,
        "a(" * 5000 + ")" * 5000,
        "[" * 10_000 + "]" * 10_000,
        "\0eval(x)",
        "x = '" + "\ud800" + "'; eval(x)",
    ],
    ids=["calls", "dots", "getattr", "torn", "many", "nested", "lists", "nul", "surrogate"],
)
def test_hostile_text_is_scanned_completely(text: str) -> None:
    for path in ("a.py", "a.js", "a.ts", "a.go"):
        assert len(scan_change({}, {path: text}, LEVELS)) <= 200


def test_mutants_add_no_dangerous_use() -> None:
    source = "import os\ndef f(a, b):\n    if a < b:\n        return os.getenv(a, str(b))\n    return ast\n"
    before = {"a.py": source}
    texts = [apply_edits(source, mutant.edits) for mutant in generate_mutants(source)]
    assert texts
    assert all(scan_change(before, {"a.py": text}, LEVELS) == () for text in texts)
