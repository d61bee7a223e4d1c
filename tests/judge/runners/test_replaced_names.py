"""Replacements by honest tests are told apart from changes by the code, and unwatched files are found."""

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
        ("test.failing('a', () => {});", "the expected failure of a"),
        ("test('a', { fails: true }, () => {});", "the expected failure of a"),
        ("jest.retryTimes(2);", "the retries of tests"),
        ("test('a', { retry: 2 }, () => {});", "the retries of a"),
        ("const odd = { asymmetricMatch: (n) => n % 2 };", "how a value is compared"),
    ],
)
def test_replacements_by_a_test_are_recognised(text: str, name: str) -> None:
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
        ("test('a', () => {}); expect(a).fails;", "the retries of a"),
        ("test('a', () => {});", "the expected failure of a"),
        ("expect(a).toEqual(expect.any(Number));", "how a value is compared"),
    ],
)
def test_a_use_is_no_replacement(text: str, name: str) -> None:
    assert not is_replaced_in(text, name)


def test_files_that_should_have_been_watched_are_found() -> None:
    base_report = make_report("a", "b", watched=("a",))
    assert find_unwatched_files(base_report, make_report("a", "b", watched=("a",))) == {"b"}
    # The base run decides: `a` was watched there.
    assert find_unwatched_files(base_report, make_report("a", "b")) == {"b"}
    assert find_unwatched_files(make_report("a"), make_report("a", "c")) == {"a", "c"}
    # No test file could be loaded in the base run.
    assert find_unwatched_files(make_report(), make_report("a", watched=("a",))) == set()
    assert find_unwatched_files(make_report(), make_report("a")) == {"a"}


def make_report(*files: str, watched: tuple[str, ...] = ()) -> Report:
    tests = tuple(ReportedTest(id=f"{file}::adds", status="passed") for file in files)
    return Report(tests=tests, changed_state={file: frozenset() for file in watched})
