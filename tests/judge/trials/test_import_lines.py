"""The lines that run on import, of projects in which the search asks about few files."""

from __future__ import annotations

from suture.judge.trials.spectrum import ParsedImportLines

FUNCTION = "import os\n\n\ndef value():\n    return os.name\n"


class CountedTexts(dict[str, str]):
    """Texts that remember which of them were read."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__(texts)
        self.read: list[str] = []

    def __getitem__(self, path: str) -> str:
        self.read.append(path)
        return super().__getitem__(path)


def test_only_the_files_that_are_asked_for_are_parsed() -> None:
    texts = CountedTexts({f"part_{number}.py": FUNCTION for number in range(1000)})
    lines = ParsedImportLines(texts)
    assert lines["part_7.py"] == lines.get("part_7.py") == frozenset({1, 2, 3, 4, 6})
    assert set(texts.read) == {"part_7.py"}


def test_files_that_are_no_python_have_no_lines() -> None:
    lines = ParsedImportLines({"a.py": FUNCTION, "b.py": "def ("})
    assert lines.get("b.py") is None
    assert list(lines) == ["a.py"]
    assert len(lines) == 1
