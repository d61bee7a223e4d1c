"""Which folders the page offers as projects."""

from __future__ import annotations

from pathlib import Path

from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project
from suture.interfaces.web.project_choices import list_projects


def test_projects_are_found_below_a_folder_of_projects(tmp_path: Path) -> None:
    write_project(tmp_path / "examples" / "cart", BROKEN_PROJECT)
    write_project(tmp_path / "shop", {"package.json": "{}"})
    write_project(tmp_path / "shop" / "packages" / "mug", {"package.json": "{}"})
    write_project(tmp_path / "notes", {"todo.txt": "buy a mug"})
    write_project(tmp_path / "node_modules" / "left-pad", {"package.json": "{}"})
    found = list_projects([str(tmp_path)], [])
    assert found.folders == [str(tmp_path / "shop"), str(tmp_path / "examples" / "cart")]
    assert found.roots == [str(tmp_path)]


def test_a_root_that_is_a_project_comes_first_and_hides_what_is_in_it(tmp_path: Path) -> None:
    root = write_project(tmp_path / "cart", BROKEN_PROJECT)
    write_project(root / "examples" / "mug", BROKEN_PROJECT)
    other = write_project(tmp_path / "all" / "shop", BROKEN_PROJECT)
    assert list_projects([str(root), str(other.parent)], []).folders == [str(root), str(other)]


def test_a_folder_that_is_missing_or_has_no_project_offers_none(tmp_path: Path) -> None:
    (tmp_path / "cart").symlink_to(write_project(tmp_path / "a" / "b" / "c" / "deep", BROKEN_PROJECT))
    assert list_projects([str(tmp_path), str(tmp_path / "gone")], []).folders == []
