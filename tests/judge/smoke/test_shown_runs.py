"""The commands and requests that a statement shows, on lines of their own and within sentences."""

import pytest

from suture.judge.smoke.smoke_plan import find_shown_commands, find_shown_requests


@pytest.mark.parametrize(
    "statement",
    [
        'An API. POST /books {"title": "Emma"} -> 201 {"id": 1}, then GET /books/2 -> 404.',
        '`POST /books {"title": "Emma"}` → `201 {"id": 1}`; and `GET /books/2` => 404',
        'An API.\n\n- POST /books {"title": "Emma"} -> 201 {"id": 1}\n- GET /books/2 -> 404\n',
    ],
)
def test_requests_are_found_on_lines_and_in_sentences(statement: str) -> None:
    post, get = find_shown_requests(statement)
    assert (post.shown, post.status, post.answer) == ('POST /books {"title": "Emma"}', 201, {"id": 1})
    assert (get.shown, get.status, get.answer) == ("GET /books/2", 404, None)


@pytest.mark.parametrize(
    "statement",
    [
        "GET /books/{id} -> 200",
        "GET /books/<id> -> 200",
        "GET /books -> 200 or 404",
        'POST /books {"title": ...} -> 201',
        "GET /books -> 200 [a list]",
        "GET /books gives a list",
        "GET /books -> 100 results per page",
        "GET /books => 429 after five calls",
    ],
)
def test_what_cannot_be_sent_as_it_stands_is_no_request(statement: str) -> None:
    assert find_shown_requests(statement) == ()


def test_a_command_within_a_sentence_counts_with_its_output() -> None:
    commands = find_shown_commands("At first `$ todo list` prints `0 items`, and `$ todo frobnicate` fails.")
    assert [(command.words, command.output) for command in commands] == [(("todo", "list"), ("0 items",))]
