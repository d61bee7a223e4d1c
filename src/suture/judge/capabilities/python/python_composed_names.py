"""Find the names of special attributes that a Python file composes of texts, such as `f"__{kind}__"`.

Rules about names need the whole name. Of a composed one they see the constant parts, and these are enough to tell that
it is the name of an attribute that leads to other code, or decides about comparisons.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.tuning import MAX_FOLDED_DEPTH

UNKNOWN = "\0"
"""Stands for a part of a text that only a run determines."""
FIELD = re.compile(r"\{\{|\}\}|\{[^{}]*\}|%(?:\(\w*\))?[-#0 +]*[\d.]*[a-zA-Z]")
"""A field of a format, or a doubled brace."""
SPECIAL_NAME = re.compile(rf"__(?=\w*{UNKNOWN})[\w{UNKNOWN}]*__")
"""A composed name of a special method or attribute, wherever it is."""
FRAME_NAME = re.compile(rf"(?:__|_getf|f_|tb_|gi_|cr_|ag_|co_|cell_)[\w{UNKNOWN}]*")
"""How the name begins of an attribute that leads from an object to its code or its callers."""
ATTRIBUTE_READERS = ("operator.attrgetter", "operator.methodcaller")


def find_composed_names(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield a composed name of a special attribute, or of any that leads to code if an attribute is read by it."""
    if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call):
        yield from _find_names(node, SPECIAL_NAME, names)
    if isinstance(node, ast.Call):
        is_reader = names.resolve(node.func) in ATTRIBUTE_READERS
        access = names.find_access(node)
        for attribute in node.args if is_reader else [access[1]] if access is not None else []:
            yield from _find_names(attribute, FRAME_NAME, names)


def _find_names(node: ast.expr, pattern: re.Pattern[str], names: ModuleNames) -> Iterator[Use]:
    text = _read_text(node, names, 0)
    if UNKNOWN in text and any(
        UNKNOWN in part and pattern.fullmatch(part) for part in re.split(rf"[^\w{UNKNOWN}]+", text)
    ):
        key = text.replace(UNKNOWN, "...")
        yield Use(code="computes_names", name=ast.unparse(node), line=node.lineno, key=key)


def _read_text(node: ast.expr, names: ModuleNames, depth: int) -> str:
    """Return the text of an expression, with `UNKNOWN` for each part that is not constant."""
    text = names.fold_text(node)
    if text is not None or depth > MAX_FOLDED_DEPTH:
        return UNKNOWN if text is None else text
    match node:
        case ast.JoinedStr(values=values):
            return "".join(_read_text(value, names, depth + 1) for value in values)
        case ast.FormattedValue(value=value):
            return _read_text(value, names, depth + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _read_text(left, names, depth + 1) + _read_text(right, names, depth + 1)
        case (
            ast.BinOp(left=template, op=ast.Mod())
            | ast.Call(func=ast.Attribute(value=template, attr="format"))
        ):
            return FIELD.sub(_fill_field, _read_text(template, names, depth + 1))
        case ast.Call(
            func=ast.Attribute(value=separator, attr="join"),
            args=[ast.List(elts=parts) | ast.Tuple(elts=parts)],
        ):
            texts = [_read_text(part, names, depth + 1) for part in parts]
            return _read_text(separator, names, depth + 1).join(texts)
        case ast.Call(func=ast.Attribute(value=template, attr="replace"), args=[old, new, *_]):
            replaced = names.fold_text(old) or UNKNOWN
            return _read_text(template, names, depth + 1).replace(replaced, _read_text(new, names, depth + 1))
    return UNKNOWN


def _fill_field(field: re.Match[str]) -> str:
    return field[0][0] if field[0] in ("{{", "}}") else UNKNOWN
