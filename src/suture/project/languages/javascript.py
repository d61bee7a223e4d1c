"""What Suture knows about JavaScript and TypeScript, and their test runners: node's own, Jest and Vitest."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from itertools import islice, pairwise
from pathlib import PurePosixPath
from typing import Any

from suture.project.languages.calling.javascript_calls import JAVASCRIPT_CALLS, TYPESCRIPT_CALLS
from suture.project.languages.language import LanguageFacts, SyntaxTemplates, expand_word_globs
from suture.project.languages.layouts import JAVASCRIPT_LAYOUT, TYPESCRIPT_LAYOUT
from suture.project.languages.node_resolution import find_shadowing_node_files
from suture.project.languages.package_scripts import detect_npm_tests
from suture.project.languages.reports import Grammars, Report, ReportedTest, Runner, RunnerOutput
from suture.project.languages.runner_config import find_node_runner_files
from suture.project.languages.safety_rules import javascript_rules as in_javascript
from suture.project.languages.safety_rules.rule import find_uses_by_query
from suture.project.tuning import MAX_FAILURE_DETAIL_CHARS, MAX_FAILURE_MESSAGE_CHARS, MAX_STACK_FRAMES

GLOBAL_NAMES = frozenset(
    """
    AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array
    Blob Boolean Buffer DataView Date Error EvalError Event EventTarget FinalizationRegistry Float32Array
    Float64Array FormData Function Headers Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map
    Math MessageChannel NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Request
    Response Set SharedArrayBuffer String Symbol SyntaxError TextDecoder TextEncoder TypeError URIError URL
    URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly
    __dirname __filename arguments atob btoa clearImmediate clearInterval clearTimeout console crypto
    decodeURI decodeURIComponent define document encodeURI encodeURIComponent escape eval exports fetch
    global globalThis isFinite isNaN module navigator parseFloat parseInt performance process queueMicrotask
    require self setImmediate setInterval setTimeout structuredClone this undefined unescape window
    """.split()  # noqa: SIM905
)
"""Names that exist in every file without a definition, in node and in browsers."""
BUILTIN_MEMBERS = frozenset(
    """
    abs add all allSettled any apply assign at bind call catch ceil charAt charCodeAt clear codePointAt
    concat constructor copyWithin create defineProperties defineProperty delete description done endsWith
    entries every exec fill filter finally find findIndex findLast findLastIndex flags flat flatMap floor
    forEach freeze from fromCharCode fromCodePoint fromEntries get getDate getDay getFullYear getHours
    getMilliseconds getMinutes getMonth getOwnPropertyDescriptor getOwnPropertyNames getOwnPropertySymbols
    getPrototypeOf getSeconds getTime getTimezoneOffset global groupBy has hasOwn hasOwnProperty hypot
    ignoreCase includes index indexOf input is isArray isExtensible isFinite isFrozen isInteger isNaN
    isSafeInteger isSealed join keys lastIndex lastIndexOf length localeCompare log log10 log2 map match
    matchAll max message min name next normalize now of padEnd padStart parse parseFloat parseInt pop pow
    preventExtensions propertyIsEnumerable prototype push race raw reduce reduceRight reject repeat replace
    replaceAll resolve return reverse round seal search set setDate setFullYear setHours setMinutes setMonth
    setSeconds setTime shift sign size slice some sort source splice split sqrt stack startsWith stringify
    substr substring test then throw toFixed toISOString toJSON toLocaleString toLowerCase toPrecision
    toReversed toSorted toString toUpperCase trim trimEnd trimStart trunc unshift value valueOf values with
    write
    """.split()  # noqa: SIM905
)
"""Members that objects of the language itself have, so that they are not misspelt."""
CONFUSABLE_NAMES = (
    ("min", "max"), ("floor", "ceil", "round", "trunc", "abs"), ("push", "unshift", "concat"),
    ("pop", "shift"), ("slice", "splice", "substring", "substr"), ("indexOf", "lastIndexOf", "search"),
    ("startsWith", "endsWith", "includes"), ("toLowerCase", "toUpperCase"), ("isNaN", "isFinite"),
    ("trim", "trimStart", "trimEnd"), ("some", "every", "filter", "find", "findIndex", "map"),
    ("map", "flatMap", "forEach", "filter"), ("parseInt", "parseFloat", "Number", "String"),
    ("keys", "values", "entries"), ("has", "get", "delete"), ("padStart", "padEnd"), ("add", "delete"),
    ("charAt", "charCodeAt", "at"), ("reduce", "reduceRight"), ("replace", "replaceAll"),
    ("Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError"),
)  # fmt: skip
"""Groups of functions and methods that are mistaken for each other. Chosen by judgement."""
SYNTAX = SyntaxTemplates(
    length="{}.length",
    terminator=";",
    if_statement="if ({}) {{ {} }}",
    raise_statement="throw 0;",
    equality=("===", "!=="),
    null="null",
    append="{}.push({});",
    wrappers=(
        "Math.abs({})", "Math.floor({})", "{}.length", "-{}", "{}.toLowerCase()", "{}.sort()",
        "Math.ceil({})", "Math.round({})", "{}.reverse()", "Number({})", "String({})", "{}.toString()",
        "{}.trim()", "{}.slice(1)", "{}.slice(0, -1)", "{}[0]", "[...{}]", "{}.toUpperCase()",
        "{}.join('')", "{}.split('')", "parseInt({})", "{} % 2", "await {}", "[...new Set({})]", "[{}]",
        "{}.slice()", "Math.sqrt({})", "{}.sort((a, b) => a - b)", "({} ?? '')", "({} ?? 0)",
        "Math.max(0, {})", "Math.min(0, {})", "Math.max(1, {})",
    ),
    default_returns=("true", "false", "0", "[]", "''", "null", "-1", "1", "undefined"),
    min_max=("Math.max({0}, {1})", "Math.min({0}, {1})"),
    slices=("{0}.slice({1})", "{0}.slice(0, {1})"),
    confusable_names=CONFUSABLE_NAMES,
    concatenation="[...{0}, ...{1}]",
    global_names=GLOBAL_NAMES,
    builtin_members=BUILTIN_MEMBERS,
)  # fmt: skip
"""How the search writes JavaScript. The wrappers and the default values are chosen by judgement."""
COMMAND_NAMES = re.compile(r"node|npm|npx|yarn|pnpm|jest|mocha|vitest|ava|tap|tsx|ts-node")
# CI: otherwise some test runners wait for changes of files.
VARIABLES = {"CI": "true", "NO_UPDATE_NOTIFIER": "1", "npm_config_update_notifier": "false"}
ERROR_LINE = re.compile(
    r"^\W*(?:Uncaught )?[A-Z]?\w*(?:Error|Exception)(?: \[\w+\])?:|Cannot find (?:module|package) '"
    r"|\bERR_ASSERTION\b"
)
"""Matches a line of output that reports an error."""
TEST_COUNT = re.compile(  # node:test, Jest, Vitest and Mocha; each package of a workspace prints its own line
    rb"^(?:#|\xe2\x84\xb9) tests (\d{1,9})|^\s*Tests:?\s.*?(\d{1,9}) total|^\s+Tests\s.*\((\d{1,9})\)"
    rb"|^\s+(\d{1,9}) (?:passing|failing)",
    re.MULTILINE,
)
TEST_RUNNERS = frozenset(
    ("mocha", "_mocha", "tape", "tap", "ava", "jasmine", "uvu", "qunit", "lab", "zora", "pta")
)
"""Programs whose arguments are test files, and whose report Suture does not read."""
PROGRAM_STARTERS = frozenset(("node", "tsx", "ts-node", "bun"))
"""Programs that run the file which is their first argument besides options."""
LOAD_OPTIONS = ("-r", "--require", "--import", "--loader", "--experimental-loader")
"""Options of node for modules that it loads before the program."""
PROGRAM_ENDING = re.compile(r"\.(?:[cm]?js|cmd)$")
"""Matches the ending of a program's file: `node_modules/.bin/mocha.cmd` is mocha."""
MISSING_PACKAGE = re.compile(r"Cannot find (?:module|package) '(?P<name>[^']+)'")
"""Matches node's message about a module that it does not find."""
STACK_POSITION = re.compile(r"(?:file://)?(/[^\s():]+):(\d{1,9})(?::\d+)?")
"""Matches a position in a stack trace: an absolute path, a line, and perhaps a column."""
STACK_LINE = re.compile(
    r"\n\s+at (?:(?:async |new )*([\w$.<>]+) (?:\[as \w+\] )?\()?(?:file://)?(/[^\s():]+):(\d{1,9})"
)
"""Matches a line of a stack trace: the function if it has a name, the absolute path and the line."""
COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*m")


def read_events(output: RunnerOutput) -> Report:
    """Read the events of one of Suture's reporters.

    If the processes that run the tests report the outcomes themselves, a test has only passed if they report that it
    passed.
    """
    events = [event for event in output.events if event.get("event") == "test"]
    own_outcomes = [event for event in output.process_events if event.get("event") == "outcome"]
    own_passes = Counter(_key(event) for event in own_outcomes if event["status"] == "passed")
    reporting_files = {str(event["file"]) for event in _find_watched(output.process_events)}
    tests: dict[str, ReportedTest] = {}
    for event in events:
        test = _read_test(event, output)
        if test.status == "passed" and str(event["file"]) in reporting_files:
            own_passes[_key(event)] -= 1
            if own_passes[_key(event)] < 0:
                test = replace(test, status="failed", message="the process of the test did not report a pass")
        number, test_id = 1, test.id
        while test_id in tests:  # several tests of one file have the same name
            number += 1
            test_id = f"{test.id} #{number}"
        tests[test_id] = replace(test, id=test_id)
    changed_state: dict[str, frozenset[str]] = {}
    for event in _find_watched([*output.events, *output.process_events]):
        path = _path(event["file"], output)
        names = {str(name).replace(f"{output.root}/", "") for name in event["changed"]}
        changed_state[path] = changed_state.get(path, frozenset()) | names
    kinds = [event.get("event") for event in output.events]
    return Report(
        tests=tuple(tests.values()),
        has_started="begin" in kinds,
        has_finished=kinds.count("end") == 1 and kinds[-1] == "end",
        changed_state=changed_state,
    )


def _find_watched(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [event for event in events if event.get("event") == "watched"]


def _key(event: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(event["file"]), *map(str, event["names"]))


def _path(file: object, output: RunnerOutput) -> str:
    """Return the path relative to the project of a file that a reporter names by its path or address."""
    return str(file).removeprefix("file://").removeprefix(f"{output.root}/")


def _read_test(event: Mapping[str, Any], output: RunnerOutput) -> ReportedTest:
    """Return the test of an event; its position is the first one of the stack that is in the project."""
    root_prefix = f"{output.root}/"
    file = _path(event["file"], output)
    names = [COLOUR_CODE.sub("", str(name)) for name in event["names"]]
    test_id = f"{file}::{' > '.join(names)}" if names else file
    if event["status"] != "failed":
        return ReportedTest(id=test_id, status=event["status"])
    message = COLOUR_CODE.sub("", str(event.get("message") or ""))
    stack = COLOUR_CODE.sub("", str(event.get("stack") or ""))
    positions = [(path.removeprefix(root_prefix), int(line)) for path, line in STACK_POSITION.findall(stack)]
    in_project = (position for position in positions if position[0] in output.files)
    position = next(in_project, (file, event.get("line")))
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return ReportedTest(
        id=test_id,
        status="failed",
        message=" ".join(lines)[:MAX_FAILURE_MESSAGE_CHARS],
        expected=str(event.get("expected") or ""),
        actual=str(event.get("got") or ""),
        file=position[0],
        line=position[1],
        details=message.strip("\n")[:MAX_FAILURE_DETAIL_CHARS],
        frames=tuple(
            reversed([frame for frame in _list_frames(stack, root_prefix) if frame[0] in output.files])
        ),
    )


def _list_frames(stack: str, root_prefix: str) -> Iterator[tuple[str, int, str]]:
    """Yield (path, line, function) of the frames of a stack trace, innermost first."""
    for match in islice(STACK_LINE.finditer(stack), MAX_STACK_FRAMES):
        function = (match[1] or "").removeprefix("Object.")
        yield match[2].removeprefix(root_prefix), int(match[3]), "" if "<" in function else function


def _node_options(folder: str) -> dict[str, str]:
    reporters = ("--test-reporter=spec", f"--test-reporter=file://{folder}/node_runner.mjs")
    options = (f"{reporter} --test-reporter-destination=stdout" for reporter in reporters)
    return {"NODE_OPTIONS": " ".join((f"--require={folder}/node_guard.cjs", *options))}


JEST_EXTENSIONS = (
    ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".json", ".node",
)  # fmt: skip
"""The order in which Jest 30 tries extensions. Earlier versions lack some of them."""
RUNNERS = (
    Runner(
        name="Jest",
        command=re.compile(r"(?:^|[\s/])jest(?:\.js)?(?:\s|$)"),
        read=read_events,
        reporters=("jest.cjs", "signing.cjs", "jest_guard.cjs", "answers.cjs", "realm_baseline.cjs"),
        environment=lambda folder: {"NODE_OPTIONS": f"--require={folder}/jest_guard.cjs"},
        arguments=lambda folder: ("--reporters=default", f"--reporters={folder}/jest.cjs"),
        watches_state=True,
        module_extensions=JEST_EXTENSIONS,
    ),
    Runner(
        name="Vitest",
        command=re.compile(r"(?:^|[\s/])vitest(?:\.mjs)?(?:\s|$)"),
        read=read_events,
        reporters=(
            "vitest.mjs",
            "signing.cjs",
            "vitest_guard.mjs",
            "answers.cjs",
            "realm_baseline.cjs",
            "vite_config.cjs",
        ),
        environment=lambda folder: {"NODE_OPTIONS": f"--require={folder}/vite_config.cjs"},
        arguments=lambda folder: ("--reporter=default", f"--reporter={folder}/vitest.mjs"),
        watches_state=True,
        module_extensions=(".mjs", ".js", ".mts", ".ts", ".jsx", ".tsx", ".json"),
    ),
    Runner(
        name="node:test",
        command=re.compile(r"(?:^|[\s/])(?:node|tsx)\s"),
        read=read_events,
        reporters=("node_runner.mjs", "signing.cjs", "node_guard.cjs", "answers.cjs", "realm_baseline.cjs"),
        environment=_node_options,
    ),
)


def find_node_test_files(words: Sequence[str]) -> Iterator[str]:
    """Yield globs of the files that a test runner gets, or that node starts or loads first."""
    names = [PROGRAM_ENDING.sub("", PurePosixPath(word).name) for word in words]
    runner_at = next((n for n, name in enumerate(names) if name in TEST_RUNNERS), None)
    if runner_at is None and "--test" in words:
        runner_at = words.index("--test")
    if runner_at is not None:
        for word in words[runner_at + 1 :]:
            yield from expand_word_globs(word)
        return
    starter_at = next((n for n, name in enumerate(names) if name in PROGRAM_STARTERS), len(names))
    for before, word in pairwise(words[starter_at:]):
        if before in LOAD_OPTIONS or not word.startswith("-"):
            yield from (f"/{glob}" for glob in _node_resolution_globs(word))
        if before not in LOAD_OPTIONS and not word.startswith("-"):
            return


def _node_resolution_globs(word: str) -> tuple[str, ...]:
    """Return the globs that node tries for a path: `./check` means `check.js` or `check/index.js`."""
    path = word.removeprefix("./").rstrip("/")
    return (f"{path}.*", f"{path}/index.*") if path and path[0] not in "/." else ()


def find_missing_package(line: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Return (what is not installed, what to do) if a line of output says that a package is missing.

    Return `None` for a missing module of the project, and for a name that is almost one of the project's
    requirements: both are faults of the code.
    """
    match = MISSING_PACKAGE.search(line)
    # Paths, `imports` of the project's own package.json (`#`), modules of node, and addresses are not packages.
    if match is None or match["name"].startswith((".", "/", "#", "node:", "file:")):
        return None
    package = "/".join(match["name"].split("/")[: 2 if match["name"].startswith("@") else 1])
    required = _requirements(files)
    # The similarity is chosen by judgement; not measured.
    if package not in required and get_close_matches(package, required, n=1, cutoff=0.8):
        return None
    return f"the package {package!r} is not installed", "run `npm install` in the project"


def _requirements(files: Mapping[str, bytes]) -> frozenset[str]:
    try:
        package = json.loads(files.get("package.json", b"{}"))
    except (ValueError, RecursionError):
        return frozenset()
    groups = [value for key, value in package.items() if key.lower().endswith("dependencies")]
    return frozenset(str(name) for group in groups if isinstance(group, dict) for name in group)


JAVASCRIPT_GRAMMAR = ("tree_sitter_javascript", "language")
JAVASCRIPT_GRAMMARS: Grammars = {"": JAVASCRIPT_GRAMMAR}
TYPESCRIPT_GRAMMARS: Grammars = {
    "": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".js": JAVASCRIPT_GRAMMAR,
}
CONFIG_GLOBS = (
    "package.json", "jest.config.*", "vitest.config.*", "vite.config.*", "babel.config.*", ".babelrc*",
    ".mocharc*", "node_modules/", ".pnp.*", "vitest.workspace.*", ".swcrc", "*.conf.[cm]js",
    # Configuration of other test runners, and of compilers and bundlers.
    "/*.config.[jt]s", "/*.config.[cm][jt]s", "ava.config.*", "*.conf.js", "tsconfig*.json",
    "jsconfig.json", "bunfig.toml",
    # Setup files with the usual names, and lock files.
    "jest.setup.*", "jest-setup.*", "vitest.setup.*", "vitest-setup.*", "setupTests.*",
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml",
)  # fmt: skip
COMMON_FACTS: dict[str, Any] = {
    "config_globs": CONFIG_GLOBS,
    "program": "node",
    "command_pattern": COMMAND_NAMES,
    "runners": RUNNERS,
    "find_loaded_files": find_node_test_files,
    "find_configured_files": find_node_runner_files,
    "find_shadowing_files": find_shadowing_node_files,
    "line_comment": "//",
    "installation": ("bin", "lib/node_modules"),
    "packages": "node_modules",
    "package_client": "npm",
    "variables": VARIABLES,
    "error_pattern": ERROR_LINE,
    "find_missing": find_missing_package,
    "test_count_pattern": TEST_COUNT,
    "safety_rules": in_javascript.RULES,
    "syntax": SYNTAX,
}
JAVASCRIPT = LanguageFacts(
    label="JavaScript",
    fence="javascript",
    extensions=(".js", ".cjs", ".mjs", ".jsx"),
    test_files=(
        "__tests__/", "__mocks__/",
        "*.test.js", "*.test.[cm]js", "*.test.jsx", "*.spec.js", "*.spec.[cm]js", "*.spec.jsx",
        # The names that `node --test` recognises, and the folder of mocha and jasmine.
        "/test.js", "/test.[cm]js", "test-*.js", "test-*.[cm]js", "*[-_]test.js", "*[-_]test.[cm]js",
        "/spec/**/*.js",
    ),
    detect_test_command=detect_npm_tests,
    grammars=JAVASCRIPT_GRAMMARS,
    find_unsafe_uses=partial(find_uses_by_query, JAVASCRIPT_GRAMMARS, in_javascript.QUERIES),
    aliases=("node", "js"),
    new_project=JAVASCRIPT_LAYOUT,
    calls=JAVASCRIPT_CALLS,
    **COMMON_FACTS,
)  # fmt: skip
TYPESCRIPT = LanguageFacts(
    label="TypeScript",
    fence="typescript",
    extensions=(".ts", ".cts", ".mts", ".tsx"),
    compiled=True,
    test_files=(
        "*.test.ts", "*.test.[cm]ts", "*.test.tsx", "*.spec.ts", "*.spec.[cm]ts", "*.spec.tsx", "/test.ts",
        "*[-_]test.ts", "/spec/**/*.ts",
    ),
    grammars=TYPESCRIPT_GRAMMARS,
    find_unsafe_uses=partial(find_uses_by_query, TYPESCRIPT_GRAMMARS, in_javascript.QUERIES),
    aliases=("ts",),
    new_project=TYPESCRIPT_LAYOUT,
    calls=TYPESCRIPT_CALLS,
    **COMMON_FACTS,
)  # fmt: skip
