"""What the source alone shows: lines, docstrings, and by radon its complexity and maintainability."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from suture.judge.quality.evaluator import QualityResult, QualitySubject
from suture.project.python_source.parsing import parsed

NO_PYTHON = "no file of it is Python"
IGNORED = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)


class Lines:
    """Lines of code, of comments, and all of them."""

    name = "lines"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Count the files that can be parsed."""
        texts = [text for text in subject.files.values() if parsed(text) is not None]
        code = comments = 0
        try:
            for text in texts:
                kinds = list(_kinds(text))
                code += len({line for line, kind in kinds if kind not in IGNORED})
                comments += len({line for line, kind in kinds if kind == tokenize.COMMENT})
        except (tokenize.TokenError, SyntaxError) as fault:
            return QualityResult(absent=f"its lines cannot be told apart: {fault}")
        total = sum(len(text.splitlines()) for text in texts)
        values = {"lines_total": total, "lines_of_code": code, "lines_with_comments": comments}
        return QualityResult(values=values) if texts else QualityResult(absent=NO_PYTHON)


def _kinds(text: str) -> Iterator[tuple[int, int]]:
    """Line and kind of each token, once for each line that it spans."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        for line in range(token.start[0], token.end[0] + 1):
            yield line, token.type


class Docstrings:
    """The share of public functions, methods and classes that have a docstring."""

    name = "docstrings"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Look at every definition whose name has no leading underscore; nested functions do not count."""
        trees = {path: tree for path, text in subject.files.items() if (tree := parsed(text)) is not None}
        if not trees:
            return QualityResult(absent=NO_PYTHON)
        public = [(path, node) for path, tree in trees.items() for node in _definitions(tree)]
        bare = [(path, node) for path, node in public if not ast.get_docstring(node)]
        if not public:
            return QualityResult(absent="it defines nothing public")
        return QualityResult(
            values={"docstring_coverage": 1 - len(bare) / len(public)},
            findings=tuple(f"{path}:{node.lineno}: {node.name} has no docstring" for path, node in bare),
        )


def _definitions(
    scope: ast.Module | ast.ClassDef,
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_"):
                yield node
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node)


NOT_INSTALLED = "radon is not installed; pip install 'suture[quality]'"
MUCH = 10
"""McCabe's own limit (1976), and radon's border between B and C."""


class Complexity:
    """Paths through each function, and how maintainable each file is on radon's scale from 0 to 100."""

    name = "complexity"

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Measure the files that can be parsed. Radon reads them and runs nothing."""
        try:
            from radon.complexity import cc_visit
            from radon.metrics import mi_visit
        except ImportError:
            return QualityResult(absent=NOT_INSTALLED)
        texts = {path: text for path, text in subject.files.items() if parsed(text) is not None}
        if not texts:
            return QualityResult(absent=NO_PYTHON)
        try:
            return _measured(texts, cc_visit, mi_visit)
        except RecursionError:
            return QualityResult(absent="it nests too deeply for radon")


def _measured(
    texts: Mapping[str, str], cc_visit: Callable[[str], Any], mi_visit: Callable[..., float]
) -> QualityResult:
    blocks: list[tuple[str, Any]] = [
        (path, block) for path, text in texts.items() for block in cc_visit(text)
    ]
    paths = [block.complexity for _, block in blocks] or [1]
    return QualityResult(
        values={
            "complexity_max": float(max(paths)),
            "complexity_mean": sum(paths) / len(paths),
            "maintainability_min": min(float(mi_visit(text, multi=True)) for text in texts.values()),
        },
        findings=tuple(
            f"{path}:{block.lineno}: {block.name} has {block.complexity} paths"
            for path, block in blocks
            if block.complexity > MUCH
        ),
    )
