"""Testers: their prompts, and the asserts of their replies that become checks."""

from __future__ import annotations

from dataclasses import fields

import pytest

from suture.agents import packaged_prompt
from suture.agents.replies.generated_checks import (
    DROP_TEXTS,
    UNTRIED_TRUST,
    DropReason,
    GeneratedChecks,
    checks_from_reply,
)
from suture.agents.roles.testers import (
    AdversarialBrief,
    SpecTestBrief,
    draft_adversarial_prompt,
    draft_spec_test_prompt,
)
from suture.agents.tuning import MAX_CHECKS
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.errors import MalformedReply
from suture.judge import check_candidate, prepare_suite
from suture.models import Reply
from suture.sandbox import BubblewrapSandbox

FENCE = "```"


def parse_checks(text: str, entry_point: str | None = "f", **more: str) -> GeneratedChecks:
    return checks_from_reply(Reply(text=text, **more), "spec", entry_point)  # type: ignore[arg-type]


def fence_code(code: str) -> str:
    return f"Here are the tests:\n\n{FENCE}python\n{code}\n{FENCE}\nThey cover everything."


def list_sources(generated: GeneratedChecks) -> list[str]:
    return [check.source.strip() for check in generated.checks]


def test_each_assert_becomes_an_untried_check() -> None:
    generated = parse_checks(fence_code("assert f(1) == 2\nassert f(2) == 3, 'two'\nassert f(1) == 2"))
    assert list_sources(generated) == ["assert f(1) == 2", "assert f(2) == 3, 'two'"]
    assert {check.provenance for check in generated.checks} == {"spec"}
    assert {check.trust for check in generated.checks} == {UNTRIED_TRUST}
    assert generated.dropped == {}


def test_a_check_contains_only_its_own_setup() -> None:
    code = (
        "import math\nimport os\nfrom solution import f\nprint('go')\nlimit = math.inf\n"
        "cart = [1]\ncart.append(2)\nos.getcwd()\nassert f(cart) == limit"
    )
    (source,) = list_sources(parse_checks(fence_code(code)))
    assert source == "import math\nlimit = math.inf\ncart = [1]\ncart.append(2)\nassert f(cart) == limit"


def test_definitions_of_the_tested_function_are_removed() -> None:
    code = (
        "def f(x):\n    return x\n\ndef test_f():\n    expected = 1\n    assert f(1) == expected\n\ntest_f()"
    )
    assert list_sources(parse_checks(fence_code(code))) == ["expected = 1\nassert f(1) == expected"]
    with pytest.raises(MalformedReply, match="no usable assert"):
        parse_checks(fence_code("def test_f():\n    def f(x):\n        return x\n    assert g(1) == 1"))


def test_statements_with_an_assert_become_checks() -> None:
    loop = "for n in range(3):\n    assert f(n) == n"
    refusal = "try:\n    f(None)\n    assert False\nexcept TypeError:\n    pass"
    assert list_sources(parse_checks(fence_code(f"{loop}\n{refusal}"))) == [loop, refusal]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("assert True", "entry_point_unused"),
        ("assert g(1) == 2", "entry_point_unused"),
        ("assert f(data) == 2", "unknown_names"),
        ("assert f(1) = 2", "not_python"),
        ("class TestF:\n    def test(self):\n        assert f(1) == 2", "test_class"),
        ("def test_f(value):\n    assert f(value) == 2", "has_parameters"),
        (f"assert f({'1 + ' * 900}1) == 900", "too_long"),
    ],
)
def test_unusable_tests_are_dropped_and_counted(code: str, reason: DropReason) -> None:
    generated = parse_checks(fence_code(f"{code}\nassert f(3) == 4"))
    assert list_sources(generated) == ["assert f(3) == 4"]
    assert generated.dropped == {reason: 1}
    with pytest.raises(MalformedReply, match=DROP_TEXTS[reason]):
        parse_checks(fence_code(code))


def test_a_truncated_reply_gives_its_complete_asserts() -> None:
    text = f"{FENCE}python\nassert f(1) == 2\nassert f(2) == 3\nassert f(3) =="
    assert list_sources(parse_checks(text, finish="length")) == ["assert f(1) == 2", "assert f(2) == 3"]


def test_asserts_without_a_fence_are_read_line_by_line() -> None:
    assert list_sources(parse_checks("Sure!\nassert f(1) == 2\nassert f(2) == 3\nHope that helps.")) == [
        "assert f(1) == 2",
        "assert f(2) == 3",
    ]


def test_the_number_of_checks_is_limited() -> None:
    generated = parse_checks(fence_code("\n".join(f"assert f({n}) == {n}" for n in range(100))))
    assert len(generated.checks) == MAX_CHECKS
    assert generated.dropped == {"too_many": 100 - MAX_CHECKS}


@pytest.mark.parametrize("text", ["", "No.", fence_code(""), fence_code("print(f(1))")])
def test_a_reply_without_asserts_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply, match="no usable assert"):
        parse_checks(text)


def test_any_call_is_tested_without_a_known_name() -> None:
    assert list_sources(parse_checks(fence_code("assert total([1]) == 1\nassert 1 == 1"), None)) == [
        "assert total([1]) == 1"
    ]


def test_the_spec_tester_does_not_see_code() -> None:
    """The two test suites are independent only if this tester does not see the code."""
    shared_fields = {"statement", "entry_point", "examples", "count"}

    assert {field.name for field in fields(SpecTestBrief)} == shared_fields
    prompt = packaged_prompt("spec_tester")
    assert prompt.templates["tests"].variables == {"task", "name", "count", "examples"}
    canary = "def f(x):\n    return x + 'canary-of-the-candidate'"
    statement, examples = "Add one to x.", "assert f(1) == 2"
    adversarial_brief = AdversarialBrief(
        statement=statement, files={"m.py": canary}, entry_point="f", examples=examples
    )
    shared = {name: getattr(adversarial_brief, name) for name in shared_fields}
    spec_draft = draft_spec_test_prompt(SpecTestBrief(**shared), prompt)
    spec_prompt = "".join(message.content for message in spec_draft.messages(spec_draft.full_counts()))
    assert "canary" not in spec_prompt
    assert all(text in spec_prompt for text in (statement, examples, "`f`"))
    adversarial_draft = draft_adversarial_prompt(adversarial_brief, packaged_prompt("adversarial_tester"))
    assert "canary" in "".join(
        message.content for message in adversarial_draft.messages(adversarial_draft.full_counts())
    )


async def test_generated_checks_judge_a_candidate(sandbox: BubblewrapSandbox) -> None:
    loop = "for n in random.Random(0).sample(range(99), 20):\n    assert f(n) == n + 1"
    generated = parse_checks(
        fence_code(f"from m import f\nassert f(1) == 2\nassert f(-5) == -4\nimport random\n{loop}")
    )
    task = Task(statement="", entry_point="f", checks=generated.checks)

    suite = await prepare_suite(task, sandbox, SandboxSettings())

    right = Candidate(files={"solution.py": "def f(x):\n    return x + 1\n"}, origin="sample")
    wrong = Candidate(files={"solution.py": "def f(x):\n    return abs(x) + 1\n"}, origin="sample")
    assert (await check_candidate(right, suite)).all_passed

    failed = (await check_candidate(wrong, suite)).failed
    assert failed == {"assert f(-5) == -4"}
