"""Files of settings that keep a parser busy, or put a name together with the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from suture.errors import StorageError, UsageError
from suture.ledger import RunFolder
from suture.loop.tasks import write_task
from suture.settings import load_settings


@pytest.mark.parametrize("text", [".".join(["a"] * 30_000) + "=1", "loop.samples=" + "9" * 5000])
def test_a_text_that_keeps_the_parser_busy_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "suture.toml").write_text(text)
    with pytest.raises(UsageError, match="is not TOML"):
        load_settings(tmp_path, environ={"HOME": str(tmp_path)})


def test_a_model_named_by_user_and_project_together_takes_trust(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LLM_MODEL=openai:costly\n")
    mine = {"HOME": str(tmp_path), "LLM_PROVIDER": "huggingface", "HF_MODEL": "mine"}
    with pytest.raises(UsageError, match=r"model\.name"):
        load_settings(tmp_path, environ=mine)


@pytest.mark.parametrize("digest", ["../ledger.jsonl", "/dev/zero", 5, "0" * 64])
def test_a_blob_is_a_regular_file_named_by_a_hash(tmp_path: Path, digest: str) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / ("0" * 64)).symlink_to("/dev/zero")
    with pytest.raises(StorageError):
        RunFolder(tmp_path).get_blob(digest)


def test_a_pipe_is_no_file_of_tests(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "test_x.py")
    with pytest.raises(UsageError, match="no regular file"):
        write_task("def f(): ...", test=tmp_path / "test_x.py")
    os.mkfifo(tmp_path / "conftest.py")
    (tmp_path / "test_y.py").write_text("from y import f\n\ndef test_y():\n    assert f()\n")
    assert "conftest.py" not in " ".join(write_task("def f(): ...", test=tmp_path / "test_y.py").files)
