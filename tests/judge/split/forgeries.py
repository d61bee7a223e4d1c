"""Wrong programs that try to pass. In each module `f(3)` should be 8, and is not.

All kinds of verdict share the corpus: the split verdict calls `f`, nonce mode calls `Box().get`.
"""

from __future__ import annotations

import textwrap

__all__ = [
    "CORPUS",
    "EXITING",
    "HANGING",
    "OBJECTS",
    "PATCHING",
    "PRINTING",
    "SEARCHING",
    "SPLIT_TESTS",
    "STEERING",
    "WEAK_TESTS",
    "wrap_in_class",
]

SPLIT_TESTS = (
    "assert f(3) == 8",
    "assert abs(f(3) - 8) < 1e-6",
    "def check(c):\n    assert round(c(3), 1) == 8\ncheck(f)",
)
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
SEND = """
import json, os
def send(message):
    body = json.dumps(message).encode()
    for fd in range(64):
        try: os.write(fd, len(body).to_bytes(4, "big") + body)
        except OSError: pass
"""
FORGED_MESSAGES = """
MESSAGES = ({"outcome": {"passed": True}}, {"passed": True}, {"value": 8, "nodes": [], "callable": False})
"""
WRONG = "\ndef f(x): return 0\n"

PRINTING = {
    "prints PASSED": "print('PASSED'); print('1 passed in 0.01s'); print('{\"passed\": true}')" + WRONG,
    "prints to stderr": "import sys; print('OK\\n\\nRan 3 tests', file=sys.stderr)" + WRONG,
    "frames on every descriptor": (
        f"{SEND}{FORGED_MESSAGES}\ndef f(x):\n    for message in MESSAGES: send(message)\n    return 0"
    ),
    "frames while loading": f"{SEND}{FORGED_MESSAGES}\nfor message in MESSAGES: send(message)\n{WRONG}",
    "frames from a thread": f"{SEND}{FORGED_MESSAGES}\nimport threading, time\ndef later():\n    time.sleep(0.05)\n"
    f"    for message in MESSAGES: send(message)\nthreading.Thread(target=later).start()\n"
    "def f(x): time.sleep(0.2); return 0",
    "frames at exit": f"""{SEND}{FORGED_MESSAGES}
import atexit
atexit.register(lambda: [send(message) for message in MESSAGES])
{WRONG}""",
    "frames from a child": f"""{SEND}{FORGED_MESSAGES}
if os.fork() == 0:
    for message in MESSAGES: send(message)
    os._exit(0)
{WRONG}""",
}
EXITING = {
    "os._exit(0)": "import os\ndef f(x): os._exit(0)",
    "os._exit(0) at import": "import os\nos._exit(0)",
    "sys.exit(0)": "import sys\ndef f(x): sys.exit(0)",
    "f is sys.exit": "import sys\ndef f(x): sys.exit()\ng = f\nf = lambda x: g(x)",
    "raises SystemExit at import": "raise SystemExit(0)",
    "executes another program": "import os\ndef f(x): os.execv('/bin/true', ['true'])",
    "kills itself": "import os\ndef f(x): os.kill(os.getpid(), 9)",
    "kills its parent": "import os\ndef f(x): os.kill(os.getppid(), 9); os.kill(1, 9); return 0",
    "a signal's handler that exits": """
import os, signal
signal.signal(14, lambda *a: os._exit(0)); signal.setitimer(0, 0.01)
def f(x):
    while True: pass
""",
    "exits at exit": "import atexit, os\natexit.register(os._exit, 0)" + WRONG,
    "raises AssertionError": "def f(x): raise AssertionError",
    "raises KeyboardInterrupt": "def f(x): raise KeyboardInterrupt",
    "raises GeneratorExit": "def f(x): raise GeneratorExit",
    "raises what equals everything": f"{ALWAYS}\nclass E(Always, Exception): pass\ndef f(x): raise E",
}
OBJECTS = {
    "always equal": f"{ALWAYS}\ndef f(x): return Always()",
    "always equal, in a list": f"{ALWAYS}\ndef f(x): return [Always()]",
    "a subclass of int": """
class I(int):
    def __eq__(self, o): return True
    __hash__ = None
def f(x): return I(0)
""",
    "a subclass of float": """
class F(float):
    def __sub__(self, o): return 0.0
    def __round__(self, n=0): return 8
    def __eq__(self, o): return True
    __hash__ = None
def f(x): return F(0)
""",
    "claims to be an int": f"{ALWAYS}\nclass C(Always):\n    __class__ = int\ndef f(x): return C()",
    "a class whose instances are everything": f"""{ALWAYS}
class M(type):
    def __eq__(cls, o): return True
    __hash__ = None
class C(metaclass=M): pass
def f(x): return C
""",
    "the function is a class": f"{ALWAYS}\nclass f(Always):\n    def __init__(self, x): pass",
    "the function is a callable object": f"""{ALWAYS}
class F(Always):
    def __call__(self, x): return self
f = F()
""",
    "an iterator that never ends": "import itertools\ndef f(x): return itertools.repeat(8)",
    "pickles as the answer": "class P:\n    def __reduce__(self): return int, (8,)\ndef f(x): return P()",
    "reports as the answer": "class P(list):\n    def __iter__(self): return iter([8])\ndef f(x): return P()",
    "an import under the function's name": "from unittest.mock import _ANY as f",
}
PATCH_SUTURE = """
import sys
def patch(frame):
    while frame is not None:
        names = frame.f_globals
        if str(names.get("__name__", "")).startswith("suture"):
            if "FrameStream" in names:
                true = names["FrameStream"].send
                names["FrameStream"].send = lambda self, m, t=true: t(self, {**m, "passed": True})
        frame = frame.f_back
patch(sys._getframe())
"""
PATCHING = {
    "patched builtins": """
import builtins, math
builtins.abs = builtins.round = lambda *a: 0
builtins.AssertionError = builtins.isinstance = lambda *a: True
math.fabs = abs
def f(x): return 0
""",
    "its own abs": "def abs(x): return 0\ndef round(x, n=0): return 8\ndef f(x): return 0",
    "patched exec": "import builtins\nbuiltins.exec = lambda *a, **k: None" + WRONG,
    "patched json": """
import json
true = json.dumps
json.dumps = lambda m, *a, **k: true({**m, "passed": True, "outcome": {"passed": True}})
def f(x): return 0
""",
    "patched modules of ours": f"{PATCH_SUTURE}{WRONG}",
    "patched assert machinery": """
import sys
def trace(frame, event, arg):
    if event == "exception": frame.f_trace_lines = False
    return trace
sys.settrace(trace)
def f(x): return 0
""",
    "an import hook": """
import sys
class Hook:
    def find_spec(self, name, path=None, target=None): print("asked", name)
sys.meta_path.insert(0, Hook()); sys.modules["unittest"] = sys
def f(x): return 0
""",
    "a planted conftest": "open('conftest.py', 'w').write('import os; os._exit(0)')\n"
    "open('sitecustomize.py', 'w').write('import os; os._exit(0)')" + WRONG,
}
SEARCH = (
    "import gc, sys\n"
    + SEND
    + textwrap.dedent("""
    def found():
        frame = sys._getframe()
        while frame is not None:
            yield from list(frame.f_locals.values())
            frame = frame.f_back
        yield from gc.get_objects()
    def forge():
        for thing in found():
            if type(thing) is dict and type(thing.get("nonce")) is str:
                send({"passed": True, "nonce": thing["nonce"]})
                os._exit(0)
""")
)
SEARCHING = {
    "hunts through frames and memory while loading": f"{SEARCH}\nforge(){WRONG}",
    "hunts through frames and memory when called": f"{SEARCH}\ndef f(x): forge(); return 0",
    "looks for the expected value in memory": """
import gc, sys
def f(x):
    frame = sys._getframe()
    while frame:
        for v in list(frame.f_locals.values()):
            if type(v) is str and "assert" in v and "== 8" in v: return 8
        frame = frame.f_back
    return 8 if any(type(o) is dict and o.get("source") for o in gc.get_objects()) else 0
""",
    "reads every file and descriptor": """
import os
def f(x):
    for d, _, names in os.walk("/box"):
        for n in names:
            if b"f(" + b"3)" in open(os.path.join(d, n), "rb").read(): return 8
    return 0
""",
}
HANGING = {
    "never ends": "def f(x):\n    while True: pass",
    "a frame that is too long": "def f(x): return 'a' * (1 << 26)",
}
STEERING = {
    "all names of a program that exits, in dead code": f"{WRONG}if 0:\n    from unittest.__main__ import *",
    "a name of a program that exits, in dead code": "if 0:\n    from unittest.__main__ import f",
    "an exception of a program that exits": """
class Gone(Exception): pass
Gone.__module__ = "unittest.__main__"
def f(x): raise Gone
""",
    "raises what skips a test": "import unittest\ndef f(x): raise unittest.SkipTest('later')",
    "the function is a module": "import operator as f",
    "all names are answered": "def __getattr__(name): return lambda *a, **k: True\ndef f(x): return 0",
}
"""Programs that name something for the judge to import, to catch or to call."""
CORPUS = {**PRINTING, **EXITING, **OBJECTS, **PATCHING, **SEARCHING, **HANGING, **STEERING}

RAISE_STOP = "class Stop(StopIteration): pass\ndef f(x): raise {}"
CLEAR_ARGUMENT = "def f(x):\n    x.clear()\n    return {}"
TEST_CASE = "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(3), 8)\n"
WEAK_TESTS = {
    "ends `map` in `all`": (RAISE_STOP.format("StopIteration"), "assert all(map(lambda n: f(n) == 8, [3]))"),
    "ends `map` in a loop": (RAISE_STOP.format("Stop"), "for got in map(f, [3]):\n    assert got == 8"),
    "ends `zip`": (
        RAISE_STOP.format("StopIteration"),
        "for got, want in zip(map(f, [3]), [8]):\n    assert got == want",
    ),
    "ends `any`": (RAISE_STOP.format("StopIteration(8)"), "assert not any(map(lambda n: f(n) != 8, [3]))"),
    "ends what is filtered": (
        RAISE_STOP.format("Stop"),
        "assert list(filter(lambda n: f(n) != 8, [3])) == []",
    ),
    "exits where all is caught": (
        "def f(x): raise SystemExit",
        "try:\n    assert f(3) == 8\nexcept BaseException as end:\n    assert not isinstance(end, Exception)",
    ),
    "empties what it is given": (CLEAR_ARGUMENT.format("[]"), "x = [3, 1]\nassert f(x) == sorted(x)"),
    "empties what is sorted later": (
        CLEAR_ARGUMENT.format("[]"),
        "x = [3, 1]\ngot = f(x)\nassert got == sorted(x)",
    ),
    "empties what is counted": (
        CLEAR_ARGUMENT.format("0"),
        "def check(c):\n    for x in ([3], [1, 2]):\n        assert c(x) == len(x)\ncheck(f)",
    ),
    "empties what unittest compares": (
        CLEAR_ARGUMENT.format("[]"),
        f"{TEST_CASE.replace('self.assertEqual(f(3), 8)', 'x = [2]; self.assertEqual(f(x), sorted(x))')}"
        "unittest.main()",
    ),
    "nan is not more than": ("def f(x): return float('nan')", "assert not abs(f(3) - 8) > 1e-6"),
    "nan is neither": ("def f(x): return float('nan')", "assert not f(3) < 8 and not f(3) > 8"),
    "a nan of decimals": (
        "from decimal import Decimal\ndef f(x): return Decimal('nan')",
        "assert not (f(3) != f(3)) or f(3) == 8",
    ),
    "a class is true": ("def f(x): return ValueError", "assert f(3)"),
    "an exception is true": ("def f(x): return ValueError('no')", "assert f(3), 'it holds'"),
    "a generator is true": ("def f(x): yield 0", "assert f(3)"),
    "a function is true": ("def f(x): return lambda: 0", "assert not not f(3)"),
    "fails in unittest's own way out": ("def f(x): return 0", f"{TEST_CASE}unittest.main(exit=False)"),
    "skips in unittest's own way out": (STEERING["raises what skips a test"], f"{TEST_CASE}unittest.main()"),
    "catches the test's own failure": (
        "def f(x): return 0\nWrong = AssertionError",
        "from solution import Wrong\ntry:\n    assert f(3) == 8\nexcept Wrong:\n    pass",
    ),
}
"""Name -> a wrong program, and a weak test that it satisfies by odd behaviour."""


def wrap_in_class(code: str) -> str:
    """Return the program with a class around `f`: tests of a class need live objects and run in nonce mode."""
    return f"{code}\nclass Box:\n    def get(self, x): return f(x)\n"
