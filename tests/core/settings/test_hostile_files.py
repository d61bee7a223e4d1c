"""Hostile or unusual settings files, and their combination with the user's own values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from suture.core.ledger import RunFolder
from suture.core.settings import Settings, compute_project_digest, load_settings
from suture.core.settings.rendering import setting_fields
from suture.core.settings.schema import USER_ONLY_SETTINGS
from suture.core.settings.trust import file_reference_in, is_path
from suture.errors import StorageError, UsageError
from suture.loop.intake.write_task import build_write_task
from trusting import load_trusted


@pytest.mark.parametrize("text", [".".join(["a"] * 30_000) + "=1", "loop.samples=" + "9" * 5000])
def test_a_text_too_expensive_to_parse_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "suture.toml").write_text(text)
    with pytest.raises(UsageError, match="is not TOML"):
        load_settings(tmp_path, environ={"HOME": str(tmp_path)})


def test_a_model_named_partly_by_the_project_needs_trust(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LLM_MODEL=openai:costly\n")
    environ = {"HOME": str(tmp_path), "LLM_PROVIDER": "huggingface", "HF_MODEL": "mine"}
    with pytest.raises(UsageError, match=r"model\.name"):
        load_settings(tmp_path, environ=environ)


@pytest.mark.parametrize("digest", ["../ledger.jsonl", "/dev/zero", 5, "0" * 64])
def test_a_blob_must_be_a_regular_file_named_by_a_hash(tmp_path: Path, digest: str) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / ("0" * 64)).symlink_to("/dev/zero")
    with pytest.raises(StorageError):
        RunFolder(tmp_path).load_blob(digest)


def test_a_pipe_is_not_a_test_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "test_x.py")
    with pytest.raises(UsageError, match="no regular file"):
        build_write_task("def f(): ...", test=tmp_path / "test_x.py")
    os.mkfifo(tmp_path / "conftest.py")
    (tmp_path / "test_y.py").write_text("from y import f\n\ndef test_y():\n    assert f()\n")
    assert "conftest.py" not in " ".join(build_write_task("def f(): ...", test=tmp_path / "test_y.py").files)


def test_files_named_by_settings_are_part_of_the_digest(tmp_path: Path) -> None:
    """The description of a setting says whether it names a file, or a model, which may be a script file."""
    for key, field in setting_fields().items():
        description = (field.description or "").lower()
        if "`provider:model`" in description or "models to ask" in description or "toml file" in description:
            assert is_path(field) or file_reference_in(field), key
        if (is_path(field) or file_reference_in(field)) and key not in USER_ONLY_SETTINGS:
            group, _, name = key.partition(".")
            value = "own.toml" if key == "loop.recipe" else "scripted:own.toml"
            (tmp_path / "suture.toml").write_text(
                f"{group}.{name} = '{'own.toml' if is_path(field) else value}'"
            )
            before = compute_project_digest(tmp_path)
            (tmp_path / "own.toml").write_text("changed")
            assert compute_project_digest(tmp_path) != before, key
            (tmp_path / "own.toml").unlink()


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a pipe in it", "a link to a folder"])
def test_named_pipes_devices_and_links_do_not_block_the_digest(tmp_path: Path, kind: str) -> None:
    setting = "model.name = 'huggingface:own'" if kind == "a link to a folder" else "paths.prompts = 'own'"
    (tmp_path / "suture.toml").write_text(setting)
    target = tmp_path / "own"
    if kind == "a pipe":
        os.mkfifo(target)
    elif kind == "a device":
        target.symlink_to("/dev/zero")
    else:
        target.mkdir()
        (target / "inner").symlink_to("/proc/self") if "link" in kind else os.mkfifo(target / "coder.yaml")
    if kind == "a link to a folder":
        with pytest.raises(UsageError, match="link to a folder"):
            compute_project_digest(tmp_path)
    else:
        assert compute_project_digest(tmp_path) == compute_project_digest(tmp_path)


def test_booleans_are_accepted_only_for_boolean_settings(tmp_path: Path) -> None:
    def load_text(text: str) -> Settings:
        (tmp_path / "suture.toml").write_text(text)
        return load_settings(tmp_path, environ={"HOME": str(tmp_path)}).settings

    assert not load_text("repair.enabled = false").repair.enabled
    assert load_text("repair.enabled = true").repair.enabled

    with pytest.raises(UsageError, match=r"loop\.samples .* not True"):
        load_text("loop.samples = true")


@pytest.mark.parametrize("owner", ["project", "user"])
def test_file_names_are_relative_to_the_settings_file(tmp_path: Path, owner: str) -> None:
    folder = tmp_path / ".config" / "suture" if owner == "user" else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "said.yaml").write_text("- x")
    (folder / "suture.toml").write_text(
        "loop.recipe = 'way.toml'\n[model]\nname = 'scripted:said.yaml'\n"
        "fallbacks = ['scripted:example', 'a:b']\n"
    )
    loaded = load_settings(tmp_path, environ={"HOME": str(tmp_path)}, read_only=True)
    if owner == "project":
        loaded = load_trusted(tmp_path, None, {"HOME": str(tmp_path)})

    assert loaded.settings.loop.recipe == str(folder / "way.toml")
    assert loaded.settings.model.name == f"scripted:{folder / 'said.yaml'}"
    assert loaded.settings.model.fallbacks == ("scripted:example", "a:b")


@pytest.mark.parametrize("key", ["sk-1\nsk-2", "sk-1\r\nX-More: 1", "sk-é", "sk 1", "sk\x00"])
def test_a_key_invalid_in_a_header_is_refused_without_showing_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match=r"keys\.openai") as caught:
        load_settings(tmp_path, environ={"HOME": str(tmp_path), "OPENAI_API_KEY": key})
    assert "sk" not in caught.value.message
    loaded = load_settings(tmp_path, environ={"HOME": str(tmp_path), "OPENAI_API_KEY": " sk-1\n"})
    assert loaded.settings.keys.openai is not None
    assert loaded.settings.keys.openai.get_secret_value() == "sk-1"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:9",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://h:99999/v1",
        "http://h\r\nx: y",
        "x",
    ],
)
def test_an_invalid_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match=r"model\.base_url"):
        load_settings(tmp_path, {"model.base_url": address}, {"HOME": str(tmp_path)})
    for valid in ("http://[::1]:8/v1", "https://me:pw@host.test/v1", "http://localhost"):
        assert load_settings(tmp_path, {"model.base_url": valid}, {"HOME": str(tmp_path)})
