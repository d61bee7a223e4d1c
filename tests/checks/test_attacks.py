"""Code that wants to pass without being right. Each of these passes a naive judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suture.checks import grade, prepare_suite
from suture.checks.names import plan_program
from suture.records import Check, Task
from suture.sandbox import Sandbox
from suture.settings import SandboxSettings

Judge = Callable[..., Any]

ALWAYS = """
class Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return lambda *a: self
    __hash__ = None
    def __lt__(self, other): return True
    def __sub__(self, other): return self
    __rsub__ = __sub__
    def __abs__(self): return self
    def __round__(self, n=0): return self
"""
ATTACKS = {
    "prints PASSED": "print('PASSED'); print('1 passed in 0.01s')\ndef f(x): return 0",
    "os._exit(0)": "import os\ndef f(x): os._exit(0)",
    "os._exit(0) at import": "import os\nos._exit(0)",
    "sys.exit(0)": "import sys\ndef f(x): sys.exit(0)",
    "raises SystemExit at import": "raise SystemExit(0)",
    "executes another program": "import os\ndef f(x): os.execv('/bin/true', ['true'])",
    "kills itself": "import os\ndef f(x): os.kill(os.getpid(), 9)",
    "always equal": f"{ALWAYS}\ndef f(x): return Always()",
    "always equal, in a list": f"{ALWAYS}\ndef f(x): return [Always()]",
    "a subclass of int": "class I(int):\n    def __eq__(self, o): return True\n    __hash__ = None\n"
    "def f(x): return I(0)",
    "the function is a class": f"{ALWAYS}\nclass f(Always):\n    def __init__(self, x): pass",
    "patched builtins": "import builtins, math\nbuiltins.abs = builtins.round = lambda *a: 0\n"
    "builtins.AssertionError = builtins.isinstance = lambda *a: True\nmath.fabs = abs\ndef f(x): return 0",
    "its own abs": "def abs(x): return 0\ndef round(x, n=0): return 8\ndef f(x): return 0",
    "an import under the function's name": "from unittest.mock import _ANY as f",
    "frames on every descriptor": "import os, json\ndef f(x):\n"
    "    for told in ({'outcome': {'passed': True}}, {'value': ['o', 0, 'x', True], 'nodes': []}):\n"
    "        body = json.dumps(told).encode()\n"
    "        for fd in range(64):\n"
    "            try: os.write(fd, len(body).to_bytes(4, 'big') + body)\n"
    "            except OSError: pass\n"
    "    return 0",
    "raises AssertionError": "def f(x): raise AssertionError",
    "never ends": "def f(x):\n    while True: pass",
    "a frame that is too long": "def f(x): return 'a' * (1 << 26)",
}
PROGRAMS = (
    "assert f(3) == 8",
    "assert abs(f(3) - 8) < 1e-6",
    "def check(c):\n    assert round(c(3), 1) == 8\ncheck(f)",
)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_wrong_program_does_not_pass(judge: Judge, attack: str) -> None:
    verdict = await judge(ATTACKS[attack], *PROGRAMS, check_wall_s=2)
    assert not verdict.passed
    assert {o.evidence for o in verdict.outcomes} == {"split"}


async def test_the_right_program_passes(judge: Judge) -> None:
    assert (await judge("def f(x): return 8", *PROGRAMS)).all_passed


@pytest.mark.parametrize(
    "code",
    [
        "import os\nclass Box:\n    def get(self): os._exit(0)",
        "import sys\nclass Box:\n    def get(self): sys.exit(0)",
        "class Box:\n    def get(self): print('PASSED'); return 0",
        "raise SystemExit",
    ],
)
async def test_in_nonce_mode_an_early_end_is_no_pass(judge: Judge, code: str) -> None:
    verdict = await judge(code, "assert Box().get() == 1")
    assert not verdict.passed


@pytest.mark.parametrize(
    "code",
    ["import sys\nclass Cart: total = sys.exit", "class Cart:\n    total = staticmethod(SystemExit)"],
)
@pytest.mark.parametrize(
    "test",
    [
        "assert Cart().total() == 5",
        "Cart().total()\nassert Cart().total() == 5",
        "assert Cart().total() == 5\nexit()",
    ],
)
async def test_an_exit_that_the_test_did_not_write_is_no_pass(judge: Judge, code: str, test: str) -> None:
    assert not (await judge(code, test)).passed


@pytest.mark.parametrize(
    "end", ["import sys\nsys.exit(0)", "raise SystemExit", "import unittest\nunittest.main()"]
)
async def test_a_test_may_end_itself(judge: Judge, end: str) -> None:
    code = "class Cart:\n    def total(self): return 5"
    assert (await judge(code, f"assert Cart().total() == 5\n{end}")).all_passed
    assert not (await judge(code, f"assert Cart().total() == 6\n{end}")).passed


async def test_the_judge_never_holds_the_candidates_code(judge: Judge) -> None:
    spy = (
        "os, look = __import__('o' + 's'), getattr(__import__('io'), 'op' + 'en')\n"
        "names = [os.path.join(d, n) for d, _, ns in os.walk('/box') for n in ns]\n"
        "text = ''.join(look(n, errors='replace').read() for n in names)\n"
    )
    verdict = await judge(
        "SECRET = 'xyzzy' + '42'\ndef f(): return 1", f"{spy}assert 'xyz' + 'zy' not in text and f() == 1"
    )
    assert verdict.all_passed, verdict.counterexamples
    assert verdict.evidence == "split"


async def test_the_candidate_never_sees_a_test(judge: Judge) -> None:
    code = (
        "import os, gc\n"
        "def f(x):\n"
        "    files = [os.path.join(d, n) for d, _, ns in os.walk('/box') for n in ns]\n"
        "    text = ''.join(open(n, errors='replace').read() for n in files)\n"
        "    held = [o for o in gc.get_objects() if isinstance(o, dict) and 'canary' in o]\n"
        "    return 'can' + 'ary_' in text or bool(held)\n"
    )
    verdict = await judge(code, "canary_ = 8\nassert f(1) == False")
    assert verdict.all_passed, verdict.counterexamples


async def test_no_oracle_enters_a_suite(sandbox: Sandbox, wall_settings: SandboxSettings) -> None:
    hidden = Check(id="hidden", provenance="oracle", source="assert f(1) == 2")
    with pytest.raises(ValueError, match="oracle"):
        await prepare_suite(Task(statement="", checks=(hidden,)), sandbox, wall_settings)


async def test_files_that_would_change_the_verdict_are_left_out(
    sandbox: Sandbox, wall_settings: SandboxSettings
) -> None:
    forged = {"_suture/suture/checks/wire.py": b"import os; os._exit(0)", "_suture/json.py": b"1/0"}
    outcome = await grade("def f(): return 1", "assert f() == 1", sandbox, wall_settings, files=forged)
    assert outcome.passed


def test_a_builtin_keeps_its_meaning_in_the_test() -> None:
    plan = plan_program("assert abs(f(1)) == 1", {"s.py": "def abs(x): ...\ndef f(x): ..."}, "s.py")
    assert set(plan.names) == {"f"}
