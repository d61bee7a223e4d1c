"""Read changes that a reply gives as data: the JSON of edit tools, JSON objects with files, and XML elements.

Each vendor's edit tool has its own names for the same few inputs, and models use the names of the tools that
they were trained with. So an object is understood by its keys, whatever its tool is called.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from suture.agents.replies.fenced_blocks import CodePart, ReplyPart, TextEdit, UnusablePart
from suture.agents.replies.patch_parts import ENVELOPE_START, parse_diff, parse_envelope
from suture.agents.replies.text_edits import DiffHunk

PATH_KEYS = ("path", "file_path", "filepath", "file", "filename", "file_name", "target_file", "relative_path",
             "absolute_path", "target", "name")  # fmt: skip
OLD_KEYS = ("old_str", "old_string", "old_text", "old", "old_code", "search", "find", "original", "before",
            "search_text", "find_text", "old_content")  # fmt: skip
NEW_KEYS = ("new_str", "new_string", "new_text", "new", "new_code", "replace", "replacement", "updated", "after",
            "replace_text", "new_content", "replace_with")  # fmt: skip
CONTENT_KEYS = ("file_text", "content", "contents", "file_content", "code", "text", "full_content", "body",
                "new_content")  # fmt: skip
DIFF_KEYS = ("diff", "patch", "unified_diff", "input")
LINE_KEYS = ("insert_line", "insert_after_line", "line", "line_number")
INSERTED_KEYS = ("new_str", "insert_text", "text", "content", "new_string", "new_text")
LIST_KEYS = ("edits", "changes", "files", "patches", "operations", "tool_calls", "replacements", "modifications",
             "new_files", "actions")  # fmt: skip
CALL_KEYS = ("arguments", "input", "args", "parameters", "function", "params")
"""The key of an object's inputs, if the object is the call of a tool."""
DELETIONS = ("delete", "delete_file", "remove", "remove_file", "rename", "move")
READ_COMMANDS = ("view", "read", "read_file", "list", "search", "undo_edit", "open", "grep")
COMMAND_KEYS = ("command", "action", "type", "operation", "op", "kind")
PATH_SHAPE = re.compile(r"^[\w@.+/\\\[\]()-]+(?:/[\w@.+-]+|\.\w{1,12})$")
MAX_OBJECTS = 100
"""Maximum number of JSON objects that are read from one reply."""

ELEMENT_NAMES = (
    "write_to_file|create_file|write_file|replace_in_file|apply_diff|str_replace_editor|str_replace|edit_file|edit"
    "|replace|change|invoke|tool_call|tool_use|function_call|function|file|code_edit|update|create|insert|patch"
    "|search_replace|modify|write|artifact"
)
ELEMENT = re.compile(
    rf"^[ \t]*<(?P<name>{ELEMENT_NAMES})\b(?P<attributes>[^<>\n]*)>", re.IGNORECASE | re.MULTILINE
)
FUNCTION_START = re.compile(r"<function=([\w.-]+)>")
CHILD = re.compile(
    r"<(?:parameter(?:=|\s+name=)[\"']?(?P<parameter>\w+)[\"']?|(?P<tag>\w+))(?:\s[^<>]*)?>"
    r"(?P<value>.*?)</(?:parameter|(?P=tag))>",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"(\w+)\s*=\s*[\"']([^\"']*)[\"']")


def parse_json_parts(
    text: str, line: int, mentioned: str = "", path: str | None = None
) -> list[ReplyPart] | None:
    """Return the changes in a string that is entirely JSON; `None` if it is not, or describes no change.

    Args:
        line: Index of the string's first line in the reply.
        path: The file that the reply names for the string.
    """
    values = list(_decode_values(text))
    if not values:
        return None
    parts = [part for value in values for part in _read_value(value, path, line, mentioned)]
    return parts or None


def _decode_values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a string that consists of them; none if it contains anything else."""
    decoder = json.JSONDecoder(strict=False)  # Models write raw line feeds into strings.
    rest = text.strip()
    values: list[Any] = []
    while rest and len(values) < MAX_OBJECTS:
        if rest[0] not in "{[":
            return
        try:
            value, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            value = _decode_python_literal(rest)
            end = len(rest)
            if value is None:
                return
        values.append(value)
        rest = rest[end:].lstrip().removeprefix(",").lstrip()
    yield from values


def _decode_python_literal(text: str) -> Any:
    """Return the value of a Python literal, as which models write long strings; `None` if it is not a literal."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _read_value(value: Any, path: str | None, line: int, mentioned: str) -> Iterator[ReplyPart]:
    """Yield the changes in a JSON value."""
    if isinstance(value, list):
        for item in value:
            yield from _read_value(item, path, line, mentioned)
    elif isinstance(value, dict):
        yield from _read_object(_plain_keys(value), path, line, mentioned)


def _plain_keys(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an object with its keys in one spelling: `oldString` and `old-string` become `old_string`."""
    plain: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key)
        if not PATH_SHAPE.match(name) or re.fullmatch(r"[\w-]+", name):
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").replace(" ", "_").lower()
        plain[name if name not in plain else str(key)] = item
    return plain


def _read_object(value: dict[str, Any], path: str | None, line: int, mentioned: str) -> Iterator[ReplyPart]:
    command = next((str(value[key]).lower() for key in COMMAND_KEYS if isinstance(value.get(key), str)), "")
    own_path = _first_text(value, PATH_KEYS)
    is_call = False
    for key in CALL_KEYS:
        inner = value.get(key)
        if (
            isinstance(inner, str)
            and key in ("arguments", "input", "parameters")
            and inner.lstrip()[:1] in ("{", "[")
        ):
            inner = next(_decode_values(inner), None)
        if isinstance(inner, dict | list):
            is_call = True
            # The tool's name is not a path, but it may say what the call does.
            named = {"command": value["name"], **inner} if isinstance(inner, dict) and isinstance(
                value.get("name"), str) else inner  # fmt: skip
            yield from _read_value(named, path, line, mentioned)
    if is_call:
        return
    path = own_path if own_path is not None else path
    found = False
    for key in LIST_KEYS:
        inner = value.get(key)
        if isinstance(inner, dict) and _are_files(inner):
            inner = [{"path": name, "content": content} for name, content in inner.items()]
        if isinstance(inner, list | dict):
            found = True
            yield from _read_value(inner, path, line, mentioned)
    part = _read_edit(value, command, path, line, mentioned)
    if part:
        yield from part
    elif not found and _are_files(value):
        for name, content in value.items():
            yield CodePart(line=line, path=name, code=content, is_whole=True)


def _are_files(value: Mapping[Any, Any]) -> bool:
    """Return whether an object maps paths to contents."""
    return bool(value) and all(
        isinstance(name, str) and isinstance(content, str) and PATH_SHAPE.match(name)
        for name, content in value.items()
    )


def _first_text(value: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def _read_edit(
    value: Mapping[str, Any], command: str, path: str | None, line: int, mentioned: str
) -> list[ReplyPart]:
    """Return the parts that an object with the inputs of an edit tool describes."""
    if command in READ_COMMANDS:
        return []
    if command in DELETIONS and path:
        return [UnusablePart(line=line, path=path, code="deletes_file")]
    diff = _first_text(value, DIFF_KEYS)
    if diff is not None:
        return _read_patch_text(diff, path, line, mentioned)
    insert_line = next((value[key] for key in LINE_KEYS if key in value), None)
    old, new = _first_text(value, OLD_KEYS), _first_text(value, NEW_KEYS)
    if old is None and insert_line is not None:
        inserted = _first_text(value, INSERTED_KEYS)
        if inserted is not None and str(insert_line).lstrip("-").isdigit():
            # The tools count the line after which they insert.
            hunk = DiffHunk(old="", new=inserted, line=max(0, int(insert_line)) + 1)
            return [TextEdit(line=line, path=path, hunks=(hunk,), mentioned=mentioned)]
    if old is not None and new is not None:
        hunk = DiffHunk(
            old=old, new=new, may_be_part=True, everywhere=value.get("replace_all") in (True, "true", "True")
        )
        return [TextEdit(line=line, path=path, hunks=(hunk,), mentioned=mentioned)]
    content = _first_text(value, CONTENT_KEYS)
    if content is not None and path is not None and (PATH_SHAPE.match(path) or command):
        return [CodePart(line=line, path=path, code=content, is_whole=True)]
    if old is not None or "old_string" in value or "old_str" in value:
        return [
            UnusablePart(
                line=line, path=path, code="unreadable", quote=(old or "").strip().partition("\n")[0]
            )
        ]
    return []


def _read_patch_text(text: str, path: str | None, line: int, mentioned: str) -> list[ReplyPart]:
    """Return the parts of a patch inside a string: an envelope, or a diff."""
    lines = text.split("\n")
    part = ReplyPart(line=line, path=path, mentioned=mentioned)
    if any(ENVELOPE_START.match(text_line) for text_line in lines):
        return parse_envelope(lines, line)
    return parse_diff(lines, part)


def find_elements(text: str) -> Iterator[tuple[int, int, list[ReplyPart]]]:
    """Yield `(start, end, parts)` for each XML element in a reply that describes a change.

    Start and end are offsets in the reply; the line numbers of the parts are those of the element.
    """
    done = 0
    for match in ELEMENT.finditer(text):
        if match.start() < done:
            continue
        closing = text.find(f"</{match['name']}>", match.end())
        if closing < 0:
            continue
        parts = _read_element(match, text[match.end() : closing], text.count("\n", 0, match.start()))
        if parts:
            done = closing + len(match["name"]) + 3
            yield match.start(), done, parts


def _read_element(match: re.Match[str], body: str, line: int) -> list[ReplyPart]:
    if body.lstrip()[:1] in ("{", "["):
        return parse_json_parts(body, line) or []
    function = FUNCTION_START.search(body)
    values: dict[str, Any] = dict(ATTRIBUTE.findall(match["attributes"]))
    is_function = match["name"].lower() in ("invoke", "function", "tool_call", "tool_use", "function_call")
    name = values.pop("name", None) if is_function else None
    children = list(CHILD.finditer(body))
    for child in children:
        key = child["parameter"] or child["tag"]
        values[key] = _trim_element_text(child["value"])
    if not children or not (
        set(_plain_keys(values)) & {*OLD_KEYS, *CONTENT_KEYS, *DIFF_KEYS, *INSERTED_KEYS}
    ):
        return []
    if function or isinstance(name, str):
        values.setdefault("command", function[1] if function else name)
    if isinstance(values.get("diff"), str) and "<<<<<<<" in values["diff"]:
        return []  # Search/replace blocks inside of an element are read as such.
    return list(_read_value(values, None, line, ""))


def _trim_element_text(text: str) -> str:
    """Return the text of an element without the line feeds next to its tags."""
    if text.startswith("\n"):
        text = text[1:]
        text = text.removesuffix("\n") if not text.endswith("\n\n") else text[:-1]
    return html.unescape(text) if re.search(r"&(?:lt|gt|amp|quot);", text) and "<" not in text else text
