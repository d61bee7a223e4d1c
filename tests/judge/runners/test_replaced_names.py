"""Telling replacements by honest tests from changes by code under test, and finding unwatched files."""

from __future__ import annotations

import pytest

from suture.judge.runners.reporting_runner import find_unwatched_files, is_replaced_in
from suture.project.languages import Report, ReportedTest


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("jest.spyOn(JSON, 'parse').mockReturnValue(1);", "JSON.parse"),
        ('sinon.stub(String.prototype,\n  "trimEnd");', "String.prototype.trimEnd"),
        ("Object.defineProperty(global.Array, `isArray`, {})", "Array.isArray"),
        ("globalThis.Object.keys = () => [];", "Object.keys"),
        ("const was = Object.is;\nObject.is = () => true;", "Object.is"),
        ("vi.stubGlobal('Promise', Other);", "Promise"),
        ("global.expect = require('chai').expect;", "expect"),
        ("expect.addEqualityTesters([same]);", "expect's testers of equality"),
    ],
)
def test_replacements_in_a_tests_text(text: str, name: str) -> None:
    assert is_replaced_in(text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("expect(JSON.parse('1')).toBe(1);", "JSON.parse"),
        ("if (Object.is == other) {}", "Object.is"),
        ("jest.spyOn(api, 'parse');", "JSON.parse"),
        ("mine.Object.is = 1;", "Object.is"),
        ("const { expect } = require('chai'); let it = 1;", "expect"),
        ("const it = 1; it = 2;", "it"),
        ("expect(1).toBe(1);", "expect().toBe"),
        ("", "expect's testers of equality"),
    ],
)
def test_uses_are_no_replacements(text: str, name: str) -> None:
    assert not is_replaced_in(text, name)


def test_unwatched_files() -> None:
    both = _report("a", "b", watched=("a",))
    assert find_unwatched_files(both, _report("a", "b", watched=("a",))) == {"b"}
    assert find_unwatched_files(both, _report("a", "b")) == {"b"}  # `a` was watched before: it has to be now
    assert find_unwatched_files(_report("a"), _report("a", "c")) == {"a", "c"}
    assert (
        find_unwatched_files(_report(), _report("a", watched=("a",))) == set()
    )  # nothing could be loaded before
    assert find_unwatched_files(_report(), _report("a")) == {"a"}


def _report(*files: str, watched: tuple[str, ...] = ()) -> Report:
    tests = tuple(ReportedTest(id=f"{file}::adds", status="passed") for file in files)
    return Report(tests=tests, changed_state={file: frozenset() for file in watched})
