"""What Suture knows about Go, whose `go test` reports each test as JSON."""

from __future__ import annotations

import json
import os
import posixpath
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from suture.project.languages.calling.go_calls import GO_CALLS, GO_GRAMMARS
from suture.project.languages.language import (
    LanguageFacts,
    PackageCache,
    ProjectOverview,
    SyntaxTemplates,
    expand_word_globs,
)
from suture.project.languages.layouts import GO_LAYOUT
from suture.project.languages.reporters.go_attestation import GO_ATTESTATION
from suture.project.languages.reports import (
    Report,
    ReportedTest,
    Runner,
    RunnerOutput,
    get_node_text,
    parse_tree,
)
from suture.project.languages.safety_rules import go_rules as in_go
from suture.project.languages.safety_rules.rule import find_uses_by_query
from suture.project.tuning import MAX_FAILURE_DETAIL_CHARS, MAX_FAILURE_MESSAGE_CHARS, MAX_STACK_FRAMES

CONFUSABLE_NAMES = (
    ("min", "max"), ("Min", "Max"), ("Floor", "Ceil", "Round", "Trunc", "Abs"),
    ("HasPrefix", "HasSuffix", "Contains"), ("Index", "LastIndex", "IndexByte", "Count"),
    ("ToLower", "ToUpper", "Title"), ("TrimLeft", "TrimRight", "TrimSpace", "Trim"),
    ("TrimPrefix", "TrimSuffix"), ("Ints", "Strings", "Float64s"), ("Split", "SplitN", "Fields"),
    ("IsUpper", "IsLower", "IsDigit", "IsLetter", "IsSpace"), ("Replace", "ReplaceAll"),
    ("Lock", "RLock", "Unlock", "RUnlock"), ("Before", "After", "Equal"), ("Errorf", "Error"),
    ("Seconds", "Minutes", "Hours"), ("Add", "Sub"), ("Atoi", "Itoa"), ("Push", "Pop"),
)  # fmt: skip
"""Groups of functions and methods that are mistaken for each other. Chosen by judgement."""
SYNTAX = SyntaxTemplates(
    length="len({})",
    terminator="",
    if_statement="if {} {{ {} }}",
    raise_statement="panic(0);",
    equality=("==", "!="),
    null="nil",
    append="{0} = append({0}, {1})",
    wrappers=(
        "len({})", "-{}", "strings.ToLower({})", "strings.TrimSpace({})", "math.Abs({})", "int({})",
        "float64({})", "{}[1:]", "{}[0]", "string({})", "{} % 2", "{}.Len()", "&{}", "*{}",
        "math.Floor({})", "math.Ceil({})", "math.Round({})", "strings.ToUpper({})", "{}[:len({})-1]",
    ),
    default_returns=("true", "false", "0", "nil", '""', "-1", "1"),
    min_max=(),
    slices=("{0}[{1}:]", "{0}[:{1}]"),
    confusable_names=CONFUSABLE_NAMES,
    concatenation="append({0}, {1}...)",
)  # fmt: skip
"""How the search writes Go. The wrappers and the default values are chosen by judgement."""
SOURCE_POSITION = re.compile(r"^\s*(?:\S*?: )?([\w./-]+\.go):(\d{1,9})(?::\d+)?:? ?(.*)$")
"""Matches a message of the compiler or of a failing test, which begins with the file and the line."""
FRAME = re.compile(r"^\s+(/\S+\.go):(\d{1,9})")
"""Matches a line of a stack trace, which has an absolute path."""
MODULE = re.compile(rb"^module\s+\"?([^\s\"]+)", re.MULTILINE)
"""Matches the line of a `go.mod` that names the module."""
BUILD_FAILURE = re.compile(r"^FAIL\t(\S+) \[(?:build|setup) failed\]$")
"""Matches the line, outside of the JSON, by which `go test` reports a package that does not compile."""
MISSING_MODULE = re.compile(
    r"(?:no required module provides package|cannot find module providing package|missing go\.sum entry for"
    r" module providing package|cannot find package) \"?(?P<name>[\w./@-]+[\w/-])"
)
PACKAGE_DECLARATIONS = frozenset(
    ("function_declaration", "type_spec", "type_alias", "const_spec", "var_spec")
)
"""The syntax nodes that declare a name of a package."""
REPEATABLE_NAMES = frozenset(("init", "_"))
"""Names that a package may declare several times."""
UNATTESTED = "the output says that this test passes, but the tests did not run to their end"
BENCHMARK = re.compile(r"Benchmark(?![a-z])")
"""Names of benchmarks, which are not tests. Since Go 1.20, the start of a benchmark is reported, but its end only
if it fails."""
PANIC = re.compile(r"^(?:\s*)((?:panic|fatal error): .*?)(?: \[recovered\])?$")
"""Matches the message with which a program ends abnormally."""


TestKey = tuple[str, str]
"""`(package, test)`; the test is empty for the package as a whole."""


def read_stream(output: RunnerOutput) -> Report:
    """Read the output of `go test -json`, and the messages of the compiler next to it."""
    printed: list[str] = []
    messages: dict[TestKey, list[str]] = {}
    outcomes: dict[TestKey, str] = {}
    for line in output.stdout.decode("utf-8", "replace").splitlines():
        event = _event(line)
        if event is None:
            printed.append(f"{line}\n")
            if match := BUILD_FAILURE.match(line):
                outcomes[match[1], ""] = "fail"
            continue
        key = str(event.get("Package", "")), str(event.get("Test", ""))
        if event.get("Action") in ("pass", "fail", "skip"):
            outcomes[key] = str(event["Action"])
        elif event.get("Action") == "run" and not BENCHMARK.match(key[1]):
            outcomes.setdefault(key, "fail")  # a test that never ends did not pass
        elif event.get("Action") == "output":
            printed.append(str(event.get("Output", "")))
            messages.setdefault(key, []).append(str(event.get("Output", "")).rstrip("\n"))
    outcomes = {key: _attested_status(key, outcomes, messages, output) for key in outcomes}
    tests = [_report_test(key, status, messages, output) for key, status in outcomes.items() if key[1]]
    packages_with_tests = {package for package, test in outcomes if test}
    failing_packages = {package for (package, test), status in outcomes.items() if test and status == "fail"}
    for (package, test), status in outcomes.items():
        if not test and status == "fail" and package not in failing_packages:
            lines = [*messages.get((package, ""), []), *_compiler_errors(package, output, "".join(printed))]
            tests.append(_report_failure(_folder(package, output), package, lines, output))
    packages = {package for package, _ in outcomes}
    return Report(
        tests=tuple(tests),
        printed="".join(printed).encode(),
        has_finished=bool(packages) and all((package, "") in outcomes for package in packages_with_tests),
    )


def _attested_status(
    key: TestKey,
    outcomes: Mapping[TestKey, str],
    messages: dict[TestKey, list[str]],
    output: RunnerOutput,
) -> str:
    """Return the outcome of a test: a reported pass counts only if the test program attests it.

    The output alone is not enough, because the code under test can print what looks like a pass.
    """
    (package, test), status = key, outcomes[key]
    if output.attested is None or status != "pass" or not test:
        return status
    if any(outcome == "fail" for (name, _), outcome in outcomes.items() if name == package):
        return status  # a program with a failing test attests nothing; the failure decides
    attested_status = output.attested.get(package, {}).get(test)
    if attested_status == "passed":
        return "pass"
    messages[key] = [UNATTESTED]
    return "skip" if attested_status == "skipped" else "fail"


def _event(line: str) -> Mapping[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "Action" in event else None


def _report_test(
    key: TestKey, status: str, messages: Mapping[TestKey, list[str]], output: RunnerOutput
) -> ReportedTest:
    package, test = key
    test_id = f"{_folder(package, output)}::{test}"
    if status != "fail":
        return ReportedTest(id=test_id, status="passed" if status == "pass" else "skipped")
    return _report_failure(test_id, package, messages.get(key, []), output)


def _report_failure(test_id: str, package: str, lines: list[str], output: RunnerOutput) -> ReportedTest:
    """Return a failed test, with the position and the message of its panic or of its first source position."""
    panic = next((match[1] for line in lines if (match := PANIC.match(line))), "")
    frames = [(m[1].removeprefix(f"{output.root}/"), int(m[2])) for line in lines if (m := FRAME.match(line))]
    project_frames = [frame for frame in frames if frame[0] in output.files]
    if panic:
        path, line_number = project_frames[0] if project_frames else ("", None)
        return ReportedTest(
            id=test_id,
            status="failed",
            message=panic,
            file=path,
            line=line_number,
            frames=tuple((path, line, "") for path, line in reversed(project_frames[:MAX_STACK_FRAMES])),
        )
    folder = _folder(package, output)
    details = _render_details(lines)
    for number, line in enumerate(lines):
        if match := SOURCE_POSITION.match(line):
            path = match[1].removeprefix("./")
            file = path if path in output.files else f"{folder}/{path}".removeprefix("./")
            message = " ".join((match[3], *_message_lines(lines[number + 1 :]))).strip()
            return ReportedTest(
                id=test_id,
                status="failed",
                message=message[:MAX_FAILURE_MESSAGE_CHARS],
                file=file,
                line=int(match[2]),
                details=details,
                frames=((file, int(match[2]), ""),),
            )
    message = " ".join(line for line in _message_lines(lines) if line)[:MAX_FAILURE_MESSAGE_CHARS]
    return ReportedTest(id=test_id, status="failed", message=message, details=details)


def _render_details(lines: Sequence[str]) -> str:
    """Return what a test printed, without the lines in which `go test` names the tests."""
    printed = (line for line in lines if not line.strip().startswith(("===", "---")))
    return textwrap.dedent("\n".join(printed)).strip("\n")[:MAX_FAILURE_DETAIL_CHARS]


def _message_lines(lines: list[str]) -> list[str]:
    """Return the lines of a message, without those in which `go test` names the tests."""
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if not line.startswith(("===", "---"))]


def _compiler_errors(package: str, output: RunnerOutput, printed: str) -> list[str]:
    """Return the compiler errors of a package; if it has none, those of the packages that it needs."""
    own_errors: list[str] = []
    other_errors: list[str] = []
    is_own = False
    for line in (output.stderr.decode("utf-8", "replace") + printed).splitlines():
        if line.startswith("# "):
            is_own = line[2:].split(" ")[0] == package  # a heading: the package that the next lines are about
        elif SOURCE_POSITION.match(line):
            (own_errors if is_own else other_errors).append(line)
    return own_errors or other_errors


def _folder(package: str, output: RunnerOutput) -> str:
    """Return a package's folder in the project, if a `go.mod` shows it; `.` is the root."""
    for module, folder in _list_modules(output.files).items():
        if package == module or package.startswith(f"{module}/"):
            return posixpath.normpath(posixpath.join(folder, package[len(module) + 1 :]))
    return package


def _list_modules(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the name of each module of a project -> its folder; a workspace has several."""
    paths = [path for path in files if posixpath.basename(path) == "go.mod"]
    matches = [(MODULE.search(files[path]), posixpath.dirname(path)) for path in paths]
    return {match[1].decode("utf-8", "replace"): folder for match, folder in matches if match is not None}


def detect_go_tests(project: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """Return `go test` if there is a module with tests."""
    if "go.mod" in project.files and any(name.endswith("_test.go") for name in project.files):
        return ("go", "test", "./..."), "go.mod names a Go module"
    return None


def find_missing_module(line: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Return `(what is not downloaded, what to do)` if a line of output says that a module is missing.

    A missing module of the project itself is a fault of the code, for which the function returns `None`.
    """
    match = MISSING_MODULE.search(line)
    if match is None or any(f"{match['name']}/".startswith(f"{module}/") for module in _list_modules(files)):
        return None
    why = f"the module of {match['name']!r} is not there"
    return why, "run `go mod download` in the project, or vendor it"


def module_cache(environ: Mapping[str, str]) -> str:
    """Return the folder of downloaded modules."""
    home = environ.get("HOME", "")
    path = environ.get("GOPATH", "").split(os.pathsep)[0] or (f"{home}/go" if home else "")
    return environ.get("GOMODCACHE") or f"{path}/pkg/mod"


def find_go_run_files(words: Sequence[str]) -> tuple[str, ...]:
    """Return globs of the program that `go run` builds. Its exit status decides, as that of a test does."""
    pairs = list(pairwise(words))
    program_at = pairs.index(("go", "run")) + 2 if ("go", "run") in pairs else len(words)
    program = next((word for word in words[program_at:] if not word.startswith("-")), "")
    # Globs that end with a slash are those of a folder, such as `./cmd/check`.
    return tuple(f"{glob}*.go" for glob in expand_word_globs(program) if glob.endswith("/"))


def fits_go_package(test: str, others: Iterable[str]) -> bool:
    """Return whether a test belongs to the package of other files, and declares none of their names.

    A package cannot declare a name that one of its files imports either.
    """
    package, declared, imported = _list_names(test)
    for other in others:
        other_package, other_declared, other_imported = _list_names(other)
        clashes = declared & (other_declared | other_imported) | imported & other_declared
        if other_package != package or clashes - REPEATABLE_NAMES:
            return False
    return True


def _list_names(source: str) -> tuple[str, set[str], set[str]]:
    """Return the package of a file, the names that it declares, and the names of the packages that it imports."""
    package, declared, imported = "", set(), set()
    for node in parse_tree(source, "", GO_GRAMMARS).children:
        # A declaration in parentheses has a list of specifications.
        for part in (node, *node.children, *(part for child in node.children for part in child.children)):
            if part.type == "package_clause":
                package = get_node_text(part.children[-1])
            elif part.type == "import_spec":
                alias_or_path = get_node_text(part).split()[0]
                imported.add(alias_or_path.strip('"`').rpartition("/")[2])
            elif part.type in PACKAGE_DECLARATIONS:
                declared |= {get_node_text(name) for name in part.children_by_field_name("name")}
    return package, declared, imported


GO = LanguageFacts(
    label="Go",
    fence="go",
    extensions=(".go",),
    program="go",
    compiled=True,
    command_pattern=re.compile(r"go|gotestsum"),
    runners=(
        Runner(
            name="go test",
            command=re.compile(r"(?:^|[\s/])go\s+test(?:\s|$)"),
            read=read_stream,
            environment=lambda folder: {"GOFLAGS": "-p=4 -v -json"},
            conflicting_options=re.compile(r"\s-c(?:\s|$)"),  # it only compiles the tests
            group_separator="/",
            attestation=GO_ATTESTATION,
        ),
    ),
    line_comment="//",
    test_files=("*_test.go", "testdata/"),
    # Assertion libraries are often vendored: copied into `vendor`, which each module of the project may have.
    config_globs=("go.mod", "go.work", "go.sum", "go.work.sum", "**/vendor/**/*.go", "**/vendor/modules.txt"),
    find_loaded_files=find_go_run_files,
    detect_test_command=detect_go_tests,
    installation=("bin", "pkg", "src"),
    optional_installation=("go.env", "VERSION"),
    package_cache=PackageCache(folder=module_cache, mount_path="/go-modules", variable="GOMODCACHE"),
    package_client="go",
    variables={
        "GOCACHE": "/tmp/go-build",
        "GOPATH": "/tmp/go",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOTELEMETRY": "off",
        # -p: each compiler starts threads, whose number is limited. -v: reports the tests that ran.
        "GOFLAGS": "-p=4 -v",
    },
    error_pattern=re.compile(
        r"^\s*[\w./-]+\.go:\d+|^panic: |no required module provides|missing go\.sum entry"
    ),
    find_missing=find_missing_module,
    test_count_pattern=re.compile(rb"^=== RUN ", re.MULTILINE),
    grammars=GO_GRAMMARS,
    safety_rules=in_go.RULES,
    find_unsafe_uses=partial(find_uses_by_query, GO_GRAMMARS, in_go.QUERIES),
    new_project=GO_LAYOUT,
    syntax=SYNTAX,
    fits_package=fits_go_package,
    calls=GO_CALLS,
)
