"""Memory items: stored, recalled and shared, in both engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suture.errors import UsageError
from suture.storage.database.store import Store
from suture.storage.memory.fingerprints import FailureFingerprint
from suture.storage.memory.memory_exchange import export_lines, import_lines
from suture.storage.memory.memory_items import MemoryItem, item_to_plain, parse_item
from suture.storage.memory.memory_store import (
    find_item,
    find_with_words,
    forget_items,
    iter_items,
    store_items,
)
from suture.storage.memory.recall import recall_memories
from suture.storage.tuning import SEARCH_DEPTH


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


CART = make_failure("cart total of prices and quantities", code_shape="For Subscript Name")
ROUTE = make_failure("shortest route in a graph of cities", code_shape="Return Call Attribute")
DATES = make_failure(
    "calendar dates parsed from a log file",
    language="go",
    error_signature="TypeError: <value> is no number",
    code_shape="Return Call Attribute",
)


def make_query(item: MemoryItem) -> FailureFingerprint:
    """Return the fingerprint of a failure like that of an item."""
    return FailureFingerprint(signature=item.error_signature, shape=item.code_shape)


def test_errors_and_code_shapes_decide_which_failure_comes_first(store: Store) -> None:
    assert store_items(store, [CART, ROUTE, DATES])["failures"] == 3
    recalled = recall_memories(store, make_query(ROUTE))

    assert [match.item.text for match in recalled] == [ROUTE.text, DATES.text, CART.text]
    assert recalled[0].similarity > recalled[1].similarity > recalled[2].similarity


def test_words_decide_which_lesson_comes_first(store: Store) -> None:
    lessons = ["check both ends of a range", "parse dates before you compare them"]
    store_items(
        store, [MemoryItem(table="lessons", run_id="r", text=text, search_text=text) for text in lessons]
    )
    query = FailureFingerprint(signature="KeyError: <value>", search_text="the dates are not compared right")

    assert [match.item.text for match in recall_memories(store, query)] == lessons[::-1]


def test_recall_filters_its_results(store: Store) -> None:
    store_items(store, [CART, ROUTE, DATES, make_failure("cart of nobody", repaired=False, patch="")])
    query = make_query(CART)

    assert [match.item.text for match in recall_memories(store, query, language="go")] == [DATES.text]
    assert all(match.item.repaired for match in recall_memories(store, query, repaired=True))
    assert recall_memories(store, query, tables=("lessons",)) == []


def test_nearer_items_of_the_other_kind_displace_no_repaired_item(store: Store) -> None:
    unrepaired = [
        make_failure(f"{n}", repaired=False, patch="", code_shape="For") for n in range(SEARCH_DEPTH)
    ]
    store_items(store, [*unrepaired, CART, ROUTE])
    query = FailureFingerprint(signature=CART.error_signature, shape="For")

    recalled = recall_memories(store, query, repaired=True)
    assert {match.item.text for match in recalled} == {CART.text, ROUTE.text}


def test_memories_are_found_by_all_of_some_words(store: Store) -> None:
    store_items(store, [CART, ROUTE])

    assert [item.text for item in find_with_words(store, ["Cart", "keyerror"])] == [CART.text]
    assert list(find_with_words(store, ["cart", "route"])) == []


def test_equal_items_of_two_runs_are_stored_once(store: Store) -> None:
    store_items(store, [CART, replace(CART, run_id="run-2")])
    store_items(store, [replace(CART, run_id="run-3", created_s=9.0)])
    assert [item.run_id for item in iter_items(store)] == ["run-1"]


def test_near_duplicates_are_merged(store: Store) -> None:
    store_items(store, [CART, replace(CART, text="the same change in other words")])
    assert len(recall_memories(store, make_query(CART))) == 1


def test_secrets_are_removed_before_storing(store: Store) -> None:
    secret = "hunter2secret"
    store_items(
        store, [make_failure("x", text=f'password = "{secret}"', search_text=f'password = "{secret}"')]
    )
    assert secret not in "".join(str(item_to_plain(item)) for item in iter_items(store))


def test_a_forgotten_item_loses_its_texts(store: Store) -> None:
    store_items(store, [CART])
    key = next(iter_items(store)).key

    assert find_item(store, key[:12]).text == CART.text
    assert forget_items(store, [("failures", key)]) == 1
    assert forget_items(store, [("failures", key)]) == 0

    store_items(store, [CART])
    assert list(iter_items(store)) == []
    assert [item.text for item in iter_items(store, state="forgotten")] == [""]
    assert recall_memories(store, make_query(CART)) == []
    with pytest.raises(UsageError, match="no memory"):
        find_item(store, "ffff")


def test_an_import_adds_no_duplicates_and_restores_nothing_forgotten(store: Store) -> None:
    store_items(store, [CART, ROUTE])
    lines = list(export_lines(store))
    forget_items(store, [("failures", CART.key)])

    assert import_lines(store, lines, file_name="f").new == 0
    assert [item.text for item in iter_items(store)] == [ROUTE.text]


def test_an_export_can_be_imported(store: Store) -> None:
    store_items(store, [CART, ROUTE])
    lines = list(export_lines(store))
    for item in list(iter_items(store)):
        with store.write_transaction() as connection:
            connection.exec_driver_sql(f"DELETE FROM {item.table}")
    imported = import_lines(store, lines, file_name="f")

    assert (imported.read, imported.new) == (2, 2)
    assert recall_memories(store, make_query(CART))[0].item.text == CART.text


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[1]",
        '{"table": "tasks", "run_id": "x"}',
        '{"table": "failures"}',
        '{"table": "failures", "run_id": "x", "text": "\\ud800"}',
        '{"table": "failures", "run_id": "x", "\\ud800": ""}',
        '{"table": "failures", "run_id": "x", "created_s": NaN}',
        "x" * 300_000,
    ],
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
        ("created_s", "now"),
        ("repaired", "yes"),
        ("state", "gone"),
        ("table", "tasks"),
    ):
        with pytest.raises(ValueError, match=name):
            parse_item({**record, name: value})
