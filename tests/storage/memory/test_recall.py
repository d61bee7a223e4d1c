"""Memories stored, found and counted, on both engines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suture.errors import UsageError
from suture.storage.database.store import Store, open_store
from suture.storage.memory.embedders import HashedNgrams
from suture.storage.memory.fingerprints import meaning_of
from suture.storage.memory.memory_exchange import exported_lines, import_lines
from suture.storage.memory.memory_items import Item, item_as_plain, item_of_plain
from suture.storage.memory.memory_store import (
    count_use,
    embed_anew,
    evict_useless,
    keep,
    named,
    rows_of,
    set_state,
    stored_items,
)
from suture.storage.memory.recall import recall
from suture.storage.memory.retention import (
    LEAST_SHOWN,
    LEAST_WITHHELD,
    arm_of,
    placebo_for,
    shows_no_benefit,
    uplift,
)

if TYPE_CHECKING:
    from suture.storage.memory.embedders import Vectors

HASHED = HashedNgrams()


def failure(about: str, **other: object) -> Item:
    base = Item(
        table="failures",
        run_id="run-1",
        kind="KeyError",
        error_signature="KeyError: <value>",
        text=f"mended {about}",
        patch=f"-{about}\n+{about} mended",
        searched=f"KeyError: <value> {about}",
        mended=True,
    )
    return replace(base, **other)  # type: ignore[arg-type]


class Backwards:
    """Another embedder: it reads texts from their end."""

    identity = "backwards:512"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return HASHED.embed([text[::-1] for text in texts])


CART = failure("cart total of prices and quantities")
ROUTE = failure("shortest route in a graph of cities")
DATES = failure("calendar dates parsed from a log file", language="go")


def test_the_likest_memory_comes_first(store: Store) -> None:
    assert keep(store, [CART, ROUTE, DATES], HASHED)["failures"] == 3
    found = recall(store, "KeyError: <value> total price of a cart", HASHED)
    assert found[0].item.text == CART.text
    assert found[0].score > found[1].score
    assert [one.item.text for one in recall(store, "shortest graph route", None)] == [ROUTE.text]


def test_vectors_tell_apart_what_fails_otherwise_or_in_code_of_another_shape(store: Store) -> None:
    loop, call = (
        replace(CART, code_shape="For Subscript Name"),
        replace(ROUTE, code_shape="Return Call Attribute"),
    )
    other = replace(DATES, error_signature="TypeError: <value> is no number", code_shape=call.code_shape)
    keep(store, [loop, call, other], HASHED)
    meaning = meaning_of(call.error_signature, call.code_shape, "")
    found = recall(store, "words of nobody", HASHED, meaning=meaning)
    assert [one.item.text for one in found] == [ROUTE.text, DATES.text, CART.text]
    assert found[0].likeness > found[1].likeness > found[2].likeness


def test_what_is_asked_for_is_filtered(store: Store) -> None:
    keep(store, [CART, ROUTE, DATES, failure("cart of nobody", mended=False, patch="")], HASHED)
    assert {one.item.language for one in recall(store, "KeyError dates cart", HASHED, language="go")} == {
        "go"
    }
    assert all(one.item.mended for one in recall(store, "cart", HASHED, mended=True))
    assert recall(store, "cart", HASHED, kind="TypeError") == []
    assert recall(store, "cart", HASHED, tables=("lessons",)) == []


def test_what_two_runs_taught_alike_is_one_memory(store: Store) -> None:
    keep(store, [CART, replace(CART, run_id="run-2")], HASHED)
    keep(store, [replace(CART, run_id="run-3", created_s=9.0)], HASHED)
    assert [item.run_id for item in stored_items(store)] == ["run-1"]


def test_near_duplicates_are_told_once(store: Store) -> None:
    keep(store, [CART, replace(CART, text="the same change in other words")], HASHED)
    assert len(recall(store, "cart total", HASHED)) == 1


def test_another_embedder_embeds_anew_and_never_mixes(store: Store) -> None:
    keep(store, [CART, ROUTE], HASHED)
    other = Backwards()
    assert all(one.likeness == 0 for one in recall(store, "cart total", other))
    assert embed_anew(store, other) == 2
    assert embed_anew(store, other) == 0
    assert recall(store, "cart total of prices", other, by_words=False)[0].item.text == CART.text
    made_by = {row[1] for row in rows_of(store, "failures", [1, 2]).values()}
    assert made_by == {other.identity}
    assert recall(store, "cart total", HASHED, by_words=False) == []


def test_vectors_that_change_in_another_process_are_seen(store: Store, store_url: str) -> None:
    keep(store, [CART], HASHED)
    recall(store, "cart", HASHED)
    with open_store(store_url, None) as other:  # type: ignore[arg-type]  # an address needs no folder
        keep(other, [ROUTE], HASHED)
        set_state(other, [("failures", CART.key)], "forgotten")
    assert [one.item.text for one in recall(store, "cart route", HASHED, by_words=False)] == [ROUTE.text]


def test_secrets_are_gone_before_anything_is_stored(store: Store) -> None:
    secret = "hunter2secret"
    keep(store, [failure("x", text=f'password = "{secret}"', searched=f'password = "{secret}"')], None)
    assert secret not in "".join(str(item_as_plain(item)) for item in stored_items(store))
    assert recall(store, secret, None) == []


def test_what_is_forgotten_loses_its_texts_and_stays_away(store: Store) -> None:
    keep(store, [CART], HASHED)
    key = next(stored_items(store)).key
    assert named(store, key[:12]).text == CART.text
    assert set_state(store, [("failures", key)], "forgotten") == 1
    assert set_state(store, [("failures", key)], "forgotten") == 0
    keep(store, [CART], HASHED)
    assert list(stored_items(store)) == []
    assert [item.text for item in stored_items(store, state="forgotten")] == [""]
    assert recall(store, "cart total", HASHED) == []
    with pytest.raises(UsageError, match="no memory"):
        named(store, "ffff")


def test_uses_are_counted_once_for_each_run(store: Store) -> None:
    keep(store, [CART], HASHED)
    for run, shown, healed in (("a", True, True), ("a", True, True), ("b", True, False), ("c", False, True)):
        count_use(store, "failures", CART.key, run, shown=shown, healed=healed)
    item = next(stored_items(store))
    assert (item.recalled, item.healed_recalled, item.withheld, item.healed_withheld) == (2, 1, 1, 1)


def test_what_shows_no_benefit_is_evicted(store: Store) -> None:
    keep(store, [CART, ROUTE], HASHED)
    for number in range(LEAST_SHOWN + 4):
        count_use(store, "failures", CART.key, f"s{number}", shown=True, healed=False)
        count_use(store, "failures", ROUTE.key, f"s{number}", shown=True, healed=True)
    for number in range(LEAST_WITHHELD + 4):
        count_use(store, "failures", CART.key, f"w{number}", shown=False, healed=True)
        count_use(store, "failures", ROUTE.key, f"w{number}", shown=False, healed=False)
    assert evict_useless(store, [("failures", CART.key), ("failures", ROUTE.key)]) == 1
    assert [item.text for item in stored_items(store)] == [ROUTE.text]
    assert [one.item.text for one in recall(store, "cart route", HASHED)] == [ROUTE.text]


def test_an_export_comes_back_whole_and_is_not_doubled(store: Store) -> None:
    keep(store, [CART, ROUTE], HASHED)
    count_use(store, "failures", CART.key, "a", shown=True, healed=True)
    lines = list(exported_lines(store))
    assert import_lines(store, lines, HASHED, where="f").new == 0
    assert next(stored_items(store)).recalled == 1
    elsewhere = replace(CART, recalled=2, healed_recalled=1, details={"runs": ["x", "y"]})
    other = [lines[0], json.dumps(item_as_plain(elsewhere))]
    import_lines(store, other, HASHED, where="f")
    assert next(stored_items(store)).recalled == 3
    import_lines(store, other, HASHED, where="f")
    assert next(stored_items(store)).recalled == 3


def test_an_import_makes_what_is_missing(store: Store) -> None:
    keep(store, [CART, ROUTE], HASHED)
    lines = list(exported_lines(store))
    for item in list(stored_items(store)):
        with store.writing() as connection:
            connection.exec_driver_sql(f"DELETE FROM {item.table}")
    done = import_lines(store, lines, HASHED, where="f")
    assert (done.read, done.new) == (2, 2)
    assert recall(store, "cart total", HASHED)[0].item.text == CART.text


@pytest.mark.parametrize(
    "line", ["", "[1]", '{"table": "tasks", "run_id": "x"}', '{"table": "failures"}', "x" * 300_000]
)
def test_a_line_that_is_no_memory_is_named_and_nothing_is_stored(store: Store, line: str) -> None:
    keep(store, [CART], None)
    lines = [*exported_lines(store), line]
    with pytest.raises(UsageError, match=r"line 3 of 'f\.jsonl'"):
        import_lines(store, lines, None, where="f.jsonl")


def test_a_record_of_other_types_is_refused() -> None:
    plain = item_as_plain(CART)
    assert item_of_plain(plain) == CART
    for name, value in (
        ("text", 1),
        ("recalled", -1),
        ("recalled", True),
        ("mended", "yes"),
        ("details", []),
    ):
        with pytest.raises(ValueError, match=name):
            item_of_plain({**plain, name: value})


def test_chance_is_by_seed_and_keeps_its_shares() -> None:
    arms = [arm_of("key", n, seed=1, withheld=0.3, placebo=0.1) for n in range(2000)]
    assert arms == [arm_of("key", n, seed=1, withheld=0.3, placebo=0.1) for n in range(2000)]
    assert arms != [arm_of("key", n, seed=2, withheld=0.3, placebo=0.1) for n in range(2000)]
    assert abs(arms.count("withheld") / 2000 - 0.3) < 0.04
    assert abs(arms.count("placebo") / 2000 - 0.1) < 0.03
    assert len(placebo_for("x" * 333, "k")[1]) == 333


def test_an_uplift_is_as_sure_as_its_counts() -> None:
    few, many = uplift(2, 2, 0, 1), uplift(90, 100, 20, 40)
    assert few.low < 0 < many.low < many.mean < many.high
    assert not shows_no_benefit(replace(CART, recalled=3, withheld=1))
    assert np.isclose(uplift(5, 10, 5, 10).mean, 0)
