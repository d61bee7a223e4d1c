"""The catalogue of embedded models and the cache of their weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.errors import PrerequisiteError, UsageError
from suture.models import list_catalogue_models, model_path, remove_model
from suture.models.weights.weights_cache import (
    CATALOGUE,
    WheelParts,
    find_catalogue_entry,
    lock_weights,
    partial_path,
    weights_path,
    write_stamp,
)

NAME = "qwen2.5-coder-0.5b"


def write_sparse_file(path: Path, size_bytes: int) -> None:
    """Create a sparse file of this size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size_bytes)


def test_the_catalogue_is_consistent() -> None:
    assert next(iter(CATALOGUE)) == "qwen2.5-coder-1.5b"
    for entry in CATALOGUE.values():
        (parts,) = [source for source in entry.sources if isinstance(source, WheelParts)]
        assert 0 < entry.size_bytes - (parts.count - 1) * parts.part_bytes <= parts.part_bytes


def test_a_downloaded_model_is_found(tmp_path: Path) -> None:
    entry = find_catalogue_entry(NAME)
    write_sparse_file(weights_path(entry, tmp_path), entry.size_bytes)
    write_stamp(weights_path(entry, tmp_path), entry.sha256)
    assert model_path(NAME, tmp_path) == weights_path(entry, tmp_path)
    downloaded = {model.entry.name: model.path is not None for model in list_catalogue_models(tmp_path)}
    assert downloaded == {"qwen2.5-coder-1.5b": False, NAME: True}


def test_a_file_of_another_size_is_not_the_model(tmp_path: Path) -> None:
    write_sparse_file(weights_path(find_catalogue_entry(NAME), tmp_path), 1000)
    with pytest.raises(PrerequisiteError, match=f"suture models pull {NAME}"):
        model_path(NAME, tmp_path)


def test_a_file_with_other_content_is_not_the_model(tmp_path: Path) -> None:
    entry = find_catalogue_entry(NAME)
    write_sparse_file(weights_path(entry, tmp_path), entry.size_bytes)
    with pytest.raises(PrerequisiteError, match="is not the published file"):
        model_path(NAME, tmp_path)


def test_removing_a_model_removes_its_partial_files(tmp_path: Path) -> None:
    entry = find_catalogue_entry(NAME)
    write_sparse_file(weights_path(entry, tmp_path), entry.size_bytes)
    write_sparse_file(partial_path(entry, tmp_path), 10)

    assert [model.partial_bytes for model in list_catalogue_models(tmp_path)] == [0, 10]
    assert remove_model(NAME, tmp_path) == entry.size_bytes + 10
    assert {path.suffix for path in (tmp_path / "models").iterdir()} == {".lock"}
    assert remove_model(NAME, tmp_path) == 0
    assert remove_model(NAME, tmp_path / "nothing") == 0


def test_a_model_being_downloaded_is_not_removed(tmp_path: Path) -> None:
    with (
        lock_weights(find_catalogue_entry(NAME), tmp_path, on_wait=lambda: None),
        pytest.raises(UsageError, match="being fetched"),
    ):
        remove_model(NAME, tmp_path)


def test_an_unknown_name_lists_the_known_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=NAME):
        model_path("gpt", tmp_path)
