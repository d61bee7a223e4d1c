"""The command that installs an extra of Suture, for each place from which Suture may have come."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suture.core.installation import DISTRIBUTION, format_install_command

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
Install = Callable[[dict[str, Any] | None], None]


@pytest.fixture
def install_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Write the metadata that an installer leaves; without an origin, those of a package from an index."""

    def write(origin: dict[str, Any] | None) -> None:
        folder = tmp_path / "site" / "suture-0.1.0.dist-info"
        folder.mkdir(parents=True)
        metadata = (
            f"Metadata-Version: 2.4\nName: suture\nVersion: 0.1.0\nProject-URL: Repository, {REPOSITORY}\n"
        )
        (folder / "METADATA").write_text(metadata)
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.syspath_prepend(str(folder.parent))

    return write


def requirement(extra: str = "") -> list[str]:
    """Return the words of the command behind `install`."""
    words = shlex.split(format_install_command(extra))
    return words[words.index("install") + 1 :]


def test_the_name_is_that_of_pyproject() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_a_release_is_named_as_on_the_index(install_from: Install) -> None:
    install_from(None)

    assert requirement("serve") == ["suture[serve]"]
    assert requirement() == ["suture"]


@pytest.mark.parametrize("editable", [True, False])
def test_a_checkout_is_installed_again_from_its_folder(
    install_from: Install, tmp_path: Path, editable: bool
) -> None:
    checkout = tmp_path / "my checkout"
    checkout.mkdir()
    install_from({"url": checkout.as_uri(), "dir_info": {"editable": editable}})

    expected = ["-e", f"{checkout}[serve]"] if editable else [f"suture[serve] @ {checkout.as_uri()}"]
    assert requirement("serve") == expected


def test_a_wheel_is_installed_again_from_its_file(install_from: Install, tmp_path: Path) -> None:
    wheel = tmp_path / "suture-0.1.0-py3-none-any.whl"
    wheel.touch()
    install_from({"url": wheel.as_uri(), "archive_info": {}})

    assert requirement("local") == [f"suture[local] @ {wheel.as_uri()}"]


def test_a_wheel_that_is_gone_is_replaced_by_the_repository(install_from: Install, tmp_path: Path) -> None:
    install_from({"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}})

    assert requirement("local") == [f"suture[local] @ git+{REPOSITORY}"]


@pytest.mark.parametrize("revision", ["v0.1.0", None])
def test_a_repository_is_installed_again_at_its_revision(install_from: Install, revision: str | None) -> None:
    vcs_info = {"vcs": "git", "commit_id": "0" * 40}
    vcs_info |= {"requested_revision": revision} if revision else {}
    install_from({"url": "https://example.org/suture", "vcs_info": vcs_info})

    expected = "suture[ray] @ git+https://example.org/suture" + (f"@{revision}" if revision else "")
    assert requirement("ray") == [expected]


@pytest.mark.parametrize("origin", [{}, [], {"url": 1}, {"url": "https://example.org", "vcs_info": {"x": 1}}])
def test_damaged_metadata_still_give_a_command(install_from: Install, origin: Any) -> None:
    install_from(origin)

    assert requirement("serve") == ["suture[serve]"]


def test_metadata_that_are_no_json_still_give_a_command(install_from: Install, tmp_path: Path) -> None:
    install_from({})
    (tmp_path / "site" / "suture-0.1.0.dist-info" / "direct_url.json").write_text("{")

    assert requirement("serve") == ["suture[serve]"]


def test_a_wheel_that_is_gone_without_a_known_repository_is_named(
    install_from: Install, tmp_path: Path
) -> None:
    install_from({"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}})
    metadata = tmp_path / "site" / "suture-0.1.0.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.4\nName: suture\nVersion: 0.1.0\nProject-URL: damaged\n")

    assert requirement("local") == ["suture[local]"]


def test_pip_understands_the_command() -> None:
    """The command for this very checkout, as pip reads it without installing anything."""
    words = shlex.split(format_install_command())
    arguments = words[words.index("install") :]
    dry_run = [
        sys.executable,
        "-m",
        "pip",
        *arguments,
        "--dry-run",
        "--no-deps",
        "--no-build-isolation",
        "-qq",
    ]
    completed = subprocess.run(dry_run, capture_output=True, text=True, check=False)

    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize(
    ("tool", "marker"),
    [("pipx install --force", "pipx_metadata.json"), ("uv tool install", "uv-receipt.toml")],
)
def test_the_tool_that_made_the_environment_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, marker: str
) -> None:
    (tmp_path / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert format_install_command("serve").startswith(f"{tool} ")


@pytest.mark.parametrize(
    ("receipt", "expected"),
    [
        ('{ name = "suture", extras = ["postgres"] }', ["suture[postgres,serve]"]),
        ('{ name = "suture", extras = ["serve"] }', ["suture[serve]"]),
        (
            '{ name = "suture" }, { name = "plugin", extras = ["fast"], specifier = ">=2" }',
            ["suture[serve]", "--with", "plugin[fast]>=2"],
        ),
        (
            '{ name = "suture" }, { name = "plugin", directory = "/my/plugin" }',
            ["suture[serve]", "--with", "plugin @ /my/plugin"],
        ),
        ('"suture"', ["suture[serve]"]),
        ("{", ["suture[serve]"]),
    ],
)
def test_uv_keeps_what_the_tool_was_installed_with(
    install_from: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipt: str, expected: list[str]
) -> None:
    install_from(None)
    (tmp_path / "uv-receipt.toml").write_text(f"[tool]\nrequirements = [{receipt}]\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert requirement("serve") == expected
