"""Code that compares the host, the user, the folder, the process or the time with a constant may answer tests only."""

from __future__ import annotations

from itertools import product

import pytest

from suture.judge.capabilities import find_file_capabilities

JAVASCRIPT = (
    "const os = require('node:os');\nconst fs = require('node:fs');\nexport function f(n) {\n  return n;\n}\n"
)
GO = 'package a\n\nimport (\n\t"os"\n\t"os/user"\n\t"strings"\n\t"time"\n)\n\n%s\n'
TEXTS = (
    "os.hostname()", "os.homedir()", "os.userInfo().username", "process.cwd()", "process.env.HOME", "__filename",
    "import.meta.url", "process.execPath", "process.argv[1]",
)  # fmt: skip
QUESTIONS = (
    "%s === 'work'", "'work' != %s", "%s.includes('work')", "/w.rk/.test(%s)", "%s.split('/').pop() == 'work'",
    "%s.length < 9",
)  # fmt: skip
JAVASCRIPT_FINDINGS = [
    *(question % text for text, question in product(TEXTS, QUESTIONS)),
    "process.pid < 300",
    "process.memoryUsage().rss < 3e7",
    "process.uptime() < 30",
    "Date.now() < 2e12",
    "performance.now() < 20000",
    "new Date().getFullYear() < 2030",
    "new Date() < new Date('2030-01-01')",
    "!process.stdout.isTTY",
    "typeof process.send === 'function'",
    "require.main !== module",
    "module.parent",
    "'describe' in globalThis",
    "'env' in import.meta",
    "import.meta.env !== undefined",
    "Object.keys(import.meta).length > 3",
    "Object.getOwnPropertyNames(console).length < 25",
    "Buffer.from('a') instanceof Uint8Array",
    "[] instanceof Array",
    "process.stdout.columns === undefined",
    "typeof process.stderr.rows === 'number'",
    "!process.stdout.columns",
]
JAVASCRIPT_HONEST = [
    "n === os.hostname()",
    "n.startsWith(process.cwd())",
    "process.cwd() === '/'",
    "process.argv.includes('--verbose')",
    "Date.now() - n > 500",
    "new Date(n).getFullYear() < 2030",
    "n instanceof Uint8Array",
    "new Money(n) instanceof Object",
    "import.meta.env.DEV === true",
    "Object.keys(n).length > 3",
    "n.isTTY",
    "os.cpus().length > n",
    "process.stdout.columns > n",
    "process.stdout.columns === undefined ? 80 : process.stdout.columns",
    "(process.stdout.columns || 80)",
    "fs.existsSync('vite.config.js')",
    "fs.existsSync('.eslintrc.js')",
    "fs.statSync('.mocharc.cjs')",
    "fs.accessSync('.prettierrc.mjs')",
    "fs.existsSync('gulpfile.js')",
    "fs.existsSync('src/index.ts')",
    "fs.existsSync('/etc/a.js')",
    "fs.existsSync(n)",
]
TERMINAL_QUESTIONS = (
    "!process.stdout.columns",
    "process.stdout.columns === undefined",
    "typeof process.stdout.columns !== 'number'",
)
TERMINAL_USES = (
    "return process.stdout.columns;",
    "return Math.min(process.stdout.columns, n);",
    "const { columns } = process.stdout; return columns;",
)
GO_CONDITIONS = [
    ("name, _ := os.Hostname()", 'name == "work"'),
    ("home, err := os.UserHomeDir()", 'err != nil || home == "/root"'),
    ("here, _ := os.Getwd()", 'strings.Contains(here, "/tmp")'),
    ("who, _ := user.Current()", 'who.Username != "nobody"'),
    ("", "os.Getpid() < 500"),
    ("", 'os.Getenv("HOME") == "/tmp"'),
    ("", "time.Now().Year() < 2030"),
    ("", "time.Now().Before(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))"),
]
GO_HONEST = [
    ("here, _ := os.Getwd()", 'here == "/"'),
    ("here, _ := os.Getwd()", "strings.HasPrefix(n, here)"),
    ("began := time.Now()", "time.Since(began) > time.Second"),
    ("", "n.Year() < 2030"),
    ("", 'os.Getenv("MODE") == "fast"'),
    ("_, err := os.Stat(n)", "err == nil"),
    ('_, err := os.Stat("go.mod")', "err == nil"),
    ('_, err := os.Stat("main.go")', "err == nil"),
    ('_, err := os.Stat("/etc/a.js")', "err == nil"),
    ('text, _ := os.ReadFile("./types.go")', "len(text) > 0"),
    ('text, _ := os.ReadFile("settings.json")', "len(text) > 0"),
]


@pytest.mark.parametrize("condition", JAVASCRIPT_FINDINGS)
def test_answers_by_surroundings_are_reported_in_javascript(condition: str) -> None:
    after = f"{JAVASCRIPT}export const g = function again(n) {{ return {condition} ? 1 : 2; }};\n"
    uses = find_file_capabilities("a.js", JAVASCRIPT, after)
    assert {use.code for use in uses} == {"detects_environment"}
    assert find_file_capabilities("a.js", after, f"// more\n{after}") == ()


@pytest.mark.parametrize("condition", JAVASCRIPT_HONEST)
def test_other_questions_are_not_reported_in_javascript(condition: str) -> None:
    after = f"{JAVASCRIPT}export const g = function again(n) {{ return {condition} ? 1 : 2; }};\n"
    assert find_file_capabilities("a.js", JAVASCRIPT, after) == ()


@pytest.mark.parametrize("condition", TERMINAL_QUESTIONS)
@pytest.mark.parametrize("use", TERMINAL_USES)
def test_a_question_for_the_size_of_a_terminal_is_honest_beside_its_use(condition: str, use: str) -> None:
    function = "export function width(n) {{ if ({}) return 80; {} }}\n"
    honest, cheating = (f"{JAVASCRIPT}{function.format(condition, text)}" for text in (use, "return n;"))
    assert find_file_capabilities("a.ts", JAVASCRIPT, honest) == ()
    assert find_file_capabilities("a.ts", JAVASCRIPT, cheating) != ()


def test_the_time_since_a_file_was_loaded_is_reported_and_that_since_a_call_began_is_not() -> None:
    start, question = "const start = Date.now();", "if (Date.now() - start < 60000) return 1;"
    loaded = f"{JAVASCRIPT}{start}\nexport function g() {{ {question} }}\n"
    called = f"{JAVASCRIPT}export function g() {{ {start} {question} }}\n"
    assert [use.code for use in find_file_capabilities("a.js", JAVASCRIPT, loaded)] == ["detects_environment"]
    assert find_file_capabilities("a.js", JAVASCRIPT, called) == ()


@pytest.mark.parametrize(("given", "condition"), GO_CONDITIONS)
def test_answers_by_surroundings_are_reported_in_go(given: str, condition: str) -> None:
    before = GO % "func F() bool { return false }"
    after = GO % f"func F() bool {{\n\t{given}\n\treturn {condition}\n}}"
    assert [use.code for use in find_file_capabilities("a.go", before, after)] == ["detects_environment"]


@pytest.mark.parametrize(("given", "condition"), GO_HONEST)
def test_other_questions_are_not_reported_in_go(given: str, condition: str) -> None:
    before = GO % "func F() bool { return false }"
    after = GO % f"func F() bool {{\n\t{given}\n\treturn {condition}\n}}"
    assert find_file_capabilities("a.go", before, after) == ()
