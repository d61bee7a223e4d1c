"""The cache of packages stays within its limit: the least recently used sets are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from suture.sandbox.packages.installer import evict_unused_sets, mark_used

DAY_S = 24 * 3600


def write_package_set(folder: Path, name: str, size_bytes: int, days_ago: float) -> Path:
    """Create a cached set of packages that was last used some days ago."""
    set_folder = folder / name
    (set_folder / "site").mkdir(parents=True)
    (set_folder / "site" / "module.py").write_bytes(b"#" * size_bytes)
    used_s = time.time() - days_ago * DAY_S
    os.utime(set_folder, (used_s, used_s))
    return set_folder


def test_the_least_recently_used_set_is_evicted(tmp_path: Path) -> None:
    for name, days_ago in (("oldest", 9), ("old", 5), ("fresh", 2), ("now", 0)):
        write_package_set(tmp_path, name, 1000, days_ago)
    mark_used(tmp_path / "oldest")
    evict_unused_sets(tmp_path, 2500)
    assert {set_folder.name for set_folder in tmp_path.iterdir()} == {"oldest", "now"}


def test_recent_sets_stay_and_unfinished_ones_are_removed(tmp_path: Path) -> None:
    write_package_set(tmp_path, "now", 1000, 0)
    write_package_set(tmp_path, ".making-now", 1000, 0)
    write_package_set(tmp_path, ".making-once", 1000, 3)
    evict_unused_sets(tmp_path, 10)

    assert {set_folder.name for set_folder in tmp_path.iterdir()} == {"now", ".making-now"}

    evict_unused_sets(tmp_path / "nowhere", 10)
    mark_used(tmp_path / "nowhere")
