"""Memory items: stored, recalled and counted, in both engines."""

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
from suture.storage.memory.fingerprints import embedding_text
from suture.storage.memory.memory_exchange import export_lines, import_lines
from suture.storage.memory.memory_items import MemoryItem, item_to_plain, parse_item
from suture.storage.memory.memory_store import (
    evict_useless,
    find_item,
    items_by_id,
    iter_items,
    record_use,
    reembed_items,
    set_state,
    store_items,
)
from suture.storage.memory.recall import recall_memories
from suture.storage.memory.retention import draw_arm, estimate_uplift, placebo_text, shows_no_benefit
from suture.storage.tuning import MIN_SHOWN_USES, MIN_WITHHELD_USES

if TYPE_CHECKING:
    from suture.storage.memory.vectors import Vectors

HASHED = HashedNgrams()


def make_failure(subject: str, **changes: object) -> MemoryItem:
    """Return the memory of a repaired failure."""
    base = MemoryItem(
        table="failures",
        run_id="run-1",
        kind="KeyError",
        error_signature="KeyError: <value>",
        text=f"mended {subject}",
        patch=f"-{subject}\n+{subject} mended",
        search_text=f"KeyError: <value> {subject}",
        repaired=True,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


class ReversingEmbedder:
    """An embedder of reversed texts, whose vectors differ from those of `HASHED`."""

    identity = "backwards:512"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return HASHED.embed([text[::-1] for text in texts])


CART = make_failure("cart total of prices and quantities")
ROUTE = make_failure("shortest route in a graph of cities")
DATES = make_failure("calendar dates parsed from a log file", language="go")


def test_the_most_similar_memory_comes_first(store: Store) -> None:
    assert store_items(store, [CART, ROUTE, DATES], HASHED)["failures"] == 3
    recalled = recall_memories(store, "KeyError: <value> total price of a cart", HASHED)
    assert recalled[0].item.text == CART.text
    assert recalled[0].score > recalled[1].score
    assert [match.item.text for match in recall_memories(store, "shortest graph route", None)] == [ROUTE.text]


def test_vectors_distinguish_errors_and_code_shapes(store: Store) -> None:
    loop_failure, call_failure = (
        replace(CART, code_shape="For Subscript Name"),
        replace(ROUTE, code_shape="Return Call Attribute"),
    )
    other_error = replace(
        DATES, error_signature="TypeError: <value> is no number", code_shape=call_failure.code_shape
    )
    store_items(store, [loop_failure, call_failure, other_error], HASHED)
    query_text = embedding_text(call_failure.error_signature, call_failure.code_shape, "")
    recalled = recall_memories(store, "words of nobody", HASHED, embedding_text=query_text)

    assert [match.item.text for match in recalled] == [ROUTE.text, DATES.text, CART.text]
    assert recalled[0].similarity > recalled[1].similarity > recalled[2].similarity


def test_recall_filters_its_results(store: Store) -> None:
    store_items(store, [CART, ROUTE, DATES, make_failure("cart of nobody", repaired=False, patch="")], HASHED)

    assert {
        match.item.language for match in recall_memories(store, "KeyError dates cart", HASHED, language="go")
    } == {"go"}
    assert all(match.item.repaired for match in recall_memories(store, "cart", HASHED, repaired=True))
    assert recall_memories(store, "cart", HASHED, kind="TypeError") == []
    assert recall_memories(store, "cart", HASHED, tables=("lessons",)) == []


def test_equal_items_of_two_runs_are_stored_once(store: Store) -> None:
    store_items(store, [CART, replace(CART, run_id="run-2")], HASHED)
    store_items(store, [replace(CART, run_id="run-3", created_s=9.0)], HASHED)
    assert [item.run_id for item in iter_items(store)] == ["run-1"]


def test_near_duplicates_are_merged(store: Store) -> None:
    store_items(store, [CART, replace(CART, text="the same change in other words")], HASHED)
    assert len(recall_memories(store, "cart total", HASHED)) == 1


def test_vectors_of_another_embedder_are_replaced_and_never_mixed(store: Store) -> None:
    store_items(store, [CART, ROUTE], HASHED)
    reversing = ReversingEmbedder()

    assert all(match.similarity == 0 for match in recall_memories(store, "cart total", reversing))
    assert reembed_items(store, reversing) == 2
    assert reembed_items(store, reversing) == 0
    assert (
        recall_memories(store, "cart total of prices", reversing, search_words=False)[0].item.text
        == CART.text
    )

    embedders = {row[1] for row in items_by_id(store, "failures", [1, 2]).values()}
    assert embedders == {reversing.identity}
    assert recall_memories(store, "cart total", HASHED, search_words=False) == []


def test_vectors_changed_by_another_process_are_reloaded(store: Store, store_url: str) -> None:
    store_items(store, [CART], HASHED)
    recall_memories(store, "cart", HASHED)
    with open_store(store_url, None) as other_store:  # type: ignore[arg-type]  # an address needs no folder
        store_items(other_store, [ROUTE], HASHED)
        set_state(other_store, [("failures", CART.key)], "forgotten")

    assert [
        match.item.text for match in recall_memories(store, "cart route", HASHED, search_words=False)
    ] == [ROUTE.text]


def test_secrets_are_removed_before_storing(store: Store) -> None:
    secret = "hunter2secret"
    store_items(
        store, [make_failure("x", text=f'password = "{secret}"', search_text=f'password = "{secret}"')], None
    )
    assert secret not in "".join(str(item_to_plain(item)) for item in iter_items(store))
    assert recall_memories(store, secret, None) == []


def test_a_forgotten_item_loses_its_texts(store: Store) -> None:
    store_items(store, [CART], HASHED)
    key = next(iter_items(store)).key

    assert find_item(store, key[:12]).text == CART.text
    assert set_state(store, [("failures", key)], "forgotten") == 1
    assert set_state(store, [("failures", key)], "forgotten") == 0

    store_items(store, [CART], HASHED)
    assert list(iter_items(store)) == []
    assert [item.text for item in iter_items(store, state="forgotten")] == [""]
    assert recall_memories(store, "cart total", HASHED) == []
    with pytest.raises(UsageError, match="no memory"):
        find_item(store, "ffff")


def test_uses_are_counted_once_for_each_run(store: Store) -> None:
    store_items(store, [CART], HASHED)
    for run, shown, healed in (("a", True, True), ("a", True, True), ("b", True, False), ("c", False, True)):
        record_use(store, "failures", CART.key, run, shown=shown, healed=healed)
    item = next(iter_items(store))
    assert (item.recalled, item.healed_recalled, item.withheld, item.healed_withheld) == (2, 1, 1, 1)


def test_items_without_benefit_are_evicted(store: Store) -> None:
    store_items(store, [CART, ROUTE], HASHED)
    for number in range(MIN_SHOWN_USES + 4):
        record_use(store, "failures", CART.key, f"s{number}", shown=True, healed=False)
        record_use(store, "failures", ROUTE.key, f"s{number}", shown=True, healed=True)
    for number in range(MIN_WITHHELD_USES + 4):
        record_use(store, "failures", CART.key, f"w{number}", shown=False, healed=True)
        record_use(store, "failures", ROUTE.key, f"w{number}", shown=False, healed=False)

    assert evict_useless(store, [("failures", CART.key), ("failures", ROUTE.key)]) == 1
    assert [item.text for item in iter_items(store)] == [ROUTE.text]
    assert [match.item.text for match in recall_memories(store, "cart route", HASHED)] == [ROUTE.text]


def test_an_import_adds_no_duplicates(store: Store) -> None:
    store_items(store, [CART, ROUTE], HASHED)
    record_use(store, "failures", CART.key, "a", shown=True, healed=True)
    lines = list(export_lines(store))

    assert import_lines(store, lines, HASHED, file_name="f").new == 0
    assert next(iter_items(store)).recalled == 1

    foreign_item = replace(CART, recalled=2, healed_recalled=1, details={"runs": ["x", "y"]})
    foreign_lines = [lines[0], json.dumps(item_to_plain(foreign_item))]
    import_lines(store, foreign_lines, HASHED, file_name="f")
    assert next(iter_items(store)).recalled == 3

    import_lines(store, foreign_lines, HASHED, file_name="f")
    assert next(iter_items(store)).recalled == 3


def test_an_export_can_be_imported(store: Store) -> None:
    store_items(store, [CART, ROUTE], HASHED)
    lines = list(export_lines(store))
    for item in list(iter_items(store)):
        with store.write_transaction() as connection:
            connection.exec_driver_sql(f"DELETE FROM {item.table}")
    imported = import_lines(store, lines, HASHED, file_name="f")

    assert (imported.read, imported.new) == (2, 2)
    assert recall_memories(store, "cart total", HASHED)[0].item.text == CART.text


@pytest.mark.parametrize(
    "line", ["", "[1]", '{"table": "tasks", "run_id": "x"}', '{"table": "failures"}', "x" * 300_000]
)
def test_an_invalid_line_is_named_and_nothing_is_imported(store: Store, line: str) -> None:
    store_items(store, [CART], None)
    lines = [*export_lines(store), line]
    with pytest.raises(UsageError, match=r"line 3 of 'f\.jsonl'"):
        import_lines(store, lines, None, file_name="f.jsonl")


def test_a_record_with_wrong_types_is_refused() -> None:
    record = item_to_plain(CART)

    assert parse_item(record) == CART
    for name, value in (
        ("text", 1),
        ("recalled", -1),
        ("recalled", True),
        ("repaired", "yes"),
        ("details", []),
    ):
        with pytest.raises(ValueError, match=name):
            parse_item({**record, name: value})


def test_arms_are_drawn_by_seed_with_their_shares() -> None:
    arms = [draw_arm("key", number, seed=1, withheld=0.3, placebo=0.1) for number in range(2000)]
    assert arms == [draw_arm("key", number, seed=1, withheld=0.3, placebo=0.1) for number in range(2000)]
    assert arms != [draw_arm("key", number, seed=2, withheld=0.3, placebo=0.1) for number in range(2000)]
    assert abs(arms.count("withheld") / 2000 - 0.3) < 0.04
    assert abs(arms.count("placebo") / 2000 - 0.1) < 0.03
    assert len(placebo_text("x" * 333, "k")[1]) == 333


def test_the_confidence_of_an_uplift_grows_with_its_counts() -> None:
    uncertain, certain = estimate_uplift(2, 2, 0, 1), estimate_uplift(90, 100, 20, 40)
    assert uncertain.low < 0 < certain.low < certain.mean < certain.high
    assert not shows_no_benefit(replace(CART, recalled=3, withheld=1))
    assert np.isclose(estimate_uplift(5, 10, 5, 10).mean, 0)
