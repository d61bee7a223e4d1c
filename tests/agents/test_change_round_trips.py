"""Random edits of real files, written in each form that models use, are read back as the same file."""

from __future__ import annotations

import ast
import difflib
import json
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from suture.agents.replies.change_reading import read_change

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
MODULES = (
    "textwrap.py", "heapq.py", "shlex.py", "csv.py", "fractions.py", "json/decoder.py", "dataclasses.py",
    "configparser.py", "string.py", "bisect.py", "abc.py", "queue.py", "graphlib.py", "cmd.py", "netrc.py",
)  # fmt: skip
SOURCES = {f"lib/{name}": STANDARD_LIBRARY.joinpath(name).read_text("utf-8") for name in MODULES}
NEW_LINES = (
    "",
    "    pass",
    "x = 1",
    "        return None  # grüße",
    "\tif x:",
    "    # a comment",
    "'''text'''",
)

Edit = tuple[str, str]
"""The path of a file, and its new text."""


@st.composite
def edited_files(draw: st.DrawFn) -> Edit:
    """Draw a file and its text with up to three places replaced, deleted or inserted."""
    path = draw(st.sampled_from(sorted(SOURCES)))
    lines = SOURCES[path].split("\n")[:-1]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(lines) - 1))
        end = start + draw(st.integers(0, 4))
        lines[start:end] = draw(st.lists(st.sampled_from(NEW_LINES), max_size=3))
    text = "\n".join(lines).rstrip() + "\n"
    assume(text != SOURCES[path])
    return path, text


def changed_blocks(old: list[str], new: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the (old lines, new lines) of each change, whose old lines are unique in the file."""
    blocks = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    groups = [group for group in matcher.get_grouped_opcodes(3)]
    for group in groups:
        old_lines = old[group[0][1] : group[-1][2]]
        new_lines = new[group[0][3] : group[-1][4]]
        assume(any(line.strip() for line in old_lines))
        blocks.append((old_lines, new_lines))
    # Each edit is applied to the result of the one before it.
    text = "\n".join(old)
    for old_lines, new_lines in blocks:
        # Blank lines around the text of an edit may belong to the reply, so they do not make it unique.
        unique_text = "\n".join(old_lines).strip("\n")
        assume(f"\n{text}\n".count(f"\n{unique_text}\n") == 1)
        text = text.replace("\n".join(old_lines), "\n".join(new_lines), 1)
    return blocks


def diff_block(old: list[str], new: list[str]) -> list[str]:
    """Return the lines of a hunk, each with its sign."""
    return [line[0] + line[2:] for line in difflib.ndiff(old, new) if line[0] in " +-"]


def split(text: str) -> list[str]:
    return text.split("\n")[:-1]


def render_whole(path: str, old: str, new: str) -> str:
    return f"Here is the whole file.\n\n### {path}\n`````python\n{new}`````\n"


def render_tag(path: str, old: str, new: str) -> str:
    return f'<file path="{path}">\n{new}</file>\n'


def render_json_file(path: str, old: str, new: str) -> str:
    return "```json\n" + json.dumps({"files": [{"path": path, "content": new}]}, indent=1) + "\n```"


def render_search_blocks(path: str, old: str, new: str) -> str:
    blocks = changed_blocks(split(old), split(new))
    return "Fixed.\n\n" + "\n".join(
        "\n".join([path, "```python", "<<<<<<< SEARCH", *a, "=======", *b, ">>>>>>> REPLACE", "```"])
        for a, b in blocks
    )


def render_git_diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(split(old), split(new), f"a/{path}", f"b/{path}", lineterm="")
    return f"```diff\ndiff --git a/{path} b/{path}\n" + "\n".join(lines) + "\n```"


def render_bare_diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(split(old), split(new), path, path, lineterm="")
    return "The patch:\n\n" + "\n".join(lines) + "\n"


def render_careless_diff(path: str, old: str, new: str) -> str:
    # Without right numbers, only unique text can be found: `unified_diff` may choose other lines as the context.
    blocks = changed_blocks(split(old), split(new))
    body: list[str] = []
    for a, b in blocks:
        lines = diff_block(a, b)
        body += ["@@ -1,2 +1,7 @@", *(line.rstrip() if line.startswith(" ") else line for line in lines)]
    return "\n".join(["```diff", f"--- a/{path}", f"+++ b/{path}", *body, "```"])


def render_envelope(path: str, old: str, new: str) -> str:
    body = [line for a, b in changed_blocks(split(old), split(new)) for line in ("@@", *diff_block(a, b))]
    return "\n".join(["*** Begin Patch", f"*** Update File: {path}", *body, "*** End Patch"])


def render_edit_tool(path: str, old: str, new: str) -> str:
    blocks = changed_blocks(split(old), split(new))
    edits = [
        {"old_string": "\n".join([*a, ""]), "new_string": "\n".join([*b, ""]) if b else ""} for a, b in blocks
    ]
    return json.dumps({"file_path": f"/repo/{path}", "edits": edits})


def render_tool_calls(path: str, old: str, new: str) -> str:
    blocks = changed_blocks(split(old), split(new))
    assume(all(old.count("\n".join(a)) == 1 for a, _ in blocks))  # The tool replaces parts of lines, too.
    calls = [
        {"name": "str_replace", "arguments": {"path": path, "old_str": "\n".join(a), "new_str": "\n".join(b)}}
        for a, b in blocks
    ]
    return "\n".join(f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>" for call in calls)


FORMS = [
    render_whole,
    render_tag,
    render_json_file,
    render_search_blocks,
    render_git_diff,
    render_bare_diff,
    render_careless_diff,
    render_envelope,
    render_edit_tool,
    render_tool_calls,
]


def check_form(render: Callable[[str, str, str], str], edit: Edit) -> None:
    path, new = edit
    change = read_change(render(path, SOURCES[path], new), SOURCES)
    assert not change.problems, change.render_problems()
    assert change.files == {path: new}


@pytest.mark.parametrize("render", FORMS, ids=lambda render: render.__name__)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(edit=edited_files())
def test_an_edit_in_any_form_gives_the_same_file(render: Callable[[str, str, str], str], edit: Edit) -> None:
    check_form(render, edit)


@pytest.mark.heavy
@pytest.mark.parametrize("render", FORMS, ids=lambda render: render.__name__)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(edit=edited_files())
def test_many_edits_in_any_form_give_the_same_file(
    render: Callable[[str, str, str], str], edit: Edit
) -> None:
    check_form(render, edit)


@st.composite
def edited_functions(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Draw `(path, new text of the file, qualified name of the function that differs, its new source)`."""
    path = draw(st.sampled_from(sorted(SOURCES)))
    text = SOURCES[path]
    functions = list(find_functions(ast.parse(text).body))
    assume(functions)
    name, node = draw(st.sampled_from(functions))
    lines = text.split("\n")
    start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
    first = node.body[0]
    assume(first.lineno > node.lineno and not isinstance(first, ast.Pass))
    margin = " " * first.col_offset
    new = [
        *lines[start : first.lineno - 1],
        f"{margin}note = 'grüße'",
        *lines[first.lineno - 1 : node.end_lineno],
    ]
    strings = [part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.JoinedStr)]
    docstrings = [part.value for part in ast.walk(node) if isinstance(part, ast.Expr)]
    # The lines inside of other strings cannot be moved back if a reply moved them to the left.
    assume(all(part.lineno == part.end_lineno or part in docstrings for part in strings))
    return path, "\n".join([*lines[:start], *new, *lines[node.end_lineno :]]), name, "\n".join(new)


def find_functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions and methods that are the only ones of their qualified name, as a property's are not."""
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in body:
        if isinstance(node, ast.FunctionDef) and names.count(node.name) == 1:
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from find_functions(node.body, f"{prefix}{node.name}.")


def render_function(path: str, name: str, source: str) -> str:
    return f"I changed `{name}`:\n\n### {path}: `{name}`\n```python\n{textwrap.dedent(source)}\n```\n"


def render_indented_function(path: str, name: str, source: str) -> str:
    return f"In `{path}`, `{name}` becomes:\n\n```python\n{source}\n```\n"


def render_in_class_header(path: str, name: str, source: str) -> str:
    owners = name.split(".")[:-1]
    headers = [f"{'    ' * depth}class {owner}:" for depth, owner in enumerate(owners)]
    return "\n".join([f"**{path}**", "", "```python", *headers, source, "```"])


@pytest.mark.parametrize("render", [render_function, render_indented_function, render_in_class_header])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(edit=edited_functions())
def test_a_function_or_method_replaces_only_itself(
    render: Callable[[str, str, str], str], edit: tuple[str, str, str, str]
) -> None:
    path, new, name, source = edit
    change = read_change(render(path, name, source), SOURCES)
    assert not change.problems, change.render_problems()
    assert change.files == {path: new}


FRAGMENTS = (
    "```python", "```", "```diff", "````", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "### lib/abc.py",
    "*** Begin Patch", "*** Update File: lib/abc.py", "*** End Patch", "@@ -1,2 +1,3 @@", "--- a/lib/abc.py",
    "+++ b/lib/abc.py", "+x", "-x", "class ABC:", "def f(:", "    pass", "{", '{"path": "lib/abc.py"',
    '"old_str": "x"', "}", "<file path='lib/abc.py'>", "</file>", "<tool_call>", "</tool_call>", "\0", "\r",
    "lib/abc.py", "EOF", "cat > x <<EOF", "diff --git a/lib/abc.py b/lib/abc.py", "rename from x", "...",
)  # fmt: skip


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=25))
def test_no_reply_raises_an_error(lines: list[str]) -> None:
    change = read_change("\n".join(lines), SOURCES)
    assert all(problem.render() for problem in change.problems)
