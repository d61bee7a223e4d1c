"""Settings in `pyproject.toml`, which have the same rights as those in `suture.toml`."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.settings import (
    compute_project_digest,
    find_requested_settings,
    is_trusted,
    load_settings,
    trust_project,
)
from suture.errors import UsageError
from trusting import load_trusted

HARMLESS = '[project]\nname = "x"\n\n[tool.suture.project]\ntest = "pytest -q tests"\n'


def load_test_command(project: Path, home: Path) -> tuple[object, str]:
    loaded = load_trusted(project, None, {"HOME": str(home)})
    return loaded.settings.project.test, loaded.origins["project.test"]


def test_the_pyproject_table_applies_and_is_named_as_the_origin(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(HARMLESS)
    assert load_test_command(tmp_path, tmp_path) == ("pytest -q tests", f"{tmp_path}/pyproject.toml")
    (tmp_path / "suture.toml").write_text('[project]\ntest = "pytest -x"\n')
    assert load_test_command(tmp_path, tmp_path) == ("pytest -x", f"{tmp_path}/suture.toml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[project\nname = 1",
        "[tool.black]\nline-length = 100\n",
        "[tool]\nsuture-x = 1\n",
        "\xff".join("ab"),
        "# see tool.suture\n",
    ],
)
def test_a_pyproject_without_a_suture_table_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    assert load_test_command(tmp_path, tmp_path) == (None, "default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.suture]\nbudget = 3\n", "no setting 'budget'"),
        ("[tool.suture.budget]\ntoken = 3\n", "did you mean budget.tokens"),
        ("[tool.suture.budget\n", "is not TOML"),
        ("[tool]\nsuture = 3\n", "is no table"),
        ("[tool.suture.budget]\ntokens = 0\n", "at least 1"),
    ],
)
def test_an_error_in_the_suture_table_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(tmp_path, environ={"HOME": str(tmp_path)})
    assert message in f"{caught.value.message} {caught.value.remedy}"
    assert "pyproject.toml" in caught.value.message


@pytest.mark.parametrize(
    "table", ["[tool.suture.model]\n", '[tool."suture".model]\n', "[tool]\nsuture.model."]
)
def test_other_settings_need_trust_that_ends_with_a_change(tmp_path: Path, table: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    file = project / "pyproject.toml"
    file.write_text(f'{table}base_url = "http://127.0.0.1:9"\n')
    environ = {"HOME": str(tmp_path), "SUTURE_HOME": str(home)}

    with pytest.raises(UsageError, match=r"would set model.base_url"):
        load_settings(project, environ=environ)
    assert [request.key for request in find_requested_settings(project, environ)[1]] == ["model.base_url"]
    trust_project(home, project, compute_project_digest(project))
    assert load_settings(project, environ=environ).settings.model.base_url == "http://127.0.0.1:9"
    file.write_text(file.read_text() + "\n[tool.black]\nline-length = 3\n")
    assert is_trusted(home, project)
    file.write_text(file.read_text().replace("127.0.0.1:9", "127.0.0.1:8"))
    assert not is_trusted(home, project)


def test_user_only_settings_in_pyproject_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.suture.sandbox]\nbackend = "unsafe-subprocess"\n')
    with pytest.raises(UsageError, match="have no say"):
        load_settings(tmp_path, environ={"HOME": str(tmp_path)})
