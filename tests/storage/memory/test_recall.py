"""Memory items: stored, recalled and counted, in both engines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from suture.errors import UsageError
from suture.storage.database.store import Store, open_store
from suture.storage.memory.fingerprints import embedding_text
from suture.storage.memory.memory_exchange import export_lines, import_lines
from suture.storage.memory.memory_items import MemoryItem, item_to_plain, parse_item
from suture.storage.memory.memory_store import (
    find_item,
    iter_items,
    record_use,
    set_state,
    store_items,
)
from suture.storage.memory.recall import recall_memories


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


CART = make_failure("cart total of prices and quantities")
ROUTE = make_failure("shortest route in a graph of cities")
DATES = make_failure("calendar dates parsed from a log file", language="go")


def test_the_most_similar_memory_comes_first(store: Store) -> None:
    assert store_items(store, [CART, ROUTE, DATES])["failures"] == 3
    recalled = recall_memories(store, "KeyError: <value> total price of a cart")
    assert recalled[0].item.text == CART.text
    assert recalled[0].score > recalled[1].score
    assert recall_memories(store, "shortest graph route")[0].item.text == ROUTE.text


def test_vectors_distinguish_errors_and_code_shapes(store: Store) -> None:
    loop_failure, call_failure = (
        replace(CART, code_shape="For Subscript Name"),
        replace(ROUTE, code_shape="Return Call Attribute"),
    )
    other_error = replace(
        DATES, error_signature="TypeError: <value> is no number", code_shape=call_failure.code_shape
    )
    store_items(store, [loop_failure, call_failure, other_error])
    query_text = embedding_text(call_failure.error_signature, call_failure.code_shape, "")
    recalled = recall_memories(store, "words of nobody", embedding_text=query_text)

    assert [match.item.text for match in recalled] == [ROUTE.text, DATES.text, CART.text]
    assert recalled[0].similarity > recalled[1].similarity > recalled[2].similarity


def test_recall_filters_its_results(store: Store) -> None:
    store_items(store, [CART, ROUTE, DATES, make_failure("cart of nobody", repaired=False, patch="")])

    assert {
        match.item.language for match in recall_memories(store, "KeyError dates cart", language="go")
    } == {"go"}
    assert all(match.item.repaired for match in recall_memories(store, "cart", repaired=True))
    assert recall_memories(store, "cart", kind="TypeError") == []
    assert recall_memories(store, "cart", tables=("lessons",)) == []


def test_equal_items_of_two_runs_are_stored_once(store: Store) -> None:
    store_items(store, [CART, replace(CART, run_id="run-2")])
    store_items(store, [replace(CART, run_id="run-3", created_s=9.0)])
    assert [item.run_id for item in iter_items(store)] == ["run-1"]


def test_near_duplicates_are_merged(store: Store) -> None:
    store_items(store, [CART, replace(CART, text="the same change in other words")])
    assert len(recall_memories(store, "cart total")) == 1


def test_vectors_changed_by_another_process_are_reloaded(store: Store, store_url: str) -> None:
    store_items(store, [CART])
    recall_memories(store, "cart")
    with open_store(store_url, None) as other_store:  # type: ignore[arg-type]  # an address needs no folder
        store_items(other_store, [ROUTE])
        set_state(other_store, [("failures", CART.key)], "forgotten")

    assert [match.item.text for match in recall_memories(store, "", embedding_text="cart route")] == [
        ROUTE.text
    ]


def test_secrets_are_removed_before_storing(store: Store) -> None:
    secret = "hunter2secret"
    store_items(
        store, [make_failure("x", text=f'password = "{secret}"', search_text=f'password = "{secret}"')]
    )
    assert secret not in "".join(str(item_to_plain(item)) for item in iter_items(store))
    assert secret not in str(recall_memories(store, secret))


def test_a_forgotten_item_loses_its_texts(store: Store) -> None:
    store_items(store, [CART])
    key = next(iter_items(store)).key

    assert find_item(store, key[:12]).text == CART.text
    assert set_state(store, [("failures", key)], "forgotten") == 1
    assert set_state(store, [("failures", key)], "forgotten") == 0

    store_items(store, [CART])
    assert list(iter_items(store)) == []
    assert [item.text for item in iter_items(store, state="forgotten")] == [""]
    assert recall_memories(store, "cart total") == []
    with pytest.raises(UsageError, match="no memory"):
        find_item(store, "ffff")


def test_uses_are_counted_once_for_each_run(store: Store) -> None:
    store_items(store, [CART])
    for run, healed in (("a", True), ("a", True), ("b", False)):
        record_use(store, "failures", CART.key, run, healed=healed)
    item = next(iter_items(store))
    assert (item.recalled, item.healed_recalled) == (2, 1)


def test_an_import_adds_no_duplicates(store: Store) -> None:
    store_items(store, [CART, ROUTE])
    record_use(store, "failures", CART.key, "a", healed=True)
    lines = list(export_lines(store))

    assert import_lines(store, lines, file_name="f").new == 0
    assert next(iter_items(store)).recalled == 1

    foreign_item = replace(CART, recalled=2, healed_recalled=1, details={"runs": ["x", "y"]})
    foreign_lines = [lines[0], json.dumps(item_to_plain(foreign_item))]
    import_lines(store, foreign_lines, file_name="f")
    assert next(iter_items(store)).recalled == 3

    import_lines(store, foreign_lines, file_name="f")
    assert next(iter_items(store)).recalled == 3


def test_an_export_can_be_imported(store: Store) -> None:
    store_items(store, [CART, ROUTE])
    lines = list(export_lines(store))
    for item in list(iter_items(store)):
        with store.write_transaction() as connection:
            connection.exec_driver_sql(f"DELETE FROM {item.table}")
    imported = import_lines(store, lines, file_name="f")

    assert (imported.read, imported.new) == (2, 2)
    assert recall_memories(store, "cart total")[0].item.text == CART.text


@pytest.mark.parametrize(
    "line", ["", "[1]", '{"table": "tasks", "run_id": "x"}', '{"table": "failures"}', "x" * 300_000]
)
def test_an_invalid_line_is_named_and_nothing_is_imported(store: Store, line: str) -> None:
    store_items(store, [CART])
    lines = [*export_lines(store), line]
    with pytest.raises(UsageError, match=r"line 3 of 'f\.jsonl'"):
        import_lines(store, lines, file_name="f.jsonl")


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
