"""Repaired files are extracted from untidy replies."""

from __future__ import annotations

import ast

import pytest

from suture.agents import RepairBrief, files_from_reply
from suture.errors import MalformedReply
from suture.models import Reply

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


def repair(text: str, files: dict[str, str]) -> dict[str, str]:
    return files_from_reply(Reply(text=text), RepairBrief(statement="", files=files))


def test_a_whole_file_replaces_the_file() -> None:
    new = FILE.replace("n - 1", "n + 1")
    assert repair(f"```python\n{new}```", {"shop.py": FILE}) == {"shop.py": new}


def test_a_function_replaces_only_its_namesake() -> None:
    files = repair("```python\ndef price(n):\n    return n + 1\n```", {"shop.py": FILE})
    assert files == {"shop.py": FILE.replace("n - 1", "n + 1")}


def test_a_method_replaces_the_only_method_of_that_name() -> None:
    files = repair("```python\ndef total(self):\n    return math.ceil(self.n)\n```", {"shop.py": FILE})
    assert files == {"shop.py": FILE.replace("floor", "ceil")}


def test_a_new_import_is_added_with_a_function() -> None:
    files = repair("```python\nimport os\n\ndef price(n):\n    return os.cpu_count()\n```", {"shop.py": FILE})
    assert '"""A shop."""\nimport os\n' in files["shop.py"]
    ast.parse(files["shop.py"])


def test_blocks_are_applied_to_the_files_they_name() -> None:
    other = "def tax(n):\n    return 0\n"
    shop, tax = FILE.replace("n - 1", "n"), other.replace("0", "n")
    reply = f"### shop.py\n```python\n{shop}```\n**lib/tax.py**\n```python\n{tax}```"
    files = repair(reply, {"shop.py": FILE, "lib/tax.py": other})
    assert set(files) == {"shop.py", "lib/tax.py"}


def test_an_unnamed_block_is_applied_to_the_file_with_its_definition() -> None:
    other = "def tax(n):\n    return 0\n"
    files = repair("```python\ndef tax(n):\n    return n\n```", {"shop.py": FILE, "tax.py": other})
    assert files == {"tax.py": "def tax(n):\n    return n\n"}


def test_a_broken_file_is_replaced_as_a_whole() -> None:
    files = repair(f"```python\n{FILE}```", {"shop.py": "def price(:\n"})
    assert files == {"shop.py": FILE}


def test_an_unchanged_file_is_malformed() -> None:
    with pytest.raises(MalformedReply, match="changes none"):
        repair(f"```python\n{FILE}```", {"shop.py": FILE})


FIXED = FILE.replace("n - 1", "n + 1")


@pytest.mark.parametrize(
    "other_block",
    [
        "Run it:\n```bash\npytest -q\n```\n",
        "It prints:\n```text\n2\n```\n",
        'Input:\n```json\n{"price": 1}\n```\n',
        "Use it:\n```python\nfrom shop import price\nresult = price(1)\nprint(result)\n```\n",
        "### test_shop.py\n```python\nfrom shop import price\n\ndef test_it():\n    assert price(1)\n```\n",
        "It was:\n```python\ndef price(n):\n    return n - 1\n```\n",
        "The line:\n```python\n    return n + 1\n```\n",
        "Then:\n```python\npip install x\n```\n",
        "```diff\n-    return n - 1\n+    return n + 1\n```\n",
    ],
)
def test_other_blocks_are_ignored(other_block: str) -> None:
    fix = f"### shop.py\n```python\n{FIXED}```\n"
    assert repair(f"{fix}\n{other_block}", {"shop.py": FILE}) == {"shop.py": FIXED}
    assert repair(f"{other_block}\n{fix}", {"shop.py": FILE}) == {"shop.py": FIXED}


def test_the_last_of_two_changes_wins() -> None:
    first = "```python\ndef price(n):\n    return n * 2\n```\nBetter:\n"
    assert repair(f"{first}```python\ndef price(n):\n    return n + 1\n```", {"shop.py": FILE}) == {
        "shop.py": FIXED
    }


@pytest.mark.parametrize(
    "text",
    [
        "```diff\n-    return n - 5\n+    return n + 1\n```",
        "### other.py\n```python\ndef price(n):\n    return 1\n```",
    ],
)
def test_a_diff_that_does_not_apply_or_another_file_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply):
        repair(text, {"shop.py": FILE})


def test_a_whole_file_under_a_wrong_name_is_accepted() -> None:
    files = repair(f"```python\n# solution.py\n{FIXED}```", {"shop.py": FILE})
    assert files == {"shop.py": f"# solution.py\n{FIXED}"}


def test_an_empty_file_can_be_filled() -> None:
    code = "def tax(n):\n    return n\n"
    assert repair(f"```python\n{code}```", {"tax.py": ""}) == {"tax.py": code}
    assert repair(f"```python\n{code}```", {"shop.py": FILE, "tax.py": ""}) == {"tax.py": code}


def test_a_repair_without_files_is_malformed() -> None:
    with pytest.raises(MalformedReply):
        repair("```python\ndef price(n):\n    return 1\n```", {})


def test_a_function_for_a_broken_file_keeps_its_constants() -> None:
    broken = '"""Page."""\n\nLIMIT = 3\n\n\ndef price(n)\n    return n - LIMIT\n'
    files = repair("```python\ndef price(n):\n    return n - LIMIT\n```", {"shop.py": broken})
    assert files == {"shop.py": broken.replace("(n)\n", "(n):\n")}


def test_a_diff_is_applied() -> None:
    files = repair("```diff\n-    return n - 1\n+    return n + 1\n```", {"shop.py": FILE})
    assert files == {"shop.py": FIXED}


def test_a_method_does_not_replace_a_function_of_the_same_name() -> None:
    original = "def total(n):\n    return n\n\n\nclass Cart:\n    def total(self):\n        return 0\n"
    files = repair("```python\ndef total(self):\n    return 1\n```", {"shop.py": original})
    assert files == {"shop.py": original.replace("return 0", "return 1")}


@pytest.mark.parametrize("fix", ["", f"### shop.py\n```python\n{FIXED}```\n"])
def test_an_empty_package_file_is_created(fix: str) -> None:
    brief = RepairBrief(statement="", files={"shop.py": FILE}, project={"shop.py", "lib/tax.py"})
    reply = Reply(text=f"{fix}### lib/__init__.py\n```python\n```\n")

    assert files_from_reply(reply, brief)["lib/__init__.py"] == ""
