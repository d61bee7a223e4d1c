from pipeline.count import frequencies
from pipeline.report import longest


def test_longest():
    assert longest(["fig", " Pear ", "FIG"]) == [("p", "pear"), ("f", "fig")]


def test_blanks():
    assert longest(["fig", "  "]) == [("f", "fig")]


def test_frequencies():
    assert frequencies(["a", "A", "b"]) == {"a": 2, "b": 1}
