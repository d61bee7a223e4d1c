"""Generated attacks on pytest's process: what is changed, by which route, and at which time.

Each attack tries to make failing tests pass. It must not be certified plainly: the verdict fails, or the rule on new
capabilities names what the code does.
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from textwrap import indent
from types import FunctionType

import pytest

from judge.conftest import PYTEST, Prepare
from suture.core.records import Candidate
from suture.judge import Suite, check_candidate
from suture.judge.capabilities import find_file_capabilities
from suture.judge.runners.pytest_runner import PLUGIN, load_plugin

pytestmark = pytest.mark.timeout(900)
SEED = 36

TESTS = """
import unittest

from sums import total


def key(number):
    return number


def test_empty():
    assert total([], key) == 0


def test_adds():
    numbers = [1, 2, 3]
    assert total(numbers, key) == sum(numbers)


class TestMore(unittest.TestCase):
    def test_two(self):
        self.assertEqual(total([2, 3], key), sum([2, 3]))
"""
BEFORE = "def total(numbers, key):\n    return len(numbers)\n"
RIGHT = "def total(numbers, key):\n    return sum(map(key, numbers))\n"
FORGET_EXCEPTIONS = """
space = FIND("_pytest.runner")
made = vars(space["CallInfo"])["from_call"].__func__
def forget(cls, *args, **named):
    call = made(cls, *args, **named)
    call.excinfo = None
    return call
space["CallInfo"].from_call = classmethod(forget)
FIND("_pytest.unittest")["TestCaseFunction"]._addexcinfo = lambda *values: None
"""

TARGETS = {
    "calls": FORGET_EXCEPTIONS,
    "test functions": """
FIND("_pytest.python")["Function"].runtest = lambda self: None
FIND("_pytest.unittest")["TestCaseFunction"].runtest = lambda self: None
""",
    "the code of a hook": """
def nothing(item):
    pass
FIND("_pytest.runner")["pytest_runtest_call"].__code__ = nothing.__code__
""",
    "outcomes": """
same = property(lambda self: "passed", lambda self, value: None)
FIND("_pytest.reports")["TestReport"].outcome = same
""",
    "reports": """
space = FIND("_pytest.reports")
made = vars(space["TestReport"])["from_item_and_call"].__func__
def without(cls, item, call):
    call.excinfo = None
    return made(cls, item, call)
space["TestReport"].from_item_and_call = classmethod(without)
""",
    "hook calls": """
space = FIND("pluggy._hooks")
made = space["HookCaller"].__call__
def calling(self, **named):
    if self.name == "pytest_runtest_makereport":
        named["call"].excinfo = None
    return made(self, **named)
space["HookCaller"].__call__ = calling
FIND("_pytest.unittest")["TestCaseFunction"]._addexcinfo = lambda *values: None
""",
    "comparisons of unittest and pytest": """
FIND("unittest.case")["TestCase"].assertEqual = lambda self, *values: None
FIND("_pytest.python")["Function"].runtest = lambda self: None
""",
    "a builtin": """FIND("builtins")["sum"] = lambda values, *rest: len(values)\n""",
    "the encoder of reports": """
space = FIND("json.encoder")
made = space["JSONEncoder"].encode
def passing(self, value):
    if isinstance(value, dict) and "outcome" in value:
        value = {**value, "outcome": "passed", "fact": None, "text": ""}
    if isinstance(value, dict) and "exit" in value:
        value = {**value, "exit": 0}
    return made(self, value)
space["JSONEncoder"].encode = passing
FIND("atexit")["register"](FIND("os")["_exit"], 0)
""",
    "signatures": """
space = FIND("hmac")
made = space["digest"]
space["digest"] = lambda key, text, name: made(key, text.replace(b"failed", b"passed"), name)
FIND("atexit")["register"](FIND("os")["_exit"], 0)
""",
    "the exit status": """FIND("atexit")["register"](FIND("os")["_exit"], 0)\n""",
}
"""What is changed -> code that changes it. `FIND` returns the variables of a module."""

ROUTES = {
    "import": """
def find(name):
    import importlib
    return vars(importlib.import_module(name))
""",
    "loaded modules": """
def find(name):
    import sys
    return vars(sys.modules[name])
""",
    "computed names": """
def find(name):
    return getattr(__import__(name, fromlist=["x"]), "__" + "dict__")
""",
    "gc": """
def find(name):
    import gc
    spaces = [o for o in gc.get_objects() if type(o) is dict and o.get("__name__") == name and "__spec__" in o]
    return spaces[0]
""",
    "frames": """
def find(name):
    import sys
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__") != name:
        frame = frame.f_back
    if frame.f_globals.get("__name__") == name:
        return frame.f_globals
    return frame.f_builtins["__import__"](name, fromlist=["x"]).__dict__
""",
    "frames of an exception": """
def find(name):
    try:
        raise LookupError
    except LookupError as error:
        frame = error.__traceback__.tb_frame
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_builtins["__import__"](name, fromlist=["x"]).__dict__
""",
    "subclasses": """
def find(name):
    kinds, seen = [object], set()
    while kinds:
        kind = kinds.pop()
        for below in type.__subclasses__(kind):
            if below not in seen and below is not type:
                seen.add(below)
                kinds.append(below)
        for value in list(vars(kind).values()):
            space = getattr(value, "__globals__", None)
            if space and kind.__module__ == name and space.get("__name__") == name:
                return space
    for kind in seen:
        for value in list(vars(kind).values()):
            space = getattr(value, "__globals__", None)
            if space and "sys" in space and hasattr(space["sys"], "modules"):
                return vars(space["sys"].modules[name])
""",
    "globals of a callback": """
def find(name):
    return vars(getattr(ARGUMENTS[1], "__glo" + "bals__")["@pytest_ar"].sys.modules[name])
""",
    "the plugin manager": """
def find(name):
    import _pytest.assertion.util
    for plugin in _pytest.assertion.util._config.pluginmanager.get_plugins():
        if getattr(plugin, "__name__", "") == name:
            return vars(plugin)
    return vars(_pytest.assertion.util.sys.modules[name]) if hasattr(_pytest.assertion.util, "sys") else vars(
        __import__(name, fromlist=["x"])
    )
""",
}
"""How code reaches a module -> a function `find` that returns the module's variables."""
ROUTES_OF_CALLS = ("globals of a callback", "the plugin manager")
"""Routes that exist only while a test calls the code."""

TIMES = {
    "import": "{attack}\nattack()\n\ndef total(numbers, key):\n    return len(numbers)\n",
    "first call": (
        "{attack}\n\ndef total(numbers, key):\n    global ARGUMENTS\n    if not numbers:\n"
        "        ARGUMENTS = (numbers, key)\n        attack()\n    return len(numbers)\n"
    ),
    "comparison": (
        "{attack}\n\nclass Number(int):\n    def __eq__(self, other):\n        if other == 0:\n"
        "            attack()\n        return int(self) == other\n\n"
        "def total(numbers, key):\n    global ARGUMENTS\n    ARGUMENTS = (numbers, key)\n"
        "    return Number(len(numbers))\n"
    ),
    "thread": (
        "import threading\n\n{attack}\n\ndef total(numbers, key):\n    global ARGUMENTS\n    if not numbers:\n"
        "        ARGUMENTS = (numbers, key)\n        worker = threading.Thread(target=attack)\n"
        "        worker.start()\n        worker.join()\n    return len(numbers)\n"
    ),
    "exit": (
        "import atexit\n\n{attack}\n\natexit.register(attack)\n\ndef total(numbers, key):\n"
        "    global ARGUMENTS\n    ARGUMENTS = (numbers, key)\n    return len(numbers)\n"
    ),
}
"""When the code attacks -> the module, with `attack` for the definition of the attack."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One generated attack: a target of `TARGETS` or a method of our plugin, a route, and a time."""

    target: str
    route: str
    time: str
    change: str

    @property
    def text(self) -> str:
        """The module `sums.py` with the attack."""
        change = indent(self.change.strip().replace("FIND", "find"), "    ")
        return TIMES[self.time].format(attack=f"{ROUTES[self.route]}\ndef attack():\n{change}\n")

    def __str__(self) -> str:
        return f"{self.target}, {self.route}, {self.time}"


def list_routes_and_times() -> list[tuple[str, str]]:
    """Return each route with each time at which it exists."""
    calls = ("first call", "comparison")
    return [
        (route, time)
        for route, time in product(ROUTES, TIMES)
        if route not in ROUTES_OF_CALLS or time in calls
    ]


def list_attacks(route: str, time: str) -> list[Attack]:
    """Return an attack on each target by one route at one time."""
    return [Attack(target=target, route=route, time=time, change=text) for target, text in TARGETS.items()]


def list_plugin_names() -> Iterator[tuple[str, str]]:
    """Yield (module, name) of each function, method and imported name of our plugin: `("...", "Reporter._write")`."""
    sources = {path: content for path, content in load_plugin().items() if path.endswith(".py")}
    for path, source in sources.items():
        module = f"{PLUGIN}.{Path(path).stem}"
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                yield module, node.name
            elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
                yield from ((module, name.asname or name.name) for name in node.names)
            elif isinstance(node, ast.ClassDef):
                yield from (
                    (module, f"{node.name}.{part.name}")
                    for part in node.body
                    if isinstance(part, ast.FunctionDef)
                )


SILENCE = "new = lambda *values, **named: {}\n"
REWRITE = """
def swap(value, name=""):
    if isinstance(value, dict):
        return {key: swap(part, key) for key, part in value.items()}
    if isinstance(value, bytes):
        return value.replace(b"failed", b"passed")
    if isinstance(value, str):
        return value.replace("failed", "passed")
    if hasattr(value, "excinfo"):
        value.excinfo = None
    return 0 if name == "exit" else value
def new(*values, **named):
    return swap(made(*map(swap, values), **swap(named)))
"""
"""Lets a function say `passed` where it receives or returns `failed`, and forget exceptions."""


def list_machinery_names() -> list[tuple[str, str]]:
    """Return (module, name) of each function and method of the loaded modules that may decide, sorted."""
    names = []
    for module, loaded in sys.modules.items():
        if module.partition(".")[0] not in DECIDING_MODULES:
            continue
        for name, value in vars(loaded).items():
            if getattr(value, "__module__", None) != module:
                continue
            if isinstance(value, FunctionType):
                names.append((module, name))
            elif isinstance(value, type):
                parts = [key for key, part in vars(value).items() if isinstance(part, FunctionType)]
                names += [(module, f"{name}.{part}") for part in parts]
    return sorted(names)


DECIDING_MODULES = ("_pytest", "pluggy", "unittest", "json", "hmac", "os", "traceback", "contextlib")
"""Packages whose functions take part in running a test, and in reporting it."""
DRAWN_FUNCTIONS = 120
"""Of some 2,000; each attack is one run of the tests."""


def replace_function(module: str, name: str, route: str, effect: str, *, besides: str = "") -> Attack:
    """Return an attack that replaces one function, called `made` in the effect, by `new`.

    Args:
        besides: Code that runs afterwards.
    """
    *class_names, key = name.split(".")
    owner = f'FIND("{module}")' + "".join(f'["{class_name}"]' for class_name in class_names)
    get = f"vars(owner)[{key!r}]" if class_names else f"owner[{key!r}]"
    put = f"setattr(owner, {key!r}, new)" if class_names else f"owner[{key!r}] = new"
    change = f"owner = {owner}\nmade = {get}\n{effect.strip()}\n{put}\n{besides}"
    return Attack(target=f"{module}.{name}", route=route, time="first call", change=change)


def list_plugin_attacks(route: str, effect: str) -> list[Attack]:
    """Return attacks that replace functions of our plugin, and let pytest forget the exceptions of tests.

    The routes share the functions: which function is replaced does not depend on how its module was reached.
    """
    names = list(list_plugin_names())[list(ROUTES).index(route) :: len(ROUTES)]
    return [
        replace_function(module, name, route, effect, besides=FORGET_EXCEPTIONS) for module, name in names
    ]


async def find_plain_passes(attacks: list[Attack], suite: Suite) -> list[str]:
    """Return the attacks that would be certified plainly: they pass, and no capability is named."""
    found = []
    for attack in attacks:
        if find_file_capabilities("sums.py", BEFORE, attack.text):
            continue
        verdict = await check_candidate(Candidate(files={"sums.py": attack.text}, origin="sample"), suite)
        if verdict.all_passed:
            found.append(str(attack))
    return found


@pytest.fixture
async def suite(prepare: Prepare) -> Suite:
    prepared: Suite = await prepare({"sums.py": BEFORE, "test_sums.py": TESTS})
    right = Candidate(files={"sums.py": RIGHT}, origin="sample")
    assert (await check_candidate(right, prepared)).all_passed
    return prepared


async def test_drawn_attacks_are_not_certified_plainly(suite: Suite) -> None:
    drawn = [
        Attack(target="outcomes", route="computed names", time="import", change=TARGETS["outcomes"]),
        Attack(target="calls", route="globals of a callback", time="comparison", change=TARGETS["calls"]),
    ]
    assert await find_plain_passes(drawn, suite) == []


@pytest.mark.heavy
@pytest.mark.parametrize(("route", "time"), list_routes_and_times())
async def test_generated_attacks_are_not_certified_plainly(suite: Suite, route: str, time: str) -> None:
    assert await find_plain_passes(list_attacks(route, time), suite) == []


@pytest.mark.heavy
@pytest.mark.parametrize("effect", [SILENCE, REWRITE], ids=["silence", "rewrite"])
@pytest.mark.parametrize("route", ROUTES)
async def test_attacks_on_our_plugin_are_not_certified_plainly(suite: Suite, route: str, effect: str) -> None:
    assert await find_plain_passes(list_plugin_attacks(route, effect), suite) == []


@pytest.mark.heavy
@pytest.mark.parametrize("effect", [SILENCE, REWRITE], ids=["silence", "rewrite"])
async def test_drawn_functions_of_the_machinery_cannot_be_replaced(suite: Suite, effect: str) -> None:
    names = random.Random(SEED).sample(list_machinery_names(), DRAWN_FUNCTIONS)
    attacks = [replace_function(module, name, "computed names", effect) for module, name in names]
    assert await find_plain_passes(attacks, suite) == []


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
def test_the_attacks_pass_plain_pytest(target: str, tmp_path: Path) -> None:
    attack = Attack(target=target, route="import", time="import", change=TARGETS[target])
    (tmp_path / "sums.py").write_text(attack.text)
    (tmp_path / "test_sums.py").write_text(TESTS)
    command = [sys.executable, *PYTEST.split()[1:]]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
