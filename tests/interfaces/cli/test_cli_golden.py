"""The screens at 60 and 100 columns equal the golden files; golden.py describes how to regenerate them."""

from __future__ import annotations

from pathlib import Path

import pytest

from interfaces.cli.golden import COLUMNS, GOLDEN, Scene, golden_file, play, scenes, stabilize

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

WIDTH_MARKS = {60: pytest.mark.heavy}
"""`make test` plays every screen at one width, because each plays a run of its own."""


@pytest.mark.parametrize(
    ("scene", "columns"),
    [
        pytest.param(scene, columns, id=f"{scene.name}-{columns}", marks=WIDTH_MARKS.get(columns, ()))
        for scene, columns in scenes()
    ],
)
def test_a_screen_equals_its_golden_file(
    scene: Scene, columns: int, environ: dict[str, str], bare_python: Path, self_tested_cache: Path
) -> None:
    # The comparison is word by word, because a longer number can move a line break.
    scene_environ = {**environ, "VIRTUAL_ENV": str(bare_python)}
    assert (
        stabilize(play(scene, columns, scene_environ, self_tested_cache)).split()
        == golden_file(scene, columns).read_text().split()
    )


@pytest.mark.parametrize("columns", COLUMNS)
def test_no_screen_is_wider_than_its_terminal(columns: int) -> None:
    for file in GOLDEN.glob(f"*-{columns}.txt"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("$ ")]
        assert max(map(len, lines)) <= columns, file.name
