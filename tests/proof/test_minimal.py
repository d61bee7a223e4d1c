from __future__ import annotations

import itertools
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from suture.proof.minimal import minimise

LINES = [f"line_{number} = {number}" for number in range(30)]
BASE = {"a.txt": ("\n".join(LINES) + "\n").encode(), "b.txt": b"one\ntwo\n"}


async def test_only_what_is_needed_is_left() -> None:
    lines = [f"{line}  # touched" for line in LINES]
    lines[7], lines[20] = "line_7 = 'mended'", "line_20 = 'mended'"
    files = {"a.txt": "\n".join(lines) + "\n", "b.txt": "one\nthree\n"}

    async def passes(part: Mapping[str, str]) -> bool:
        return part.get("a.txt", "").count("mended") == 2

    found = await minimise(BASE, files, passes, max_runs=200)
    wanted = [*LINES]
    wanted[7], wanted[20] = lines[7], lines[20]
    assert found.files == {"a.txt": "\n".join(wanted) + "\n"}
    assert (found.edits_found, found.edits, found.is_minimal) == (31, 2, True)


@given(needed=st.sets(st.integers(0, 11)), extra=st.lists(st.sampled_from(["x", "y"]), max_size=4))
async def test_no_edit_that_is_left_can_be_spared(needed: set[int], extra: list[str]) -> None:
    base = {"a.txt": "".join(f"{n}\n" for n in range(12)).encode()}
    text = "".join(f"{n}!\n" for n in range(12)) + "".join(f"{mark}\n" for mark in extra)
    wanted = {f"{n}!" for n in needed}

    async def passes(part: Mapping[str, str]) -> bool:
        return wanted <= set(part.get("a.txt", "").split("\n")) if part else not wanted

    found = await minimise(base, {"a.txt": text}, passes, max_runs=500)
    assert found.is_minimal
    assert found.edits == max(1, len(needed))
    assert await passes(found.files)


async def test_the_limit_holds_and_what_is_left_still_passes() -> None:
    text = "\n".join(f"{line}!" for line in LINES) + "\n"
    calls = itertools.count()

    async def passes(part: Mapping[str, str]) -> bool:
        next(calls)
        return all(f"{line}!" in part.get("a.txt", "") for line in LINES[::3])

    found = await minimise(BASE, {"a.txt": text}, passes, max_runs=9)
    assert (found.runs, next(calls), found.is_minimal) == (9, 9, False)
    assert await passes(found.files)


async def test_halves_that_do_not_parse_cost_no_run() -> None:
    base = {"m.py": b"def f(x):\n    return x\n"}
    text = "def f(x):\n    if x is None:\n        return 0\n    return x\n"
    asked: list[str] = []

    async def passes(part: Mapping[str, str]) -> bool:
        asked.append(part["m.py"])
        return part["m.py"] == text

    found = await minimise(base, {"m.py": text}, passes, max_runs=50)
    assert found.files == {"m.py": text}
    assert found.is_minimal
    for source in asked:
        compile(source, "m.py", "exec")


async def test_a_new_file_is_needed_or_not() -> None:
    async def passes(part: Mapping[str, str]) -> bool:
        return "new.txt" in part

    found = await minimise(BASE, {"new.txt": "x\ny", "b.txt": "1\n2\n"}, passes, max_runs=50)
    assert set(found.files) == {"new.txt"}
