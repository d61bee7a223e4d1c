"""New uses of the test machinery and the interpreter by a change in Python."""

from __future__ import annotations

import textwrap

import pytest

from judge.split.forgeries import CORPUS
from judge.split.test_attacks import KNOWN_LIMITS
from suture.judge.capabilities import find_change_capabilities, find_file_capabilities

BEFORE = "import json\nimport os\nimport sys\n\n\ndef f(n):\n    return n\n"
FINDINGS = [
    ("imports_test_machinery", "import pytest"),
    ("imports_test_machinery", "from _pytest import runner as r"),
    ("imports_test_machinery", "import pluggy"),
    ("imports_test_machinery", "from hypothesis.internal import conjecture"),
    ("imports_test_machinery", "def f(n):\n    from unittest.mock import ANY\n    return ANY"),
    ("imports_test_machinery", "def f(n):\n    return __import__('unittest').mock.ANY"),
    ("imports_test_machinery", "import importlib\nrunner = importlib.import_module('_pytest.runner')"),
    ("skips_tests", "import pytest\ndef f(n):\n    pytest.skip()"),
    ("skips_tests", "from pytest import xfail as stop\ndef f(n):\n    stop()"),
    ("skips_tests", "import unittest\ndef f(n):\n    raise unittest.SkipTest"),
    ("inspects_callers", "def f(n):\n    return sys._getframe(1).f_locals['expected']"),
    ("inspects_callers", "from sys import _getframe as g"),
    ("inspects_callers", "import inspect as i\ndef f(n):\n    return i.stack()"),
    ("inspects_callers", "import inspect\ndef f(n):\n    return inspect.getsource(n)"),
    ("inspects_callers", "def f(error):\n    return error.__traceback__.tb_frame"),
    ("inspects_callers", "match fault:\n    case E(__traceback__=T(tb_frame=it)):\n        print(it)"),
    ("inspects_callers", "def f(n):\n    look = getattr(sys, '_getframe')\n    return look(1)"),
    ("reaches_memory", "import gc"),
    ("reaches_memory", "from ctypes import memset"),
    ("reads_loaded_modules", "def f(n):\n    return sys.modules['test_a'].expected"),
    ("reads_loaded_modules", "def f(n):\n    return 'pytest' in sys.modules"),
    ("reads_loaded_modules", "sys.modules['json'] = None"),
    ("reads_loaded_modules", "s = sys\ndef f(n):\n    return s.modules.get('conftest')"),
    ("hooks_interpreter", "sys.settrace(print)"),
    ("hooks_interpreter", "sys.meta_path.insert(0, None)"),
    ("hooks_interpreter", "sys.excepthook = print"),
    ("hooks_interpreter", "import threading\nthreading.settrace(print)"),
    ("hooks_interpreter", "import signal\nsignal.signal(2, print)"),
    ("hooks_interpreter", "import atexit"),
    ("patches_code", "import builtins\nbuiltins.len = lambda x: 0"),
    ("patches_code", "json.loads = print"),
    ("patches_code", "from decimal import Decimal\nDecimal.quantize = print"),
    ("patches_code", "from .prices import Price\nPrice.total = 0"),
    ("patches_code", "setattr(json, 'loads', print)"),
    ("patches_code", "json.__dict__['loads'] = print"),
    ("patches_code", "vars(json)['loads'] = print"),
    ("patches_code", "globals()['f'] = print"),
    ("patches_code", "globals().update(f=print)"),
    ("patches_code", "def f(n):\n    type(n).__eq__ = lambda a, b: True"),
    ("ends_process", "def f(n):\n    os._exit(0)"),
    ("ends_process", "def f(n):\n    os.execv('/bin/true', ['true'])"),
    ("ends_process", "def f(n):\n    sys.exit(0)"),
    ("ends_process", "def f(n):\n    raise SystemExit"),
    ("ends_process", "def f(n):\n    raise SystemExit(0)"),
    ("ends_process", "def f(n):\n    exit()"),
    ("loosens_comparison", "class A:\n    def __eq__(self, other):\n        return True"),
    ("loosens_comparison", "class A:\n    def __lt__(self, other):\n        return self.n < 3"),
    ("loosens_comparison", "class A(type):\n    def __instancecheck__(cls, thing):\n        return cls.ok"),
    ("loosens_comparison", "class A:\n    __eq__ = lambda self, other: True"),
    ("writes_project_files", "def f(n):\n    open('tests/data.json', 'w').close()"),
    ("writes_project_files", "def f(n):\n    open(os.path.join(os.path.dirname(__file__), 'a'), mode='a')"),
    ("writes_project_files", "from pathlib import Path\n(Path(__file__).parent / 'b.py').write_text('')"),
    ("writes_project_files", "from pathlib import Path\nHERE = Path(__file__).parent\nHERE.joinpath('a').unlink()"),
    ("writes_project_files", "def f(n):\n    os.replace('a.py', 'b.py')"),
    ("writes_project_files", "import shutil\ndef f(n):\n    shutil.rmtree('tests')"),
    ("reads_tests", "def f(n):\n    return open('tests/test_prices.py').read()"),
    ("reads_tests", "def f(n):\n    return os.path.join(os.path.dirname(__file__), '..', 'tests')"),
    ("reads_tests", "from pathlib import Path\ndef f(n):\n    return Path(__file__).parent / 'tests'"),
    ("reads_tests", "def f(n):\n    from test_prices import CASES\n    return CASES[n]"),
    ("reads_tests", "import conftest"),
    ("reads_tests", "from test.support import ALWAYS_EQ"),
    ("reads_tests", "import importlib\ndef f(n):\n    return vars(importlib.import_module('test_prices'))[n]"),
    ("reads_tests", "import importlib.util\nx = importlib.util.find_spec('test_prices')"),
    ("reads_tests", "import os\ndef f(n):\n    return os.path.isdir('tests')"),
    ("reads_tests", "import glob\ndef f(n):\n    return glob.glob('**/test_*.py')"),
    ("detects_environment", "def f(n):\n    return os.environ['PYTEST_CURRENT_TEST']"),
    ("detects_environment", "def f(n):\n    return 'CI' in os.environ"),
    ("detects_environment", "def f(n):\n    return os.getenv('SUTURE_RUN')"),
    ("detects_environment", "def f(n):\n    return 'test' in sys.argv[0]"),
    ("detects_environment", "def f(n):\n    return open('/proc/self/mem', 'rb')"),
    ("starts_test_process", "import subprocess\ndef f(n):\n    subprocess.run(['python', '-m', 'pytest'])"),
    ("starts_test_process", "def f(n):\n    os.system('pytest -q')"),
]  # fmt: skip
HONEST = [
    "def main():\n    sys.exit(f(1))",
    "def main(argv=None):\n    return f(argv or sys.argv[1:])",
    "if __name__ == '__main__':\n    sys.exit(f(1))",
    "class A:\n    def __eq__(self, other):\n        return isinstance(other, A) and self.n == other.n",
    "class A:\n    def __ne__(self, other):\n        return not self == other",
    "class A:\n    def __lt__(self, other):\n        return NotImplemented",
    "class A:\n    def __le__(self, other):\n        raise TypeError",
    "class A:\n    def __init__(self, settings):\n        self.n = settings.n = 1",
    "def f(path):\n    with open(path, 'w') as file:\n        file.write('')",
    "def f(self):\n    self.path.write_text('')",
    "def f(n):\n    return open('/tmp/cache', 'w')",
    "def f(n):\n    return open('table.csv')",
    "def f(n):\n    return 'a.b'.replace('.', '/')",
    "import inspect\ndef f(n):\n    return inspect.signature(n)",
    "def f(n):\n    return os.environ.get('HOME')",
    "from .config import settings\ndef f(n):\n    settings.debug = True",
    "def f(json):\n    json.loads = 1",
    "def f(exit):\n    exit()",
    "def f(n):\n    return n.split('test')",
    "def f(n):\n    '''See tests/test_prices.py.'''\n    return n",
    "import subprocess\ndef f(n):\n    return subprocess.run(['git', 'status'])",
    "def f(n):\n    f.calls = 1\n    f.__doc__ = ''",
    "def f(n):\n    try:\n        return n()\n    except SystemExit:\n        return None",
    "def f(n):\n    return sys.version_info, sys.stdout.write('')",
]


def add(code: str) -> str:
    return BEFORE + "\n\n" + textwrap.dedent(code) + "\n"


@pytest.mark.parametrize(("code", "change"), FINDINGS)
def test_a_new_use_of_the_machinery_is_reported(code: str, change: str) -> None:
    uses = find_file_capabilities("prices.py", BEFORE, add(change))
    assert code in {use.code for use in uses}
    assert all(use.line > BEFORE.count("\n") and use.path == "prices.py" for use in uses)


@pytest.mark.parametrize("change", HONEST)
def test_ordinary_code_is_not_reported(change: str) -> None:
    assert find_file_capabilities("prices.py", BEFORE, add(change)) == ()


@pytest.mark.parametrize(("code", "change"), FINDINGS)
def test_a_use_that_the_file_already_had_is_not_reported(code: str, change: str) -> None:
    before = add(change)
    assert find_file_capabilities("prices.py", before, before + "\n\ndef g():\n    return 1\n") == ()


def test_a_repair_of_syntax_alone_is_not_reported() -> None:
    broken = "import gc\n\ndef f(n)\n    return gc.collect()\n"
    repaired = broken.replace("f(n)", "f(n):")
    assert find_file_capabilities("a.py", broken, repaired) == ()
    assert find_file_capabilities("a.py", broken, "import ctypes\n" + repaired) != ()


def test_a_helper_of_the_tests_may_use_the_machinery() -> None:
    helper = "import pytest\n"
    assert find_change_capabilities({}, {"tests/helper.py": helper, "conftest.py": helper}) == ()
    (use,) = find_change_capabilities({"a.py": b"x = 1\n"}, {"a.py": "x = 1\n\nimport pytest\n"})
    assert (use.code, use.path, use.line, use.name) == ("imports_test_machinery", "a.py", 3, "pytest")


@pytest.mark.parametrize("forgery", sorted(KNOWN_LIMITS))
def test_each_forgery_that_passes_in_nonce_mode_is_reported(forgery: str) -> None:
    assert find_file_capabilities("a.py", "def f(n):\n    return n\n", CORPUS[forgery])


def test_deeply_nested_code_is_scanned() -> None:
    assert find_file_capabilities("a.py", "", "x = " + "+".join(["1"] * 5000) + "\n") == ()
