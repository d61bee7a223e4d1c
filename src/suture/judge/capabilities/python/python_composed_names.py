"""Find the names of special attributes that a Python file composes of texts, such as `f"__{kind}__"`.

Rules about names need the whole name. Of a composed one they see the constant parts, and these are enough to tell that
it is the name of an attribute that leads to other code, or decides about comparisons.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import UNKNOWN, ModuleNames

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
    text = names.compose_text(node)
    if UNKNOWN in text and any(
        UNKNOWN in part and pattern.fullmatch(part) for part in re.split(rf"[^\w{UNKNOWN}]+", text)
    ):
        key = text.replace(UNKNOWN, "...")
        yield Use(code="computes_names", name=ast.unparse(node), line=node.lineno, key=key)
