"""The tour in the docs leads to files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import suture

SOURCE = Path(suture.__file__).parent
TOUR = Path(__file__).parents[1] / "docs" / "design" / "tour.md"


def test_every_file_of_the_tour_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", TOUR.read_text("utf-8")))
    named -= {"src/suture/", "shop/"}
    assert len(named) > 40
    assert [name for name in sorted(named) if not (SOURCE / name).exists()] == []
