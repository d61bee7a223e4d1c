"""Which new packages a candidate requests, and how they are written into the project's own manifest."""

from __future__ import annotations

import pytest

from suture.sandbox.packages import PackagesRefused
from suture.sandbox.packages.additions.go_adder import GoAdder
from suture.sandbox.packages.additions.node_adder import NodeAdder, insert_member
from suture.sandbox.packages.additions.python_adder import PythonAdder, insert_pins, is_pinned

LISTED = """# The shop's own.
[project]
name = "shop"   # no other
dependencies = [
    "requests>=2",  # the web
    "click",
]

[tool.pytest.ini_options]
addopts = "-q"
"""
POETRY = '[tool.poetry]\nname = "shop"\n\n[tool.poetry.dependencies]\npython = "^3.11"\nrequests = "^2"\n'
PACKAGE = """{
    "name": "shop",
    "scripts": { "test": "node --test" },
    "dependencies": {
        "alpha": "^1.0.0",
        "omega": "^1.0.0"
    }
}
"""
GO_MOD = """module shop // ours

go 1.18

require (
\texample.org/alpha v1.0.0 // the first
\texample.org/omega v1.0.0
)

require example.org/gamma v1.0.0 // indirect
"""


def files(**texts: str) -> dict[str, bytes]:
    return {name.replace("__", "."): text.encode() for name, text in texts.items()}


@pytest.mark.parametrize(
    "asks",
    [{"requirements.txt": "inflection>=0.5"}, {"pyproject.toml": LISTED.replace("click", "inflection>=0.5")}],
)
def test_a_list_in_pyproject_gets_one_line_more(asks: dict[str, str]) -> None:
    base = files(pyproject__toml=LISTED)
    new = PythonAdder().find_requested(base, asks)
    assert new == ("inflection>=0.5",)
    written = PythonAdder().write_manifest(base, new)
    assert written == LISTED.replace('    "click",\n', '    "click",\n    "inflection>=0.5",\n')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('[project]\nname = "x"\ndependencies = []\n', '[project]\nname = "x"\ndependencies = ["alpha"]\n'),
        (
            '[project]\nname = "x"\ndependencies = ["b"]\n[tool.x]\ny = 1\n',
            '[project]\nname = "x"\ndependencies = ["b", "alpha"]\n[tool.x]\ny = 1\n',
        ),
        ('[project]\nname = "x"\n', '[project]\nname = "x"\ndependencies = ["alpha"]\n'),
        (POETRY, POETRY + 'alpha = "*"\n'),
    ],
)
def test_so_it_stands_in_other_pyprojects(text: str, written: str) -> None:
    base = files(pyproject__toml=text)
    assert PythonAdder().find_requested(base, {"requirements.txt": "alpha\n"}) == ("alpha",)
    assert PythonAdder().write_manifest(base, ["alpha"]) == written


def test_requirements_get_their_line_where_they_are_the_manifest() -> None:
    base = files(requirements__txt="# ours\nrequests>=2\r\n-e .", pyproject__toml="[tool.x]\ny = 1\n")
    whole = "# ours\nrequests>=3\n-e .\nalpha"
    assert PythonAdder().find_requested(base, {"requirements.txt": whole}) == ("alpha",)
    assert PythonAdder().write_manifest(base, ["alpha"]) == "# ours\nrequests>=2\r\n-e .\r\nalpha\r\n"
    assert PythonAdder().write_manifest(files(main__py=""), ["alpha"]) == "alpha\n"
    dynamic = '[project]\nname = "x"\ndynamic = ["dependencies"]\n'
    assert PythonAdder().manifest_path(files(pyproject__toml=dynamic, setup__cfg="")) == "requirements.txt"


@pytest.mark.parametrize(
    "line", ["-e ../x", "-r more.txt", "x @ https://example.org/x.whl", "--index-url http://x"]
)
def test_foreign_sources_are_refused(line: str) -> None:
    with pytest.raises(PackagesRefused):
        PythonAdder().find_requested(files(pyproject__toml=LISTED), {"requirements.txt": line})


def test_a_manifest_whose_every_line_is_hashed_is_left_alone() -> None:
    base = files(requirements__txt="requests==2.0 --hash=sha256:00\n")
    with pytest.raises(PackagesRefused, match="was generated from is unknown"):
        PythonAdder().write_manifest(base, ["alpha"])


@pytest.mark.parametrize(
    ("lock", "after"),
    [
        ("alpha==1.0\nomega==1.0\n", "alpha==1.0\nbeta==1.0\nomega==1.0\n"),
        (
            "# by pip-compile\nalpha==1.0 \\\n    --hash=sha256:aa\n    # via -r requirements.in\n",
            "# by pip-compile\nalpha==1.0 \\\n    --hash=sha256:aa\n    # via -r requirements.in\n"
            "beta==1.0 \\\n    --hash=sha256:bb\n",
        ),
        ("omega==1.0 --hash=sha256:aa\n", "beta==1.0 --hash=sha256:bb\nomega==1.0 --hash=sha256:aa\n"),
    ],
)
def test_a_lock_gets_pins_as_it_has_them(lock: str, after: str) -> None:
    assert insert_pins(lock, ["beta==1.0 --hash=sha256:bb"]) == after
    assert insert_pins(after, ["beta==2.0 --hash=sha256:dd"]) == after
    assert is_pinned(lock)
    assert not is_pinned(lock + "loose>=1\n")


def test_a_table_of_package_json_gets_a_member_in_its_place() -> None:
    base = files(package__json=PACKAGE)
    wish = '{"scripts": {"test": "true"}, "dependencies": {"alpha": "*", "beta": "^2"}, "jest": {"bail": 1}}'
    new = NodeAdder().find_requested(base, {"package.json": wish})
    assert new == ("dependencies beta@^2",)
    written = NodeAdder().write_manifest(base, new)
    assert written == PACKAGE.replace('"^1.0.0",\n', '"^1.0.0",\n        "beta": "^2",\n', 1)
    last = NodeAdder().write_manifest(base, ["dependencies zeta@^2"])
    assert last == PACKAGE.replace('"omega": "^1.0.0"', '"omega": "^1.0.0",\n        "zeta": "^2"')
    other = NodeAdder().write_manifest(base, ["devDependencies zeta@^2"])
    assert other == PACKAGE.replace(
        "    }\n}", '    },\n    "devDependencies": {\n        "zeta": "^2"\n    }\n}'
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{"a": 1}', '{"a": 1,"t": {"n": "1"}}'),
        ('{\n\t"t": {}\n}\n', '{\n\t"t": {\n\t\t"n": "1"\n\t}\n}\n'),
        ('{\r\n  "t": {"z": "\\"}"}\r\n}', '{\r\n  "t": {"n": "1","z": "\\"}"}\r\n}'),
        ("{}\n", '{\n  "t": {\n    "n": "1"\n  }\n}\n'),
    ],
)
def test_json_of_every_shape(text: str, written: str) -> None:
    assert insert_member(text, "t", "n", "1") == written


@pytest.mark.parametrize(
    "base",
    [
        files(index__js=""),
        files(package__json='{"workspaces": ["a"]}'),
        files(package__json="{}", **{"package-lock__json": '{"lockfileVersion": 1}'}),
        {**files(package__json="{}"), "npm-shrinkwrap.json": b"{}"},
    ],
)
def test_node_projects_that_are_not_added_to(base: dict[str, bytes]) -> None:
    with pytest.raises(PackagesRefused, match="without workspaces"):
        NodeAdder().write_manifest(base, ["dependencies zeta@^2"])


def test_only_names_of_the_index_are_asked_of_npm() -> None:
    wish = '{"dependencies": {"alpha": "git+https://example.org/x", "beta": "file:../x"}}'
    with pytest.raises(PackagesRefused, match="beta"):
        NodeAdder().find_requested(files(package__json=PACKAGE), {"package.json": wish})


def test_go_mod_gets_a_line_where_its_own_stand() -> None:
    base = files(go__mod=GO_MOD)
    wish = (
        "module evil\n\nreplace example.org/alpha => ../x\n\n"
        "require example.org/alpha v9.0.0\nrequire example.org/beta v1.1.0\n"
        "require example.org/delta v1.0.0 // indirect\n"
    )
    new = GoAdder().find_requested(base, {"go.mod": wish})
    assert new == ("example.org/beta v1.1.0",)
    written = GoAdder().write_manifest(base, new)
    assert written == GO_MOD.replace("first\n", "first\n\texample.org/beta v1.1.0\n")
    alone = GoAdder().write_manifest(files(go__mod="module shop"), new)
    assert alone == "module shop\n\nrequire example.org/beta v1.1.0\n"
    with pytest.raises(PackagesRefused):
        GoAdder().find_requested(base, {"go.mod": "require example.org/beta latest\n"})
    with pytest.raises(PackagesRefused, match="vendor"):
        GoAdder().write_manifest({**base, "vendor/modules.txt": b""}, new)
