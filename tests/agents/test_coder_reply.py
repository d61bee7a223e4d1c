"""The code of a module is extracted from untidy replies."""

from __future__ import annotations

import ast

import pytest

from suture.agents import WriteBrief, files_from_reply
from suture.agents.replies.coder_reply import is_truncated_reply
from suture.errors import MalformedReply
from suture.models import Reply
from suture.models.chat_model import FinishReason

STUB = '''from typing import List


def helper(n: int) -> int:
    """Double it."""
    return n * 2


def total(numbers: List[int]) -> int:
    """Add up.

    >>> total([1, 2])
    3
    """
'''


def extract_code(
    text: str, *, finish: FinishReason = "stop", statement: str = "Add up.", entry: str | None = "total"
) -> str:
    brief = WriteBrief(statement=statement, module="solution.py", entry_point=entry)
    files = files_from_reply(Reply(text=text, finish=finish), brief)
    assert list(files) == ["solution.py"]
    return files["solution.py"]


def run_code(code: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(ast.parse(code), "reply", "exec"), names)
    return names


GOOD = "def total(numbers):\n    return sum(numbers)\n"

UNTIDY = {
    "one block": f"```python\n{GOOD}```",
    "prose around it": f"Sure! Here it is:\n\n```python\n{GOOD}```\n\nThis adds the numbers up.",
    "no language": f"```\n{GOOD}```",
    "tildes": f"~~~py\n{GOOD}~~~",
    "closing fence missing": f"```python\n{GOOD}",
    "no fence": GOOD,
    "no fence, prose before and after": f"Here is the code:\n\n{GOOD}\nIt adds the numbers up.",
    "example of use in a second block": f"```python\n{GOOD}```\nUse it:\n```python\nprint(total([1]))\n```",
    "example of use in a first block": f"```python\n>>> total([1])\n1\n```\nCode:\n```python\n{GOOD}```",
    "shell block first": f"```bash\npip install numpy\n```\n```python\n{GOOD}```",
    "wrong demo asserts in the block": f"```python\n{GOOD}\nassert total([1]) == 7\nprint(total([2]))\n```",
    "indented fence": f"  ```python\n{GOOD}  ```",
    "inner fence in a docstring": (
        '````python\ndef total(numbers):\n    """Add.\n\n    ```\n    total([1])\n    ```\n    """\n'
        "    return sum(numbers)\n````"
    ),
    "split over two blocks": (
        "```python\nimport functools\n```\nand\n"
        "```python\ndef total(numbers):\n    return functools.reduce(lambda a, b: a + b, numbers, 0)\n```"
    ),
}


@pytest.mark.parametrize("text", UNTIDY.values(), ids=UNTIDY.keys())
def test_code_is_found_in_an_untidy_reply(text: str) -> None:
    total = run_code(extract_code(text))["total"]
    assert callable(total)
    assert total([1, 2, 3]) == 6


def test_a_bare_body_is_placed_under_the_signature() -> None:
    code = extract_code("```python\n    return sum(numbers)\n```", statement=STUB)
    assert code.startswith("from typing import List")
    total = run_code(code)["total"]
    assert callable(total)
    assert total([4]) == 4


def test_missing_definitions_of_the_stub_are_added() -> None:
    code = extract_code(
        "```python\ndef total(numbers: List[int]) -> int:\n    return helper(sum(numbers))\n```",
        statement=STUB,
    )
    total = run_code(code)["total"]

    assert callable(total)
    assert total([1, 2]) == 6


def test_a_truncated_reply_keeps_only_complete_statements() -> None:
    text = f"```python\n{GOOD}\n\ndef extra(x):\n    return x +"
    assert "extra" not in extract_code(text, finish="length")


def test_a_truncated_reply_without_the_complete_function_is_malformed() -> None:
    with pytest.raises(MalformedReply, match="cut short"):
        extract_code("```python\ndef total(numbers):\n    result = 0\n    for n in numb", finish="length")


def test_code_with_a_syntax_error_is_a_candidate() -> None:
    assert "retrun" in extract_code("```python\ndef total(numbers):\n    retrun sum(numbers)\n```")


@pytest.mark.parametrize(
    "text", ["", "I cannot do that.", "```python\n```", "```python\ndef other():\n    pass\n```"]
)
def test_a_reply_without_the_code_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply):
        extract_code(text)


def run_total(text: str, statement: str = STUB) -> object:
    total = run_code(extract_code(text, statement=statement))["total"]
    assert callable(total)
    return total([1, 2, 3])


WRONG = GOOD.replace("sum", "max")
MORE_UNTIDY = {
    "list item, three spaces": "1. Code:\n\n   ```python\n   def total(n):\n       return sum(n)\n   ```\n",
    "list item, four spaces": "* Code:\n\n    ```python\n    def total(n):\n        return sum(n)\n    ```\n",
    "on the list item's line": "1. ```python\n   def total(numbers):\n       return sum(numbers)\n   ```\n",
    "usage first": f"Use it:\n```python\nresult = total([1])\n```\n```python\n{GOOD}```",
    "json first": f'```json\n{{"a": 1}}\n```\n```python\n{GOOD}```',
    "its tests first": f"```python\nfrom solution import total\ntotal([1])\n```\n```python\n{GOOD}```",
    "wrong code first": f"The wrong code is:\n```python\n{WRONG}```\nFixed:\n```python\n{GOOD}```",
    "helper in a block before": (
        "```python\ndef plus(a, b):\n    return a + b\n```\n```python\ndef total(numbers):\n"
        "    result = 0\n    for n in numbers:\n        result = plus(result, n)\n    return result\n```"
    ),
    "inside if": "```python\nimport sys\nif sys.path:\n    def total(n):\n        return sum(n)\n```",
    "inside try": "```python\ntry:\n    from no import total\n"
    "except ImportError:\n    def total(n):\n        return sum(n)\n```",
    "transcript": "```python\n>>> def total(n):\n...     return sum(n)\n...\n>>> total([1])\n1\n```",
    "body without indentation": "```python\nresult = sum(numbers)\nreturn result\n```",
    "fence inside a string": f'```python\nHELP = """\n```\ntotal([1])\n```\n"""\n{GOOD}```',
    "__future__ import": f"```python\nfrom __future__ import annotations\n{GOOD}```",
    "carriage returns": f"```python\n{GOOD}```\n".replace("\n", "\r\n"),
}


@pytest.mark.parametrize("text", MORE_UNTIDY.values(), ids=MORE_UNTIDY.keys())
def test_code_is_found_in_other_untidy_replies(text: str) -> None:
    assert run_total(text) == 6


@pytest.mark.parametrize("separator", ["\u2028", "\x0c", "\x1c", "\x85"])
def test_unusual_line_separators_in_a_string_are_kept(separator: str) -> None:
    code = f"SEP = '{separator}'\n{GOOD}"
    assert extract_code(f"```python\n{code}```") == code


def test_a_class_with_the_method_is_a_candidate() -> None:
    code = "class Solution:\n    def total(self, numbers):\n        return sum(numbers)\n"
    assert extract_code(f"```python\n{code}```") == code


def test_another_function_is_not_a_body() -> None:
    with pytest.raises(MalformedReply, match="does not define 'total'"):
        extract_code("```python\ndef plus(numbers):\n    return sum(numbers)\n```", statement=STUB)


def test_a_name_from_prose_only_ranks_blocks() -> None:
    statement = "Write a function with a total of two arguments."
    code = "def plus(a, b):\n    return a + b\n"
    assert extract_code(f"```python\n{code}```", statement=statement) == code
    two_blocks = f"```python\n{code}```\n```python\n{GOOD}```"
    assert extract_code(two_blocks, statement=statement).endswith(GOOD)


def test_two_statements_on_one_line_are_kept() -> None:
    code = "x = 1; print(x)\ndef total(n):\n    return sum(n) + x - 1\n"
    assert extract_code(f"```python\n{code}```") == code


@pytest.mark.parametrize("deep", ["-" * 60000 + "1", "+".join(["1"] * 20000), "(" * 300 + "1" + ")" * 300])
def test_too_deeply_nested_code_is_accepted(deep: str) -> None:
    text = f"```python\nx = {deep}\n{GOOD}```"
    assert "def total" in extract_code(text)


EDIT = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n"


@pytest.mark.parametrize(
    ("text", "is_truncated"),
    [
        ("```python\ndef f():\n    return 1\n", True),
        ("```python\ndef f():\n    return 1\n```\nIt returns", False),
        ("```python\nx = 1\n```\nand\n```python\ny =", True),
        ("I will write a function that", True),
        ("def f():\n    return 1\n", True),
        (EDIT, True),
        (f"{EDIT}>>>>>>> REPLACE\nThis sets", False),
        (f"```python\n{EDIT}>>>>>>> REPLACE\n", False),
        (f"{EDIT}>>>>>>> REPLACE\n{EDIT}", True),
    ],
)
def test_a_reply_is_truncated_if_its_code_is_incomplete(text: str, is_truncated: bool) -> None:
    assert is_truncated_reply(Reply(text=text, finish="length")) == is_truncated
    assert not is_truncated_reply(Reply(text=text))
