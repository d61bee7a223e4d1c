"""Which changes of configuration decide how tests run."""

from __future__ import annotations

import pytest

from suture.loop.judgement.code_findings import alters_test_run, find_configuration_changes

PYPROJECT = '[project]\nname = "shop"\nversion = "1.0"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
WORKFLOW = "steps:\n  - uses: actions/checkout@v4\n  - run: python -m pytest\n"
HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "suture judge"}]}]}}'
GATE = HOOKS.replace("suture judge", "suture judge --hook")
PACKAGE = '{"version": "1.0.0", "scripts": {"test": "jest"}}'


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("1.0", "1.1")),
        ("pyproject.toml", PYPROJECT, PYPROJECT + "\n[tool.ruff]\nline-length = 100\n"),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("testpaths", "# Ours.\ntestpaths")),
        ("setup.cfg", "[metadata]\nversion = 1.0\n", "[metadata]\nversion = 1.1\n"),
        (".github/workflows/test.yml", WORKFLOW, WORKFLOW.replace("@v4", "@v5")),
        (".github/workflows/test.yml", "python: [3.9, 3.10]\n", "python:\n  - '3.10'\n  - pypy3.11\n"),
        ("tox.ini", "[tox]\nenvlist = py312, pypy3, docs\n", "[tox]\nenvlist = py312, py313, pypy3, docs\n"),
        ("package.json", PACKAGE, PACKAGE.replace("1.0.0", "1.1.0")),
        (".claude/settings.json", '{"model": "small"}', '{"model": "large", "permissions": {}}'),
        ("app/.gemini/settings.json", "", '{"theme": "dark"}'),
        (".claude/settings.json", "", GATE),
        (".codex/hooks.json", "", GATE.replace("suture", "/home/me/shop/.venv/bin/suture")),
    ],
)
def test_versions_and_other_tools_do_not(path: str, before: str, after: str) -> None:
    assert before != after
    assert not alters_test_run(path, before, after)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"tests"', '"smoke"')),
        ("pyproject.toml", PYPROJECT, PYPROJECT[: PYPROJECT.index("[tool")]),
        ("pyproject.toml", PYPROJECT, PYPROJECT + "\n[tool.coverage.report]\nfail_under = 0\n"),
        ("pytest.ini", "", "[pytest]\naddopts = -x\n"),
        ("setup.cfg", "", "[tool:pytest]\naddopts = -k slow\n"),
        ("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = pytest -x\n"),
        ("tox.ini", "[tox]\nenvlist = py312, browser\n", "[tox]\nenvlist = py312\n"),
        (".github/workflows/test.yml", WORKFLOW, WORKFLOW.replace("pytest", "pytest || true")),
        ("package.json", PACKAGE, PACKAGE.replace('"jest"', '"true"')),
        (".claude/settings.local.json", HOOKS, HOOKS.replace("suture judge", "true")),
        (".claude/settings.json", HOOKS, HOOKS.replace("{", '{"disableAllHooks": true, ', 1)),
        (".gemini/settings.json", HOOKS, "{}"),
        (".codex/hooks.json", HOOKS, ""),
        (".codex/hooks.json", HOOKS, GATE),
        (".claude/settings.local.json", "", GATE.replace("{", '{"disableAllHooks": true, ', 1)),
        (".claude/settings.json", "", GATE.replace("--hook", "--hook || true")),
        (".claude/settings.json", "", '{"hooks": {"Stop": []}}'),
        ("conf/jest.config.js", "module.exports = {}", "module.exports = {testMatch: []}"),
    ],
)
def test_what_selects_or_runs_tests_does(path: str, before: str, after: str) -> None:
    assert alters_test_run(path, before, after)


def test_files_of_every_usual_service_and_the_scripts_that_they_run_configure_tests() -> None:
    named = (
        "makefile",
        ".travis.yml",
        ".github/actions/test/action.yml",
        "ci/test.sh",
        "codecov.yml",
        ".husky/pre-push",
        ".claude/settings.json",
    )
    files = {"README.md": b"Run notes.sh.", "Jenkinsfile": b"sh 'ci/test.sh'"}
    changed = (*named, ".codex/config.toml", "shop.py", "notes.sh", "docs/makefile.md")
    assert find_configuration_changes(files, changed) == list(named)
