"""Findings about the code of a change: gaming, capabilities, unsafe code, packages, secrets, size, configuration."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from suture.core.records.finding_text import AGENT_HOOKS
from suture.core.records.judgement import ChangeFinding, FindingSeverity, GuardedLines
from suture.core.settings import SafetySettings
from suture.judge.capabilities import find_change_capabilities
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.signs import TamperingWarning, find_test_support_signs, read_test_texts
from suture.judge.signs.change_signs import find_stubs
from suture.judge.signs.diagnostic_signs import find_diagnostic_signs
from suture.judge.trials.changed_code import ChangedCode
from suture.loop.evaluation.change_warnings import find_gaming_signs
from suture.loop.judgement.base_results import ProposedChange
from suture.loop.judgement.test_runs import TestRuns
from suture.project.python_source.parsing import parse_module
from suture.project.safety import resolve_levels, scan_change
from suture.project.workspace import decode_text, is_protected, is_test_file
from suture.project.workspace.secret_detection import (
    assigns_secret,
    assigns_secret_text,
    holds_key,
    is_private_key,
)

DOUBTFUL_SIGNS = frozenset(("hides_exceptions", "dead_code", "encodes_test_values"))
"""Signs of gaming that a reviewer should see even if no failing test passes."""
EXAMPLES_TIMEOUT_S = 60.0
"""Wall-clock seconds for the calls near the examples of the tests. It is longer than in a run, whose clock the
certification shares: a verdict must not depend on how busy the machine is. By judgement."""
HIDING_USES = frozenset(("ends_process", "skips_tests"))
"""Capabilities that hide failing tests where a command is judged by its exit status. Here the tests still fail."""
MIN_MISSED_MISTAKES = 3
"""Deliberate mistakes that the tests of a proven change must miss for a remark. A single one may be harmless, as `None`
in place of `False` where callers only test for truth. Chosen by judgement; not measured."""
LARGE_CHANGE_LINES = 800
"""Changed lines from which a person can hardly review a change. Chosen by judgement; not measured."""


async def find_code_findings(
    change: ProposedChange,
    runs: TestRuns,
    fixed: tuple[str, ...],
    safety: SafetySettings,
    code: ChangedCode | None,
) -> list[ChangeFinding]:
    """Return the findings about the code of a change.

    Args:
        fixed: Ids of the tests that fail before the change and pass after it.
        code: The changed code, if it is open.
    """
    gains = makes_failing_test_pass(runs, fixed)
    findings = [
        *_find_signs(change, runs, gains=gains),
        *_find_capabilities(change, runs, gains=gains),
        *_scan(change, runs.code, safety),
    ]
    memorised = await find_memorised_examples(
        runs.final, runs.new_suite, fixed, timeout_s=EXAMPLES_TIMEOUT_S, parts=gains, code=code
    )
    findings += [_make_sign_finding(path, sign, gains=True) for path, sign in memorised.signs]
    findings += [
        replace(_make_sign_finding(path, sign, gains=True), code="games_tests", severity="remark")
        for path, sign in memorised.possible
    ]
    findings += find_secrets(change)
    return [*findings, *_find_configuration(change)]


def _find_configuration(change: ProposedChange) -> Iterator[ChangeFinding]:
    for path in find_configuration_changes(change.before, change.changed):
        decides = alters_test_run(path, change.old_text(path), change.new_text(path))
        severity: FindingSeverity = "remark" if decides else "note"
        detail = AGENT_HOOKS if is_protected(path, AGENT_HOOK_GLOBS) else ""
        yield ChangeFinding(code="configuration_changed", severity=severity, path=path, detail=detail)


def _find_signs(change: ProposedChange, runs: TestRuns, *, gains: bool) -> Iterator[ChangeFinding]:
    tests = read_test_texts(runs.new_suite)
    for path, text in sorted(runs.code.items()):
        before = change.old_text(path)
        is_new = path not in change.before or fills_stub(before, text)
        signs = find_gaming_signs(path, before, text, tests, kind="write" if is_new else "heal")
        for sign in signs:
            yield _make_sign_finding(path, sign, gains=gains)
        for sign in find_diagnostic_signs(runs.old_suite.diagnostics, path, before, text):
            yield _make_sign_finding(path, sign, gains=gains)
    suite = runs.old_suite
    for path, sign in find_test_support_signs(suite.task, suite.test_files, runs.code):
        yield ChangeFinding(
            code="test_support_changed",
            severity="reject" if gains else "remark",
            path=path,
            detail=sign.code,
            names=sign.names,
        )


def fills_stub(before: str, after: str) -> bool:
    """Return whether a change of a Python file writes a function that only had its head before."""
    old, new = parse_module(before), parse_module(after)
    if old is None or new is None:
        return False
    return bool(find_stubs(old) - find_stubs(new))


def makes_failing_test_pass(runs: TestRuns, fixed: Iterable[str]) -> bool:
    """Return whether an old test that failed passes with the new code, so that gaming the tests can have paid.

    Args:
        fixed: Ids of the tests that fail before the change and pass after it, without those that end by chance.
    """
    return not (runs.before.failed & runs.guarded.passed).isdisjoint(fixed)


def _make_sign_finding(path: str, sign: TamperingWarning, *, gains: bool) -> ChangeFinding:
    # Features use the values of their tests, and refactorings remove calls.
    severity: FindingSeverity = "remark" if gains or sign.code in DOUBTFUL_SIGNS else "note"
    return ChangeFinding(
        code="memorises_examples" if sign.shows_memorising else "games_tests",
        severity="reject" if sign.shows_memorising else severity,
        path=path,
        line=sign.line,
        detail=sign.code,
        names=sign.names,
        count=sign.counts[0],
        total=sign.counts[1],
    )


def _find_capabilities(change: ProposedChange, runs: TestRuns, *, gains: bool) -> Iterator[ChangeFinding]:
    # Ordinary programs end processes and compute names. Where such code makes no failing test pass, it gains nothing.
    texts = {path: change.new_text(path) for path in change.changed if path in change.after}
    for use in find_change_capabilities(change.before, texts):
        hides = use.code in HIDING_USES and bool(runs.before.failed)
        yield ChangeFinding(
            code="capability",
            severity="reject" if gains or hides else "remark",
            path=use.path,
            line=use.line,
            detail=use.code,
            names=(use.name,),
        )


def _scan(change: ProposedChange, code: Mapping[str, str], safety: SafetySettings) -> Iterator[ChangeFinding]:
    before = {path: change.old_text(path) for path in change.changed if path in change.before}
    after = {
        path: change.new_text(path)
        for path in change.changed
        if path in change.after and not is_test_file(path)
    }
    for found in scan_change(before, after, resolve_levels(safety)):
        is_dependency = found.rule.startswith("dependency.")
        blocks = found.level == "block" and not is_dependency
        yield ChangeFinding(
            code="new_dependency" if is_dependency else "unsafe_code",
            severity="reject" if blocks else "remark",
            path=found.path,
            line=found.line,
            detail=found.rule,
            after=found.code,
            names=(found.reason,),
        )


def find_size_findings(change: ProposedChange, diff: str) -> Iterator[ChangeFinding]:
    """Yield a finding if a change is too large to be reviewed."""
    lines = sum(
        line.startswith(("+", "-")) and not line.startswith(("+++", "---")) for line in diff.splitlines()
    )
    if lines > LARGE_CHANGE_LINES:
        yield ChangeFinding(code="large_change", severity="note", count=lines)


def find_guard_findings(guards: GuardedLines, has_proof: bool) -> Iterator[ChangeFinding]:
    """Yield what the tests do not guard of a change.

    Args:
        has_proof: Whether a test fails without the change and passes with it.
    """
    not_run = sum(map(len, guards.not_run.values()))
    none_runs = not_run == guards.changed and not guards.unmeasured
    notices_most = guards.noticed * 2 >= guards.mistakes
    # Tests that notice mistakes in a refactoring guard it, although they pass without it.
    is_guarded = notices_most and guards.mistakes > 0
    if guards.changed and not has_proof:
        severity: FindingSeverity = "note" if is_guarded or none_runs else "remark"
        if guards.mistakes_unmeasured == "left_out":
            severity = "note"
        yield ChangeFinding(code="no_test_guards_change", severity=severity, count=guards.changed)
    missed = guards.mistakes - guards.noticed
    is_minor = notices_most or (has_proof and missed < MIN_MISSED_MISTAKES)
    # Mistakes in lines that no test runs are missed for this plain reason, which therefore comes first.
    explains_missed = missed > 0 and not is_minor
    for path, lines in sorted(guards.not_run.items()):
        yield ChangeFinding(
            code="lines_not_run",
            severity="remark" if none_runs or explains_missed else "note",
            path=path,
            line=lines[0],
            names=tuple(map(str, lines)),
            count=len(lines),
            total=guards.changed,
        )
    if missed > 0:
        # It adds nothing that the tests notice no mistake in lines that they do not run.
        yield ChangeFinding(
            code="mistakes_not_noticed",
            severity="note" if is_minor or none_runs else "remark",
            count=missed,
            total=guards.mistakes,
        )


AGENT_HOOK_GLOBS = (".claude/settings*.json", ".codex/hooks.json", ".gemini/settings.json")
"""Globs of files that hold the hooks of coding agents."""
CONFIGURATION_GLOBS = (
    "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc", "noxfile.py", "suture.toml",
    "package.json", "jest.config.*", "vitest.config.*", "vite.config.*", ".mocharc*", "[Mm]akefile", "GNUmakefile",
    "justfile", "Taskfile.y*ml", "*Dockerfile*test*", "*test*Dockerfile*", ".github/workflows/", ".github/actions/",
    ".gitlab-ci.yml", ".circleci/", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".travis.yml", ".drone.yml",
    "appveyor.yml", ".appveyor.yml", ".buildkite/", ".woodpecker*", "Jenkinsfile", ".pre-commit-config.yaml", ".husky/",
    "lefthook.yml", "codecov.yml", ".codecov.yml", "CODEOWNERS", *AGENT_HOOK_GLOBS,
)  # fmt: skip
"""Globs of files that say which tests run, and what their failure stops, such as the hooks of coding agents."""
SCRIPT_SUFFIXES = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd")
TEST_SECTIONS = re.compile(
    r"tool[.:](?:pytest|coverage|tox|nox|hatch\.envs|poe|pdm\.scripts|taskipy|cov|mutmut|suture)\b"
    r"|pytest\b|coverage\b|tox\b|testenv|run\b|report\b|paths\b"
)
"""Matches the name of a section of a TOML or INI file that says how tests run."""
TEST_KEYS = ("scripts", "jest", "mocha", "ava", "tap", "c8", "nyc", "vitest", "type", "imports", "exports")
"""Keys of `package.json` that say how tests run."""
AGENT_FOLDERS = (".claude", ".gemini")
HOOK_KEYS = ("hooks", "hooksConfig", "disableAllHooks")
"""Keys of the settings of coding agents that say which checks run."""
SUTURE_HOOK = re.compile(r"(?:/(?:[\w.-]+/)+)?suture judge --hook(?: --quick)?")
"""Matches the command of a hook that docs/agents.md recommends. Agents need an absolute path to a virtual
environment."""
SECTION = re.compile(r"\[+([^\[\]]+)\]+\s*(?:#.*)?$")
PINNED_VERSION = re.compile(
    r"(?:-\s*)?(?:uses|rev|image|tag|name|[\w-]*(?:python|node|go|version)[\w-]*):(?!.*(?:\|\||;))"
    r"|-\s*['\"]?(?:pypy-?|graalpy-?)?[\d.]+[\w.-]*['\"]?$|#"
)
"""Matches a line of a workflow that only pins a version or names a step, or that is a comment."""
PYTHON_VERSION = re.compile(r"\bpy(?:py)?-?\d[\d.]*\b,?\s*")
"""Matches the name of an environment of tox that is a version of Python, such as `py313`."""
SECTION_FILES = ("pyproject.toml", "setup.cfg", "tox.ini", ".coveragerc")


def find_configuration_changes(files: Mapping[str, bytes], changed: Iterable[str]) -> list[str]:
    """Return the changed files that configure how tests run, and the changed scripts that these files name.

    Args:
        files: Path -> content of the project before the change.
    """
    configuring = [
        decode_text(content) for path, content in files.items() if is_protected(path, CONFIGURATION_GLOBS)
    ]
    return [
        path
        for path in changed
        if is_protected(path, CONFIGURATION_GLOBS)
        or (path.endswith(SCRIPT_SUFFIXES) and any(posixpath.basename(path) in text for text in configuring))
    ]


def alters_test_run(path: str, before: str, after: str) -> bool:
    """Return whether a change of a configuration file can change which tests run, or what their failure stops.

    Args:
        path: One of `find_configuration_changes`.
        before: The file's content; empty for a new file.
        after: The file's content after the change; empty for a removed file.
    """
    name = posixpath.basename(path)
    if is_protected(path, AGENT_HOOK_GLOBS) and not before and _holds_only_suture_hooks(after):
        return False
    if name in SECTION_FILES:
        return _read_sections(before) != _read_sections(after)
    if name == "package.json":
        return _read_keys(before, TEST_KEYS) != _read_keys(after, TEST_KEYS)
    if posixpath.basename(posixpath.dirname(path)) in AGENT_FOLDERS:
        return _read_keys(before, HOOK_KEYS) != _read_keys(after, HOOK_KEYS)
    if name.endswith((".yml", ".yaml")):
        return _drop_pinned_versions(before) != _drop_pinned_versions(after)
    return True


def _holds_only_suture_hooks(text: str) -> bool:
    """Return whether the settings of a coding agent hold the hooks of Suture and nothing else."""
    try:
        settings = json.loads(text)
        hooks = [hook for groups in settings["hooks"].values() for group in groups for hook in group["hooks"]]
        return (
            settings.keys() == {"hooks"}
            and bool(hooks)
            and all(SUTURE_HOOK.fullmatch(hook["command"]) for hook in hooks)
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def _read_sections(text: str) -> dict[str, list[str]]:
    """Return the lines of the sections that say how tests run, without comments, layout and versions of Python."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for row in text.splitlines():
        line = PYTHON_VERSION.sub("", row.strip())
        header = SECTION.match(line) if row[:1] == "[" else None
        if header is not None:
            # The lines of any other section go into a list that is not read.
            is_read = TEST_SECTIONS.match(header[1].strip().replace('"', "")) is not None
            lines = sections.setdefault(header[1], []) if is_read else []
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def _read_keys(text: str, keys: Iterable[str]) -> object:
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return text
    if not isinstance(values, Mapping):
        return text
    return {key: values[key] for key in keys if key in values}


def _drop_pinned_versions(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and PINNED_VERSION.match(line) is None]


SETTINGS_FILE = re.compile(r"(?:^|/)\.env[^/]*$|\.(?:env|ini|cfg|conf|properties)$")
DOCUMENTATION_FILE = re.compile(r"\.(?:md|rst|txt|adoc)$", re.IGNORECASE)


def find_secrets(change: ProposedChange) -> Iterator[ChangeFinding]:
    """Yield a finding for each file that has a secret and had none before; tests are left out."""
    for path in change.changed:
        if is_test_file(path):
            continue
        severity, detail = read_secret(path, change.after.get(path, b""))
        if detail and not read_secret(path, change.before.get(path, b""))[1]:
            yield ChangeFinding(code="secret", severity=severity, path=path, detail=detail)


def read_secret(path: str, content: bytes) -> tuple[FindingSeverity, str]:
    """Return how grave the gravest secret of a file is, and its kind; an empty kind if it has none."""
    if is_private_key(content):
        return "reject", "private_key"
    if SETTINGS_FILE.search(path) and assigns_secret(content):
        return "reject", "assigned_secret"
    if holds_key(content):
        # Documentation shows addresses with a password, and parts of keys.
        return ("remark" if DOCUMENTATION_FILE.search(path) else "reject"), "key"
    # In code, what is assigned to a name that means a secret may be a field name or a default.
    return "remark", "assigned_secret" if assigns_secret_text(content) else ""
