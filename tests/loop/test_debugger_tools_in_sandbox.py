"""The debugger's tools inside a real sandbox."""

from __future__ import annotations

from suture.agents.roles.debugger import ComparedAttempt, find_test_setup, make_debugger_tools
from suture.agents.tools.react_loop import ToolAction
from suture.core.settings import SandboxSettings
from suture.judge.tracing.variable_trace import TraceTarget
from suture.sandbox import BubblewrapSandbox

CODE = """\
def total(values):
    result = 0
    for value in values:
        result = value
    return result
"""
REPAIRED = CODE.replace("result = value\n", "result += value\n")
OTHER = CODE.replace("result = 0", "result = 1")


def make_tools(sandbox: BubblewrapSandbox, **options: object) -> dict[str, object]:
    target = TraceTarget(
        sandbox=sandbox,
        settings=SandboxSettings(),
        files={"solution.py": CODE.encode()},
        module="solution.py",
    )
    return {tool.name: tool for tool in make_debugger_tools(target, **options)}  # type: ignore[arg-type]


async def use_tool(tools: dict[str, object], tool: str, input_text: str = "", code: str = "") -> str:
    return str(await tools[tool].run(ToolAction(tool=tool, input=input_text, code=code)))  # type: ignore[attr-defined]


async def test_a_call_is_traced_and_compared_with_code_that_passes(sandbox: BubblewrapSandbox) -> None:
    tools = make_tools(sandbox, setup="numbers = [1, 2]", reference={"solution.py": REPAIRED.encode()})

    text = await use_tool(tools, "trace_call", "total(numbers)")

    assert "line 4: result = value   -> result = 1" in text
    assert "The result is 2" in text
    difference = "`result` in total is 2 at line 4 of solution.py, and 3 in the run that passes"
    assert text.endswith(f"Compared with code that passes: {difference}")
    assert "Compared" not in await use_tool(tools, "trace_call", "total([5])")


async def test_a_snippet_is_run(sandbox: BubblewrapSandbox) -> None:
    tools = make_tools(sandbox, setup="import math")

    assert await use_tool(tools, "run_snippet", "total([1, 2]) + math.floor(0.5)") == "The result is 2"
    assert (
        await use_tool(tools, "run_snippet", code="for n in (3, 4):\n    print(total([n]))")
        == "printed: 3\n4"
    )
    assert await use_tool(tools, "run_snippet", "x = 1") == "It printed nothing."
    assert "NameError" in await use_tool(tools, "run_snippet", "nothing")


async def test_invalid_inputs_get_an_explanation(sandbox: BubblewrapSandbox) -> None:
    tools = make_tools(sandbox)

    for name in ("trace_call", "run_snippet"):
        assert await use_tool(tools, name) == "There was no input."
        assert "may have 4000" in await use_tool(tools, name, "1 + " * 2000 + "1")
        assert "SyntaxError" in await use_tool(tools, name, "total(")

    assert "def total(values)" in await use_tool(tools, "inspect_function", "total([1])")
    assert "There is no function 'f'" in await use_tool(tools, "inspect_function", "f")


async def test_two_attempts_are_compared(sandbox: BubblewrapSandbox) -> None:
    assert "diff_iterations" not in make_tools(sandbox)
    attempts = [
        ComparedAttempt(label="sample 1", files={"solution.py": OTHER}, failed=frozenset({"a", "b"})),
        ComparedAttempt(label="repair 1", files={"solution.py": CODE}, failed=frozenset({"b", "c"})),
    ]
    tools = make_tools(sandbox, attempts=attempts)
    text = await use_tool(tools, "diff_iterations", "1 and 2")
    assert text == await use_tool(tools, "diff_iterations", "the last two")
    assert text.startswith("from attempt 1 (sample 1) to attempt 2 (repair 1):\n")
    assert "-    result = 1\n+    result = 0" in text
    assert text.endswith("now passes: a\nnow fails: c")
    assert await use_tool(tools, "diff_iterations", "1 7") == "There are the attempts 1 to 2."
    assert "the code is the same" in await use_tool(tools, "diff_iterations", "2 2")


def test_the_setup_of_a_test_contains_no_call_of_the_code() -> None:
    setup_lines = ["import math", "limit = 3", "def near(x):\n    return x"]
    test = "\n".join([*setup_lines, "found = total([1])", "total([2])", "assert near(limit)"])
    assert find_test_setup(test) == "\n".join(setup_lines)
    assert find_test_setup("assert total(") == ""
