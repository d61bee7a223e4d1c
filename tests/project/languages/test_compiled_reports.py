"""What is read of the reports of cargo, nextest, Surefire, CTest and GoogleTest, as these tools wrote them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from suture.project.languages import Report, RunnerOutput, add_report_arguments, find_runner
from suture.project.languages.compiled.cpp import read_ctest_reports, read_google_reports
from suture.project.languages.compiled.java import read_surefire_reports
from suture.project.languages.compiled.junit_xml import read_junit_cases
from suture.project.languages.compiled.rust import find_rust_tests, read_cargo_output, read_nextest_report

CARGO_OUTPUT = b"""
running 3 tests
test tests::slow ... ignored
test tests::panics - should panic ... ok
test tests::sorted ... FAILED

failures:

---- tests::sorted stdout ----

thread 'tests::sorted' (104) panicked at src/lib.rs:18:9:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    tests::sorted

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.41s


running 1 test
test src/lib.rs - middle (line 5) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.19s

"""
CARGO_PROGRAMS = b"""   Compiling textstats v0.1.0 (/box)
    Finished `test` profile [unoptimized] target(s) in 2.32s
     Running unittests src/lib.rs (target/debug/deps/textstats-64b5ecc4250cedc8)
   Doc-tests textstats
"""
CARGO_ERROR = b"""error[E0308]: mismatched types
 --> src/lib.rs:9:5
  |
9 |     "a"
  |     ^^^ expected `i64`, found `&str`

error: could not compile `textstats` (lib) due to 1 previous error
"""
NEXTEST_REPORT = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="1" skipped="0" failures="1" errors="0">
    <testsuite name="textstats::it" tests="1" skipped="0" errors="0" failures="1">
        <testcase name="greatest_first" classname="textstats::it" time="0.414">
            <failure message="thread &apos;greatest_first&apos; (13444) panicked at tests/it.rs:2:95"
                type="test failure">thread &apos;greatest_first&apos; (13444) panicked at tests/it.rs:2:95:
assertion `left == right` failed
  left: 1
 right: 2
note: Some details are omitted</failure>
        </testcase>
    </testsuite>
</testsuites>
"""
SUREFIRE_REPORT = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="3.0.2" name="shop.DiscountTest" tests="3">
  <testcase name="later" classname="shop.DiscountTest" time="0.0">
    <skipped message="void shop.DiscountTest.later() is @Disabled"/>
  </testcase>
  <testcase name="full" classname="shop.DiscountTest$Inner" time="0.002">
    <failure message="expected: &lt;0&gt; but was: &lt;-900&gt;" type="org.opentest4j.AssertionFailedError"><![CDATA[\
org.opentest4j.AssertionFailedError: expected: <0> but was: <-900>
\tat org.junit.jupiter.api.AssertEquals.assertEquals(AssertEquals.java:166)
\tat shop.Discount.check(Discount.java:7)
\tat shop.DiscountTest$Inner.full(DiscountTest.java:42)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)
]]></failure>
  </testcase>
  <testcase name="same" classname="other.UnknownTest"/>
  <testcase name="same" classname="other.UnknownTest"/>
</testsuite>
"""
CTEST_REPORT = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="4" failures="1" disabled="1" skipped="0">
    <testcase name="Roman.Adds" classname="Roman.Adds" time="0.02" status="run">
        <system-out>[==========] Running 1 test from 1 test suite.
</system-out>
    </testcase>
    <testcase name="Roman.Subtracts" classname="Roman.Subtracts" time="0.02" status="fail">
        <failure message=""/>
        <system-out>Segmentation fault
</system-out>
    </testcase>
    <testcase name="smoke" classname="smoke" time="0.01" status="run"><system-out>XIV
</system-out></testcase>
    <testcase name="disabled_one" classname="disabled_one" time="0" status="disabled">
        <system-out>Disabled</system-out>
    </testcase>
</testsuite>
"""
GOOGLE_REPORT = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" disabled="0" errors="0" time="0" name="AllTests">
  <testsuite name="Roman" tests="2" failures="1" disabled="0" skipped="0" errors="0" time="0">
    <testcase name="Adds" file="/box/tests/roman_test.cpp" line="5" status="run" result="completed" classname="Roman" />
    <testcase name="Nines" file="/box/tests/roman_test.cpp" line="6" status="run" result="completed" classname="Roman">
      <failure message="/box/tests/roman_test.cpp:7&#x0A;Expected equality" type=""><![CDATA[/box/tests/roman_test.cpp:7
Expected equality of these values:
  roman(4)
    Which is: "VI"
  "IV"]]></failure>
    </testcase>
  </testsuite>
</testsuites>
"""
RUST_CODE = """
/// ```
/// assert_eq!(double(1), 2);
/// ```
pub fn double(n: i64) -> i64 {
    n * 3
}

#[cfg(test)]
mod tests {
    #[test]
    fn doubles() {
        assert_eq!(super::double(1), 2, "}");
    }
}
"""


def make_output(*paths: str, stdout: bytes = b"", stderr: bytes = b"", **reports: bytes) -> RunnerOutput:
    return RunnerOutput(
        stdout=stdout,
        stderr=stderr,
        events=(),
        files=dict.fromkeys(paths, b""),
        root="/box",
        reports={f"_suture/reports/{name}.xml": content for name, content in reports.items()},
    )


def test_cargo_reports_tests_by_their_files() -> None:
    report = read_cargo_output(make_output("src/lib.rs", stdout=CARGO_OUTPUT, stderr=CARGO_PROGRAMS))
    assert [(test.id, test.status) for test in report.tests] == [
        ("build", "passed"),
        ("src/lib.rs::tests::slow", "skipped"),
        ("src/lib.rs::tests::panics - should panic", "passed"),
        ("src/lib.rs::tests::sorted", "failed"),
        ("src/lib.rs::middle", "passed"),
    ]
    failure = report.tests[3]
    assert (failure.file, failure.line) == ("src/lib.rs", 18)
    assert failure.message == "assertion `left == right` failed left: 1 right: 2"
    assert report.has_finished


def test_tests_of_cargo_that_were_cut_off_have_not_finished() -> None:
    stdout = CARGO_OUTPUT.partition(b"test tests::sorted")[0]
    report = read_cargo_output(make_output("src/lib.rs", stdout=stdout, stderr=CARGO_PROGRAMS))
    assert len(report.tests) == 3
    assert not report.has_finished


def test_a_compiler_error_is_a_failed_build() -> None:
    (build,) = read_cargo_output(make_output("src/lib.rs", stderr=CARGO_ERROR)).tests
    assert (build.id, build.status, build.message) == ("build", "failed", "mismatched types")
    assert (build.file, build.line) == ("src/lib.rs", 9)


def test_equal_tests_of_two_packages_are_two_tests() -> None:
    program = b"running 1 test\ntest it_works ... %s\n\ntest result: %s.\n"
    announced = b"     Running unittests src/lib.rs (target/debug/deps/%s-64b5ecc4250cedc8)\n"
    stdout = program % (b"FAILED", b"FAILED") + program % (b"ok", b"ok")
    stderr = announced % b"shop" + announced % b"core"
    report = read_cargo_output(make_output("src/lib.rs", "core/src/lib.rs", stdout=stdout, stderr=stderr))
    assert [(test.id, test.status) for test in report.tests[1:]] == [
        ("shop/src/lib.rs::it_works", "failed"),
        ("core/src/lib.rs::it_works", "passed"),
    ]


@pytest.mark.parametrize("other", ["tests/other_test.cpp", "tests/roman_test.cpp"])
@pytest.mark.parametrize("read", [read_google_reports, read_ctest_reports])
def test_equal_tests_of_two_programs_are_two_tests(
    read: Callable[[RunnerOutput], Report], other: str
) -> None:
    passing = GOOGLE_REPORT.replace(b"roman_test.cpp", other.rpartition("/")[2].encode())
    passing = re.sub(rb"<failure.*</failure>", b"", passing, flags=re.DOTALL)
    report = read(make_output("tests/roman_test.cpp", other, a=GOOGLE_REPORT, b=passing))
    statuses = [test.status for test in report.tests if "Roman.Nines" in test.id]
    assert statuses == ["failed", "passed"]
    assert len({test.id for test in report.tests}) == len(report.tests)


LONG = "1" * 5000


@pytest.mark.parametrize(
    ("read", "printed"),
    [
        (read_cargo_output, f"running {LONG} tests\n"),
        (read_cargo_output, f"error: mismatched types\n --> src/lib.rs:{LONG}:5\n"),
        (read_ctest_reports, f"src/lib.rs:{LONG}:5: error: no\n"),
        (read_surefire_reports, f"/box/src/lib.java:{LONG}: error: no\n"),
    ],
)
def test_a_printed_number_that_is_too_long_is_no_number(
    read: Callable[[RunnerOutput], Report], printed: str
) -> None:
    report = read(make_output("src/lib.rs", "src/lib.java", stdout=printed.encode()))
    assert (report.tests, report.has_finished) == ((), False)


def test_a_reported_line_that_is_too_long_is_no_line() -> None:
    stdout = CARGO_OUTPUT.replace(b"lib.rs:18", f"lib.rs:{LONG}".encode())
    cargo = read_cargo_output(make_output("src/lib.rs", stdout=stdout, stderr=CARGO_PROGRAMS))
    google = GOOGLE_REPORT.replace(b"cpp:7", f"cpp:{LONG}".encode()).replace(b'="6"', f'="{LONG}"'.encode())
    java = SUREFIRE_REPORT.replace(b"java:7", f"java:{LONG}".encode())
    reports = (
        cargo,
        read_google_reports(make_output("tests/roman_test.cpp", a=google)),
        read_surefire_reports(make_output("src/main/java/shop/Discount.java", a=java)),
    )
    assert [test.line for report in reports for test in report.tests if test.status == "failed"] == [None] * 3


def test_nextest_names_the_test_program_and_the_panic() -> None:
    _, test = read_nextest_report(make_output("tests/it.rs", nextest=NEXTEST_REPORT)).tests
    assert (test.id, test.status, test.file, test.line) == (
        "textstats::it::greatest_first", "failed", "tests/it.rs", 2,
    )  # fmt: skip


def test_surefire_reports_tests_by_their_classes() -> None:
    files = ("src/test/java/shop/DiscountTest.java", "src/main/java/shop/Discount.java")
    report = read_surefire_reports(make_output(*files, surefire=SUREFIRE_REPORT))
    _, skipped, failed, *others = report.tests
    assert (skipped.id, skipped.status) == (f"{files[0]}::later", "skipped")
    assert (failed.id, failed.expected, failed.actual) == (f"{files[0]}::Inner > full", "0", "-900")
    assert (failed.file, failed.line) == (files[1], 7)
    assert failed.frames == ((files[0], 42, "full"), (files[1], 7, "check"))
    assert [test.id for test in others] == ["other.UnknownTest::same", "other.UnknownTest::same #2"]


def test_ctest_decides_about_tests_of_googletest_that_crash() -> None:
    reports = {"ctest": CTEST_REPORT, "roman_tests": GOOGLE_REPORT}
    tests = {
        test.id: test for test in read_ctest_reports(make_output("tests/roman_test.cpp", **reports)).tests
    }
    assert {name: test.status for name, test in tests.items()} == {
        "build": "passed",
        "ctest::Roman.Adds": "passed",
        "ctest::Roman.Subtracts": "failed",
        "ctest::smoke": "passed",
        "ctest::disabled_one": "skipped",
        "tests/roman_test.cpp::Roman.Nines": "failed",
    }
    assert tests["ctest::Roman.Subtracts"].message == "Segmentation fault"
    assert not tests["ctest::Roman.Adds"].has_exit_status_only
    assert tests["ctest::smoke"].has_exit_status_only
    nines = tests["tests/roman_test.cpp::Roman.Nines"]
    assert (nines.file, nines.line) == ("tests/roman_test.cpp", 7)
    assert nines.message == 'Expected equality of these values: roman(4) Which is: "VI" "IV"'


@pytest.mark.parametrize(
    "report",
    [
        b'<!DOCTYPE a [<!ENTITY x "passed">]><testsuite><testcase name="&x;"/></testsuite>',
        b'<testsuite><testcase name="a"/>',
        b'<?xml version="1.0" encoding="nonsense"?><testsuite><testcase name="a"/></testsuite>',
        b"\xff\xfe\x00",
        b"",
    ],
)
def test_a_broken_report_or_one_with_entities_has_no_tests(report: bytes) -> None:
    assert list(read_junit_cases({"TEST-a.xml": report})) == []


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        ("n * 3", "n * 2", True),
        ("pub fn", "fn half() {}\npub fn", True),
        ('2, "}"', '3, "}"', False),
        ("/// assert_eq!(double(1), 2)", "/// assert_eq!(double(1), 3)", False),
        ("n * 3", "if cfg!(test) { 2 } else { n * 3 }", False),
        ("pub fn", "#[cfg(test)]\nfn triple() {}\npub fn", False),
        ("    #[test]\n", "", False),
        ("pub fn", '#[cfg(any(a = r"\\", test))]\nfn triple() {}\npub fn', False),
        ("pub fn", '#[cfg(any(a = "]", /* " */ test))]\nfn triple() {}\npub fn', False),
        ("pub fn", "#[rstest]\nfn triple() {}\npub fn", False),
        ("pub fn", "#[test_case(1)]\nfn triple() {}\npub fn", False),
        ("pub fn", '#[serde(rename = "latest")]\nfn test() {}\npub fn', True),
        ("pub fn", '#[doc = "a test"]\nfn triple() {}\npub fn', True),
        ("pub fn", "#[derive(contest)]\nfn triple() {}\npub fn", True),
    ],
)
def test_inline_tests_of_rust_are_found(old: str, new: str, keeps: bool) -> None:
    assert old in RUST_CODE
    assert (find_rust_tests(RUST_CODE.replace(old, new)) == find_rust_tests(RUST_CODE)) == keeps


@pytest.mark.parametrize(
    ("language", "command", "name"),
    [
        ("rust", "cargo test --workspace", "cargo test"),
        ("rust", "cargo test -- --nocapture", None),
        ("rust", "cargo nextest run", "nextest"),
        ("java", "mvn -q test", "Maven"),
        ("java", "mvn verify -DskipTests", None),
        ("java", "gradle check", "Gradle"),
        ("cpp", "ctest --test-dir build", "CTest"),
        ("cpp", "ctest -N", None),
        ("cpp", "make check", "GoogleTest"),
    ],
)
def test_the_runner_of_a_compiled_language_follows_from_the_command(
    language: str, command: str, name: str | None
) -> None:
    runner = find_runner(command.split(), {}, language)
    assert (runner.name if runner else None) == name


def test_arguments_reach_the_last_command_of_a_shell_line_before_its_separator() -> None:
    line = ("sh", "-c", "cd a && cargo test -- one")
    assert add_report_arguments(line, ("--x",), before_separator=True)[2] == "cd a && cargo test --x -- one"
    assert add_report_arguments(("sh", "-c", "a && ctest"), ("--y", "b c"))[2] == "a && ctest --y 'b c'"
    cargo = ("cargo", "test", "--x", "--", "one")
    assert add_report_arguments(cargo, ("--x",), before_separator=True) == cargo
