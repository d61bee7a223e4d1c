"""The kinds of values that variables hold while the tests run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from judge.trials.test_target_tests import make_report
from prepared_suites import prepare_python_suite
from suture.judge.trials.baseline import run_baseline
from suture.judge.trials.process_reports import CollectionReport
from suture.judge.trials.spectrum import TraceData, build_spectrum
from suture.sandbox import BubblewrapSandbox

MODULE = """\
import functools


def total(lines, unit=None):
    result = 0
    is_first = True
    for name, price, count in lines:
        result += price
    return result


@functools.lru_cache
def label(value):
    text = f"{value}"
    return text
"""
TESTS = """\
from shop import label, total


def test_total():
    assert total([("tea", 2.5, 2)]) == 5


def test_labels():
    assert label(1) == label("1") == "1"
    assert total(()) == 0
"""


async def test_the_kinds_of_variables_are_recorded_where_they_are_always_the_same(
    sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(MODULE)
    (tmp_path / "test_shop.py").write_text(TESTS)
    _, command = await prepare_python_suite(tmp_path, sandbox)

    spectrum = await run_baseline(command, ["shop.py"], ["test_shop.py::test_total"], 20.0)

    assert spectrum.kinds["shop.py"] == {
        4: {"lines": "sequence", "name": "text", "price": "number", "count": "number", "result": "number"},
        12: {"text": "text"},
    }


async def test_the_names_of_a_class_body_are_left_alone(sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    module = (
        "class Names(dict):\n    def items(self):\n        raise RuntimeError('not for a tracer')\n\n\n"
        "class Meta(type):\n    @classmethod\n    def __prepare__(cls, name, bases):\n        return Names()\n\n\n"
        "def build(size):\n    class Part(metaclass=Meta):\n        width = size\n\n    return Part.width + 1\n"
    )
    (tmp_path / "parts.py").write_text(module)
    tests = "from parts import build\n\n\ndef test_one():\n    assert build(2) == 2\n"
    (tmp_path / "test_parts.py").write_text(tests)
    _, command = await prepare_python_suite(tmp_path, sandbox)

    spectrum = await run_baseline(command, ["parts.py"], ["test_parts.py::test_one"], 20.0)

    assert spectrum.failing[0].error.startswith("AssertionError")
    assert spectrum.kinds["parts.py"][12] == {"size": "number"}


def test_a_kind_that_a_report_invents_is_left_out() -> None:
    report = replace(
        make_report("a"), kinds={"m.py": {"3": {"a": "text", "b": "number;"}, "x": {"c": "set"}}}
    )
    collection = CollectionReport(
        collected=(report.test,), errors=0, seconds=0.1, wall_s=0.1, lines={}, frames=(), calls=()
    )
    data = TraceData(collection=collection, traced={report.test: report})
    spectrum = build_spectrum(collection, data, {"m.py": ""}, frozenset((report.test,)), None)
    assert spectrum.kinds == {"m.py": {3: {"a": "text"}}}
