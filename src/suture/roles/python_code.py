"""Small surgery on Python text: what it defines, its sound part, whole functions put in place of others."""

from __future__ import annotations

import ast
import io
import textwrap

__all__ = [
    "complete_from_stub",
    "defined_names",
    "parses",
    "sound_prefix",
    "splice_definitions",
    "without_demo",
]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _parse(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lines(code: str) -> list[str]:
    # Not str.splitlines: that also splits at form feeds and at characters inside string literals.
    return io.StringIO(code).readlines()


def parses(code: str) -> bool:
    """Whether Python can parse it."""
    return _parse(code) is not None


def only_imports(code: str) -> bool:
    """Whether it is import statements and nothing else."""
    tree = _parse(code)
    body = tree.body if tree else []
    return bool(body) and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)


def defined_names(code: str) -> frozenset[str]:
    """Names that the module's top level defines, imports included; empty where it does not parse."""
    tree = _parse(code)
    names: set[str] = set()
    for node in tree.body if tree else ():
        names |= _names_of(node)
    return frozenset(names)


def _names_of(node: ast.stmt) -> set[str]:
    if isinstance(node, Definition):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def sound_prefix(code: str) -> str:
    """The whole top-level statements at the start of a text that was cut short.

    A statement is whole when another one has begun after it at the left margin. The last one never is, even
    where it parses: nobody knows what was to follow.
    """
    lines = _lines(code)
    for end in range(len(lines), 0, -1):
        tree = _parse("".join(lines[:end]))
        if tree is None:
            continue
        following = next((line for line in lines[end:] if line.strip()), "")
        if following and not following[0].isspace():
            return "".join(lines[:end])
        return "".join(lines[: tree.body[-2].end_lineno]) if len(tree.body) > 1 else ""
    return ""


def without_demo(code: str) -> str:
    """The module without top-level asserts and prints: a model's own examples decide nothing."""
    tree = _parse(code)
    if tree is None:
        return code
    demo = [node for node in tree.body if _is_demo(node)]
    return _without_lines(code, demo) if demo else code


def _is_demo(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def _without_lines(code: str, nodes: list[ast.stmt]) -> str:
    gone = {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return "".join(text for number, text in enumerate(_lines(code), 1) if number not in gone)


def complete_from_stub(code: str, stub: str) -> str:
    """Put in front of `code` what the task's stub already gives and the code leaves out.

    Where the code is only the body of the stub's last function, it is put under that function's signature.

    Args:
        code: What the model wrote.
        stub: Python with a signature and a docstring, as in the task's statement; or any other text.
    """
    tree = _parse(stub)
    functions = [node for node in tree.body if isinstance(node, Definition)] if tree else []
    if tree is None or not functions:
        return code
    wanted = functions[-1]
    if wanted.name not in defined_names(code):
        body = textwrap.indent(textwrap.dedent(code), "    ")
        joined = f"{stub.rstrip()}\n{body}"
        return joined if parses(joined) else code
    have = defined_names(code)
    given = [
        node for node in tree.body if node is not wanted and (names := _names_of(node)) and not names & have
    ]
    missing = [ast.get_source_segment(stub, node) or "" for node in given]
    return "\n".join([*missing, code]) if missing else code


def splice_definitions(original: str, patch: str) -> str | None:
    """Put each function or class of `patch` in the place of its namesake in `original`.

    A top-level function of the patch also replaces the only method of that name. New imports are put on top.

    Returns:
        The new text; `None` where either does not parse, or the patch holds anything else that is new.
    """
    old, new = _parse(original), _parse(patch)
    if old is None or new is None or not new.body:
        return None
    text = original
    for node in new.body:
        source = _source_with_decorators(patch, node)
        if isinstance(node, Definition):
            replaced = _replace(text, node.name, source)
            if replaced is None:
                return None
            text = replaced
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if not _names_of(node) <= defined_names(text):
                text = _add_import(text, source)
        elif not _is_demo(node) and not _is_docstring(node):
            return None
    return text


def _replace(text: str, name: str, source: str) -> str | None:
    tree = ast.parse(text)
    places = [node for node in tree.body if isinstance(node, Definition) and node.name == name]
    if not places:
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        places = [n for c in classes for n in c.body if isinstance(n, Definition) and n.name == name]
    if len(places) != 1:
        return None
    place = places[0]
    lines = _lines(text)
    indented = textwrap.indent(textwrap.dedent(source), " " * place.col_offset).rstrip("\n") + "\n"
    replaced = "".join([*lines[: _first_line(place) - 1], indented, *lines[place.end_lineno :]])
    return replaced if parses(replaced) else None


def _add_import(text: str, source: str) -> str:
    tree = ast.parse(text)
    after = 0
    for node in tree.body:
        if not (_is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        after = node.end_lineno or after
    lines = _lines(text)
    return "".join([*lines[:after], source.rstrip("\n") + "\n", *lines[after:]])


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _source_with_decorators(code: str, node: ast.stmt) -> str:
    start = _first_line(node) if isinstance(node, Definition) else node.lineno
    return "".join(_lines(code)[start - 1 : node.end_lineno])


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
