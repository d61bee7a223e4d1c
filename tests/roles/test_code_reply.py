"""From untidy replies to files."""

from __future__ import annotations

import ast

import pytest

from suture.errors import MalformedReply
from suture.models import Reply
from suture.models.seam import Finish
from suture.roles import RepairBrief, WriteBrief, files_from_reply

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


def written(
    text: str, *, finish: Finish = "stop", statement: str = "Add up.", entry: str | None = "total"
) -> str:
    brief = WriteBrief(statement=statement, module="solution.py", entry_point=entry)
    files = files_from_reply(Reply(text=text, finish=finish), brief)
    assert list(files) == ["solution.py"]
    return files["solution.py"]


def run(code: str) -> dict[str, object]:
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
    total = run(written(text))["total"]
    assert callable(total)
    assert total([1, 2, 3]) == 6


def test_a_body_alone_goes_under_the_signature() -> None:
    code = written("```python\n    return sum(numbers)\n```", statement=STUB)
    assert code.startswith("from typing import List")
    total = run(code)["total"]
    assert callable(total)
    assert total([4]) == 4


def test_what_the_stub_gives_and_the_reply_leaves_out_is_put_in_front() -> None:
    code = written(
        "```python\ndef total(numbers: List[int]) -> int:\n    return helper(sum(numbers))\n```",
        statement=STUB,
    )
    total = run(code)["total"]
    assert callable(total)
    assert total([1, 2]) == 6


def test_a_reply_that_was_cut_keeps_only_whole_statements() -> None:
    text = f"```python\n{GOOD}\n\ndef extra(x):\n    return x +"
    assert "extra" not in written(text, finish="length")


def test_a_cut_reply_without_the_whole_function_is_malformed() -> None:
    with pytest.raises(MalformedReply, match="cut short"):
        written("```python\ndef total(numbers):\n    result = 0\n    for n in numb", finish="length")


def test_a_syntax_error_is_a_candidate_and_not_a_malformed_reply() -> None:
    assert "retrun" in written("```python\ndef total(numbers):\n    retrun sum(numbers)\n```")


@pytest.mark.parametrize(
    "text", ["", "I cannot do that.", "```python\n```", "```python\ndef other():\n    pass\n```"]
)
def test_a_reply_without_the_code_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply):
        written(text)


FILE = '''"""A shop."""

import math


def price(n):
    return n - 1


class Cart:
    def add(self, n):
        self.n = n

    def total(self):
        return math.floor(self.n)
'''


def mended(text: str, files: dict[str, str]) -> dict[str, str]:
    return files_from_reply(Reply(text=text), RepairBrief(statement="", files=files))


def test_a_whole_file_replaces_the_file() -> None:
    new = FILE.replace("n - 1", "n + 1")
    assert mended(f"```python\n{new}```", {"shop.py": FILE}) == {"shop.py": new}


def test_one_function_replaces_its_namesake_and_leaves_the_rest_alone() -> None:
    files = mended("```python\ndef price(n):\n    return n + 1\n```", {"shop.py": FILE})
    assert files == {"shop.py": FILE.replace("n - 1", "n + 1")}


def test_one_method_replaces_the_only_method_of_that_name() -> None:
    files = mended("```python\ndef total(self):\n    return math.ceil(self.n)\n```", {"shop.py": FILE})
    assert files == {"shop.py": FILE.replace("floor", "ceil")}


def test_a_new_import_comes_along_with_a_function() -> None:
    files = mended("```python\nimport os\n\ndef price(n):\n    return os.cpu_count()\n```", {"shop.py": FILE})
    assert '"""A shop."""\nimport os\n' in files["shop.py"]
    ast.parse(files["shop.py"])


def test_blocks_go_to_the_files_they_name() -> None:
    other = "def tax(n):\n    return 0\n"
    shop, tax = FILE.replace("n - 1", "n"), other.replace("0", "n")
    reply = f"### shop.py\n```python\n{shop}```\n**lib/tax.py**\n```python\n{tax}```"
    files = mended(reply, {"shop.py": FILE, "lib/tax.py": other})
    assert set(files) == {"shop.py", "lib/tax.py"}


def test_a_block_without_a_name_goes_to_the_file_that_defines_the_same() -> None:
    other = "def tax(n):\n    return 0\n"
    files = mended("```python\ndef tax(n):\n    return n\n```", {"shop.py": FILE, "tax.py": other})
    assert files == {"tax.py": "def tax(n):\n    return n\n"}


def test_a_broken_file_is_replaced_as_a_whole() -> None:
    files = mended(f"```python\n{FILE}```", {"shop.py": "def price(:\n"})
    assert files == {"shop.py": FILE}


def test_an_unchanged_file_is_no_repair() -> None:
    with pytest.raises(MalformedReply, match="changes none"):
        mended(f"```python\n{FILE}```", {"shop.py": FILE})
