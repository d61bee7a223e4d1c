"""Tables and directives that require packages, or say where packages come from, need approval when they change."""

from __future__ import annotations

import pytest

from suture.project.safety import Levels, scan_change

OUTSIDE, UNLISTED, UNREAD = "dependency.outside-index", "dependency.unlisted", "dependency.unread"


def added_rules(path: str, before: str, after: str) -> dict[str, str]:
    return {one.code: one.rule for one in scan_change({path: before}, {path: after}, Levels())}


PYPROJECT_ADDITIONS = {
    "[tool.uv.sources]\nflask = {git = 'https://e.org/f', rev = 'a'}": {
        "python: flask @ git = https://e.org/f, rev = a": OUTSIDE
    },
    "[tool.uv.sources]\nflask = [{index = 'one'}, {path = '../flask'}]": {
        "python: flask @ index = one": OUTSIDE,
        "python: flask @ path = ../flask": OUTSIDE,
    },
    "[[tool.uv.index]]\nname = 'one'\nurl = 'https://e.org/s'\ndefault = true": {
        "python: https://e.org/s @ default = True, name = one": OUTSIDE
    },
    "[tool.uv]\nindex-url = 'https://e.org/s'\nno-index = true": {
        "python: index-url @ https://e.org/s": OUTSIDE,
        "python: no-index @ True": OUTSIDE,
    },
    "[tool.uv]\nextra-index-url = ['https://e.org/s']\nfind-links = ['../wheels']": {
        "python: extra-index-url @ [https://e.org/s]": OUTSIDE,
        "python: find-links @ [../wheels]": OUTSIDE,
    },
    "[tool.uv.pip]\nindex-strategy = 'unsafe-best-match'": {
        "python: index-strategy @ unsafe-best-match": OUTSIDE
    },
    "[tool.uv]\ndev-dependencies = ['first']\noverride-dependencies = ['second']": {
        "python: first": UNLISTED,
        "python: second": UNLISTED,
    },
    "[dependency-groups]\ndev = ['first', {include-group = 'more'}]\nmore = ['second']": {
        "python: first": UNLISTED,
        "python: second": UNLISTED,
    },
    "[dependency-groups]\ndev = ['first']\n[project.optional-dependencies]\ndev = ['second']": {
        "python: first": UNLISTED,
        "python: second": UNLISTED,
    },
    "[dependency-groups]\ndev = [{path = '../first'}]": {"python: {'path': '../first'}": UNREAD},
    "[project]\ndynamic = ['dependencies']\n[tool.setuptools.dynamic]\ndependencies = {file = ['list.cfg']}": {
        "python: file = list.cfg": UNREAD
    },
    "[tool.setuptools.dynamic]\noptional-dependencies = {web = {file = '../requirements.txt'}}": {
        "python: file = ../requirements.txt": UNREAD
    },
    "[tool.setuptools.dynamic]\ndependencies = {file = ['requirements.txt', 'requirements/web.in']}": {},
    "[project]\ndynamic = ['dependencies']\n[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ['a']": {
        "python: requirements_txt": UNREAD
    },
    "[tool.hatch.envs.test]\nextra-dependencies = ['first']": {"python: first": UNLISTED},
    "[[tool.poetry.source]]\nname = 'one'\nurl = 'https://e.org/s'\npriority = 'primary'": {
        "python: https://e.org/s @ name = one, priority = primary": OUTSIDE
    },
    "[tool.poetry.dependencies]\nflask = {version = '^2.3', source = 'one'}": {
        "python: flask @ source = one, version = ^2.3": OUTSIDE
    },
    "[tool.poetry.group.dev.dependencies]\nfirst = [{version = '1'}, {git = 'https://e.org/f'}]": {
        "python: first": UNLISTED,
        "python: first @ git = https://e.org/f": OUTSIDE,
    },
    "[tool.poetry.dev-dependencies]\nfirst = '*'": {"python: first": UNLISTED},
    "[[tool.pdm.source]]\nurl = 'https://e.org/s'": {"python: https://e.org/s": OUTSIDE},
    "[tool.pdm.dev-dependencies]\ntest = ['first']": {"python: first": UNLISTED},
}


@pytest.mark.parametrize("addition", PYPROJECT_ADDITIONS)
def test_an_addition_to_a_pyproject_has_the_matching_rule(addition: str) -> None:
    assert added_rules("pyproject.toml", "", addition + "\n") == PYPROJECT_ADDITIONS[addition]


@pytest.mark.parametrize(
    ("path", "before", "after", "code"),
    [
        (
            "pyproject.toml",
            "[tool.uv.sources]\na = {git = 'https://e.org/a'}",
            "[tool.uv.sources]\na = {git = 'https://f.org/a'}",
            "python: a @ git = https://f.org/a",
        ),
        (
            "pyproject.toml",
            "[tool.poetry.dependencies]\na = {url = 'https://e.org/a'}",
            "[tool.poetry.dependencies]\na = {url = 'https://f.org/a'}",
            "python: a @ url = https://f.org/a",
        ),
        (
            "pyproject.toml",
            "[[tool.uv.index]]\nurl = 'https://e.org'",
            "[[tool.uv.index]]\nurl = 'https://e.org'\ndefault = true",
            "python: https://e.org @ default = True",
        ),
        ("go.mod", "replace a.org/a => ../a\n", "replace a.org/a => ../b\n", "go: a.org/a @ ../b"),
        ("go.mod", "", "replace a.org/a v1 => b.org/b v2\n", "go: a.org/a @ v1 => b.org/b v2"),
        ("go.mod", "", "tool example.org/cmd/x\n", "go: example.org/cmd/x"),
        ("go.mod", "", "tool (\n\texample.org/cmd/x\n)\n", "go: example.org/cmd/x"),
        ("go.mod", "", 'require(\n\t"example.org/b" v0.1.0\n)\n', "go: example.org/b"),
        ("go.work", "", "replace example.org/c => ../c\n", "go: example.org/c @ ../c"),
        ("go.work", "", "use ../other\n", "go: ../other"),
        ("requirements/web.txt", "", "first\n", "python: first"),
        (
            "package.json",
            '{"dependencies": {"a": "b/c"}}',
            '{"dependencies": {"a": "d/c"}}',
            "javascript: a @ d/c",
        ),
        ("Pipfile", "[packages]\na = {git = 'x'}\n", "[packages]\na = {git = 'y'}\n", "python: a @ git = y"),
    ],
)
def test_a_changed_source_is_reported(path: str, before: str, after: str, code: str) -> None:
    assert list(added_rules(path, before, after)) == [code]


def test_a_change_at_the_end_of_a_long_address_is_reported() -> None:
    address = "https://example.org/" + "x" * 500
    before, after = (f"[tool.uv.sources]\na = {{url = '{address}{end}'}}" for end in "12")
    (code,) = added_rules("pyproject.toml", before, after)
    assert "(SHA-256 " in code
    assert len(code) <= 160


def test_an_unchanged_source_is_not_reported() -> None:
    text = "[[tool.uv.index]]\nurl = 'https://e.org'\n[tool.uv.sources]\na = {index = 'x', marker = 'y'}\n"
    moved = "[tool.uv.sources]\na = {marker = 'y', index = 'x'}\n[[tool.uv.index]]\nurl = 'https://e.org'\n"
    assert added_rules("pyproject.toml", text, moved) == {}
