"""Test programs in Go confirm their own results."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

import pytest

from requirements import Require
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.project.languages.reporters.go_attestation import GO_ATTESTATION, build_overlay, read_attestations
from suture.sandbox import Sandbox, discover_programs

pytestmark = pytest.mark.timeout(240)
RIGHT = "package words\n\nfunc Twice(s string) string { return s + s }\n"
PROJECT = {
    "go.mod": "module example.org/words\n\ngo 1.18\n",
    "words.go": RIGHT.replace("s + s", "s"),
    "words_test.go": """package words

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("AS_A_HELPER") != "" {
		os.Exit(m.Run())
	}
	os.Exit(m.Run())
}

func TestTwice(t *testing.T) {
	for _, word := range []string{"a b", "c/d"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			if Twice(word) != word+word {
				t.Error(word)
			}
		})
	}
}

func TestSkipped(t *testing.T) { t.Skip("not here") }

func TestHelper(t *testing.T) {
	helper := exec.Command(os.Args[0], "-test.run=TestSkipped")
	helper.Env = append(os.Environ(), "AS_A_HELPER=1")
	if err := helper.Run(); err != nil {
		t.Fatal(err)
	}
}

func FuzzTwice(f *testing.F) {
	f.Add("seed")
	f.Fuzz(func(t *testing.T, s string) { _ = Twice(s) })
}

func ExampleTwice() {
	fmt.Println(Twice(""))
	// Output:
}
""",
    "inner/inner.go": "package inner\n\nfunc One() int { return 1 }\n",
    "inner/inner_test.go": (
        'package inner_test\n\nimport (\n\t"testing"\n\n\t"example.org/words/inner"\n)\n\n'
        "func TestOne(t *testing.T) {\n\tif inner.One() != 1 {\n\t\tt.Fail()\n\t}\n}\n"
    ),
}
PRINTING = """package words

import (
	"fmt"
	"syscall"
)

func init() {
	for _, name := range []string{"Twice", "Twice/a_b", "Twice/c/d", "Helper"} {
		fmt.Printf("=== RUN   Test%s\\n--- PASS: Test%s (0.00s)\\n", name, name)
	}
	fmt.Print("PASS\\n")
	syscall.Exit(0)
}

func Twice(s string) string { return "" }
"""


async def prepare_go_suite(
    project: Mapping[str, str], sandbox: Sandbox, command: tuple[str, ...] = ("go", "test", "./...")
) -> Suite:
    files = {path: text.encode() for path, text in project.items()}
    task = Task(statement="", kind="heal", files=files, test_command=command, language="go")
    programs = discover_programs(None, {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}, "go")
    return await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=120), programs)


def require_go(require: Require) -> str:
    go = shutil.which("go")
    require("go", go is not None, "it is not on PATH")
    return str(go)


async def test_every_kind_of_go_test_is_confirmed(sandbox: Sandbox, require: Require) -> None:
    require_go(require)
    suite = await prepare_go_suite(PROJECT, sandbox)
    verdict = await check_candidate(Candidate(files={"words.go": RIGHT}, origin="sample"), suite)
    assert verdict.all_passed, verdict
    assert verdict.evidence == "nonce"

    statuses = {outcome.check_id: outcome.status for outcome in verdict.outcomes}
    assert statuses == {
        ".::TestTwice/a_b": "passed",
        ".::TestTwice/c/d": "passed",
        ".::TestHelper": "passed",
        ".::FuzzTwice/seed#0": "passed",
        ".::ExampleTwice": "passed",
        ".::TestSkipped": "skipped",
        "inner::TestOne": "passed",
    }


async def test_code_that_did_not_build_before_must_confirm_its_tests(
    sandbox: Sandbox, require: Require
) -> None:
    require_go(require)
    broken = {path: text for path, text in PROJECT.items() if "inner" not in path}
    suite = await prepare_go_suite({**broken, "words.go": RIGHT.replace("s + s", "s +")}, sandbox)
    right = await check_candidate(Candidate(files={"words.go": RIGHT}, origin="sample"), suite)
    assert right.all_passed

    forged = await check_candidate(Candidate(files={"words.go": PRINTING}, origin="sample"), suite)
    assert not forged.all_passed
    assert {o.evidence for o in forged.outcomes} == {"nonce"}


@pytest.mark.heavy
async def test_a_test_binary_in_the_folder_of_another_package_takes_no_token(
    sandbox: Sandbox, require: Require
) -> None:
    require_go(require)
    helper = 'exec.Command(os.Args[0], "-test.run=TestSkipped")\n'
    tests = PROJECT["words_test.go"].replace(helper, f'{helper}\thelper.Dir = "inner"\n')
    assert tests != PROJECT["words_test.go"]

    one_by_one = ("go", "test", "-p=1", ".", "./inner")
    suite = await prepare_go_suite({**PROJECT, "words_test.go": tests}, sandbox, one_by_one)
    verdict = await check_candidate(Candidate(files={"words.go": RIGHT}, origin="sample"), suite)
    assert verdict.all_passed, verdict


@pytest.mark.heavy
async def test_a_command_with_its_own_overlay_is_judged_by_its_report(
    sandbox: Sandbox, require: Require
) -> None:
    require_go(require)
    command = ("go", "test", "-overlay=own.json", "./...")
    suite = await prepare_go_suite({**PROJECT, "own.json": "{}"}, sandbox, command)
    verdict = await check_candidate(Candidate(files={"words.go": RIGHT}, origin="sample"), suite)
    assert (verdict.all_passed, verdict.evidence) == (True, "report")


def test_a_token_is_valid_for_one_package() -> None:
    report = b"t1\ta\tpassed TestA\tskipped TestB\n-\tb\nt2\tb\tpassed TestC\nother\tc\tpassed TestD\n"
    assert read_attestations(report, {b"t1", b"t2"}) == {
        "a": {"TestA": "passed", "TestB": "skipped"},
        "b": {"TestC": "passed"},
    }
    assert read_attestations(report + b"t1\tb\tpassed TestE\n", {b"t1", b"t2"}) == {}


def test_a_failure_of_a_test_cannot_be_taken_back() -> None:
    report = b"t1\ta\tfailed TestA\tpassed TestA\nt1\ta\tpassed TestA\n"
    assert read_attestations(report, {b"t1"}) == {"a": {"TestA": "failed"}}


def test_only_known_library_sources_are_replaced(require: Require, tmp_path: object) -> None:
    assert {*build_overlay(require_go(require), "/there")} == {
        "overlay.json",
        "testing/testing.go",
        "testing/fuzz.go",
        "testing/example.go",
    }
    assert build_overlay(f"{tmp_path}/bin/go", "/there") == {}
    assert GO_ATTESTATION.tokens(["a/b_test.go", "c.go", "d_test.go"]).keys() == {"tokens/%a%", "tokens/%"}
