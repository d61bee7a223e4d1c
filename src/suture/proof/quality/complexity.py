"""Cyclomatic complexity and the maintainability index, by radon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suture.proof.quality.counting import NO_PYTHON
from suture.proof.quality.evaluator import Measured, Subject
from suture.pysource.parsing import parsed

__all__ = ["Complexity"]

NOT_INSTALLED = "radon is not installed; pip install 'suture[quality]'"
MUCH = 10
"""McCabe's own limit (1976), and radon's border between B and C."""


class Complexity:
    """Paths through each function, and how maintainable each file is on radon's scale from 0 to 100."""

    name = "complexity"

    async def evaluate(self, subject: Subject) -> Measured:
        """Measure the files that can be parsed. Radon reads them and runs nothing."""
        try:
            from radon.complexity import cc_visit
            from radon.metrics import mi_visit
        except ImportError:
            return Measured(absent=NOT_INSTALLED)
        texts = {path: text for path, text in subject.files.items() if parsed(text) is not None}
        if not texts:
            return Measured(absent=NO_PYTHON)
        try:
            return _measured(texts, cc_visit, mi_visit)
        except RecursionError:
            return Measured(absent="it nests too deeply for radon")


def _measured(
    texts: Mapping[str, str], cc_visit: Callable[[str], Any], mi_visit: Callable[..., float]
) -> Measured:
    blocks: list[tuple[str, Any]] = [
        (path, block) for path, text in texts.items() for block in cc_visit(text)
    ]
    paths = [block.complexity for _, block in blocks] or [1]
    return Measured(
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
