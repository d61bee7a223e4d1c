"""A test that may execute an answer of the candidate cannot be judged from another process."""

from __future__ import annotations

import ast

import pytest

from judge.conftest import Judge
from suture.judge.extraction.program_plans import find_execution_reason

EQUALS_ALL = "type('A', (), {'__eq__': lambda s, o: True, '__hash__': None})()"


@pytest.mark.parametrize(
    ("code", "test"),
    [
        (f'def translate(s): return "{EQUALS_ALL}"', "assert eval(translate('1 2 +')) == 3"),
        (
            "def generate(n):\n"
            "    return 'class double(int):\\n    def __eq__(s, o): return True\\n    __hash__ = None'",
            "names = {}\nexec(generate('double'), names)\nassert names['double'](4) == 8",
        ),
        (
            "import pickle\nclass E:\n    def __reduce__(self):\n"
            f'        return eval, ("{EQUALS_ALL}",)\ndef dump(x): return pickle.dumps(E())',
            "import pickle\nassert pickle.loads(dump([1])) == [1]",
        ),
    ],
    ids=["eval", "exec", "pickle"],
)
async def test_an_executed_answer_gives_no_split_evidence(judge: Judge, code: str, test: str) -> None:
    verdict = await judge(code, test)
    assert verdict.evidence == "nonce"
    assert [note.code for note in verdict.notes] == ["live_objects"]


@pytest.mark.parametrize(
    "test",
    [
        "assert list(map(eval, answers())) == [1]",
        "def value(text):\n    return eval(text)\nassert value(f(1)) == 1",
        "text = '1'\ntext = f(text)\nassert eval(text) == 1",
        "texts = ['1']\ntexts.append(f(1))\nfor text in texts:\n    assert eval(text) == 1",
        "texts = ['1']\ntexts[0] = f(1)\nassert [eval(text) for text in texts] == [1]",
        "import importlib\nimportlib.import_module(f(1))",
        "from marshal import loads\nassert loads(f(1)) == 1",
        "import runpy\nrunpy.run_path(f(1))",
        "from builtins import eval as compute\nassert compute(f(1)) == 1",
        "__builtins__['eval'](f(1))",
        "assert __import__(f(1))",
        "from types import FunctionType\nassert FunctionType(f(1), {})() == 1",
    ],
)
def test_every_way_to_execute_an_answer_is_found(test: str) -> None:
    assert find_execution_reason(ast.parse(test))


@pytest.mark.parametrize(
    "test",
    [
        "for text in ['1 + 2', '3 * 4']:\n    assert f(text) == eval(text)",
        "cases = [('1 + 2', 'sum'), ('3 * 4', 'product')]\n"
        "assert all(f(text) == eval(text) for text, name in cases)",
        "text = '1 + 2'\nassert f(text) == eval(text)",
        "assert f('1 + 2') == eval('1 + ' + '2')",
        "names = {}\nexec('x = 3', names)\nassert f(3) == names['x']",
        "import re\nassert re.compile(f('*.py')).match('a.py')",
        "import ast, json\nassert ast.literal_eval(f(1)) == json.loads(f(1)) == 1",
        "assert evaluate('1 + 2') == 3 and model.eval() == 1",
    ],
)
def test_a_test_may_execute_its_own_text(test: str) -> None:
    assert not find_execution_reason(ast.parse(test))
