"""A capability is found however the code spells the name of what it uses."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable
from itertools import product

import pytest

from suture.judge.capabilities import find_file_capabilities

BEFORE = "import json\nimport logging\nimport os\nimport sys\n\n\ndef f(n):\n    return n\n"
TARGETS = [
    ("sys", "_getframe", "inspects_callers"),
    ("sys", "modules", "reads_loaded_modules"),
    ("sys", "settrace", "hooks_interpreter"),
    ("sys", "unraisablehook", "hooks_interpreter"),
    ("os", "_exit", "ends_process"),
    ("os", "chdir", "hooks_interpreter"),
    ("inspect", "stack", "inspects_callers"),
    ("builtins", "eval", "computes_names"),
    ("marshal", "loads", "computes_names"),
    ("signal", "alarm", "hooks_interpreter"),
]
"""Module, name, and the code of its capability."""


def import_and_get(module: str, name_expression: str) -> str:
    return f"import {module}\nx = getattr({module}, {name_expression})"


SPELLINGS: dict[str, Callable[[str, str], str]] = {
    "direct": lambda m, n: f"import {m}\nx = {m}.{n}",
    "alias of the module": lambda m, n: f"import {m} as q\nx = q.{n}",
    "variable for the module": lambda m, n: f"import {m}\nq = {m}\nx = q.{n}",
    "variable with several values": lambda m, n: f"import {m}\nq = 1\nq = {m}\nx = q.{n}",
    "from-import": lambda m, n: f"from {m} import {n}",
    "from-import with an alias": lambda m, n: f"from {m} import {n} as q\nx = q",
    "inside a function": lambda m, n: f"def g(n):\n    import {m}\n    return {m}.{n}",
    "__import__": lambda m, n: f"x = __import__({m!r}).{n}",
    "import_module": lambda m, n: f"import importlib\nx = importlib.import_module({m!r}).{n}",
    "__import__ with a computed constant": lambda m, n: f"x = __import__({m[:2]!r} + {m[2:]!r}).{n}",
    "getattr": lambda m, n: import_and_get(m, repr(n)),
    "getattr with a default": lambda m, n: f"import {m}\nx = getattr({m}, {n!r}, None)",
    "getattr under another name": lambda m, n: f"import {m}\ng = getattr\nx = g({m}, {n!r})",
    "a builtin of the same name elsewhere": (
        lambda m, n: f"import {m}\ndef g():\n    getattr = 1\nx = getattr({m}, {n!r})"
    ),
    "concatenation": lambda m, n: import_and_get(m, f"{n[:3]!r} + {n[3:]!r}"),
    "concatenation of variables": lambda m, n: f"a = {n[:3]!r}\nb = a + {n[3:]!r}\n{import_and_get(m, 'b')}",
    "join": lambda m, n: import_and_get(m, f"''.join({[*n]!r})"),
    "f-string": lambda m, n: import_and_get(m, f'f"{n[:3]}{{{n[3:]!r}}}"'),
    "percent format": lambda m, n: import_and_get(m, f"'{n[:3]}%s' % {n[3:]!r}"),
    "format": lambda m, n: import_and_get(m, f"'{n[:3]}{{}}'.format({n[3:]!r})"),
    "reversal": lambda m, n: import_and_get(m, f"{n[::-1]!r}[::-1]"),
    "reversed": lambda m, n: import_and_get(m, f"''.join(reversed({n[::-1]!r}))"),
    "upper case": lambda m, n: import_and_get(m, f"{n.upper()!r}.lower()"),
    "chr of a list": lambda m, n: import_and_get(m, f"''.join(chr(c) for c in {[*n.encode()]!r})"),
    "chr of shifted numbers": (
        lambda m, n: import_and_get(m, f"''.join([chr(c - 1) for c in {[c + 1 for c in n.encode()]!r}])")
    ),
    "map of chr": lambda m, n: import_and_get(m, f"''.join(map(chr, {[*n.encode()]!r}))"),
    "decoded bytes": lambda m, n: import_and_get(m, f"bytes({[*n.encode()]!r}).decode()"),
    "hexadecimal": lambda m, n: import_and_get(m, f"bytes.fromhex({n.encode().hex()!r}).decode()"),
    "base64": (
        lambda m, n: (
            "import base64\n"
            + import_and_get(m, f"base64.b64decode({base64.b64encode(n.encode())!r}).decode()")
        )
    ),
    "rot13": (
        lambda m, n: (
            "import codecs\n" + import_and_get(m, f"codecs.decode({codecs.encode(n, 'rot13')!r}, 'rot13')")
        )
    ),
    "replace": lambda m, n: import_and_get(m, f"{'#'.join(n)!r}.replace('#', '')"),
    "vars": lambda m, n: f"import {m}\nx = vars({m})[{n!r}]",
    "__dict__": lambda m, n: f"import {m}\nx = {m}.__dict__[{n!r}]",
    "__dict__.get": lambda m, n: f"import {m}\nx = {m}.__dict__.get({n!r})",
    "__getattribute__": lambda m, n: f"import {m}\nx = {m}.__getattribute__({n!r})",
    "object.__getattribute__": lambda m, n: f"import {m}\nx = object.__getattribute__({m}, {n!r})",
    "attrgetter": lambda m, n: f"import operator\nimport {m}\nx = operator.attrgetter({n!r})({m})",
}
COMPUTED = {
    "getattr": "x = lambda n: getattr(sys, n)",
    "getattr of another module": "x = lambda n: getattr(json, n)",
    "vars": "x = lambda n: vars(json)[n]",
    "__dict__": "x = lambda n: json.__dict__[n]",
    "__builtins__": "x = lambda n: __builtins__[n]",
    "__import__": "x = lambda n: __import__(n)",
    "import_module": "import importlib\nx = lambda n: importlib.import_module(n)",
    "a module as an argument": "x = lambda m: m.modules\nx(sys)",
    "a module in a list": "x = [json, sys]",
    "a module as a keyword argument": "x = dict(m=sys)",
    "a module as a default value": "def g(n, m=sys):\n    return m.modules",
    "a module as a result": "def g():\n    return sys\nx = g().modules",
    "a module in a class": "class A:\n    m = sys\nx = A.m.modules",
    "a module in an object": "def g(n):\n    n.m = sys\n    return n.m.modules",
    "a module as a subject": "match sys:\n    case object(modules=m):\n        x = m",
    "the values of a namespace": "x = list(sys.__dict__.values())",
    "own globals by vars": "x = lambda n: vars()[n]",
    "a search for a name": "import pkgutil\nx = pkgutil.resolve_name('sys:modules')",
    "a file that is run": "import runpy\nx = lambda n: runpy.run_path(n)",
    "own globals": "x = lambda n: globals()[n]",
    "a copy of a namespace": "x = dict(vars(sys))",
    "partial": "import functools\nx = functools.partial(getattr, sys)",
    "exec": "x = lambda n: exec(n)",
    "a default value": "def g(n, eval=eval):\n    return eval(n)",
    "compile": "x = lambda n: compile(n, '', 'eval')",
    "an interpreter": "import code\nx = code.InteractiveInterpreter()",
    "pickled constants": "import pickle\nx = pickle.loads(b'cos' + b'\\nsystem\\n.')",
    "a function from code": "import types\nx = lambda n: types.FunctionType(n, {})",
    "changed code": "x = lambda n: n.replace(co_code=b'')",
    "the module of a builtin": "x = print.__self__",
    "a loader": "x = __loader__.load_module('sys')",
}
REACHING = [
    ("inspects_callers", "x = f.__globals__"),
    ("inspects_callers", "x = f.__closure__[0].cell_contents"),
    ("inspects_callers", "x = f.__code__.co_consts"),
    ("inspects_callers", "x = lambda n: n.gi_frame"),
    ("inspects_callers", "x = lambda n: n.ag_frame"),
    ("inspects_callers", "x = lambda n: getattr(n, '__glo' + 'bals__')"),
    ("inspects_callers", "x = ('f_back', 'f_globals')"),
    ("inspects_callers", "x = 'f_back.f_globals'"),
    ("reaches_memory", "x = ().__class__.__base__.__subclasses__()"),
    ("reads_loaded_modules", "x = logging.sys.modules"),
    ("reads_loaded_modules", "import threading\nx = threading._sys.modules"),
    ("reads_loaded_modules", "x = vars()['sys'].modules"),
    ("inspects_callers", "import traceback\nx = traceback.walk_stack(None)"),
    ("ends_process", "import posix\nposix._exit(0)"),
    ("hooks_interpreter", "import bdb"),
    ("inspects_callers", "x = json.decoder.sys._getframe()"),
    ("reads_loaded_modules", "from sys import *\nx = modules"),
    ("inspects_callers", "from inspect import *\nx = stack()"),
    ("reads_loaded_modules", "x = globals()['s' + 'ys'].modules"),
    ("ends_process", "def g():\n    os.kill(os.getpid(), 9)"),
    ("detects_environment", "x = sys.gettrace()"),
    ("hooks_interpreter", "sys.path.insert(0, 'a')"),
    ("hooks_interpreter", "sys.path[:] = []"),
    ("hooks_interpreter", "sys.displayhook = print"),
    ("patches_code", "import warnings\nwarnings.showwarning = print"),
    ("patches_code", "def g(n):\n    n.__class__ = f"),
    ("patches_code", "setattr(json, 'lo' + 'ads', print)"),
    ("patches_code", "def g(n):\n    setattr(n, '__e' + 'q__', print)"),
    ("starts_test_process", "os.fork()"),
    ("imports_test_machinery", "x = __import__('unit' + 'test')"),
    ("writes_project_files", "import zipfile\ndef g(n):\n    zipfile.ZipFile(n).extractall()"),
    ("writes_project_files", "import zipfile\nx = zipfile.ZipFile('a.zip', 'w')"),
    ("writes_project_files", "import shutil\ndef g(n):\n    shutil.copy(n, dst='a')"),
    ("writes_project_files", "import sqlite3\nx = sqlite3.connect('a.db')"),
    ("writes_project_files", "x = logging.FileHandler('a.log')"),
    ("writes_project_files", "logging.basicConfig(filename='a.log')"),
    ("writes_project_files", "import tempfile\nx = tempfile.mkdtemp(dir='.')"),
    ("writes_project_files", "x = os.open('a', os.O_WRONLY | os.O_CREAT)"),
    ("writes_project_files", "import gzip\nx = gzip.open('a', 'wt')"),
    ("writes_project_files", "def g(n):\n    os.symlink(n, 'a')"),
    ("writes_project_files", "x = open('a' + '.txt', ''.join(['w']))"),
    ("computes_names", "x = lambda n, kind: getattr(n, '__%s__' % kind)"),
    ("computes_names", "def g(n, kind):\n    mark = '__'\n    return n.__getattribute__(mark + kind + mark)"),
    ("computes_names", "import operator\nx = lambda kind: operator.attrgetter('__{}__'.format(kind))"),
    ("computes_names", "import operator\nx = lambda n, a: operator.methodcaller('f', f'f_{a}')(n)"),
    ("computes_names", "x = lambda n, kind: getattr(n, '__'.join(['', kind, '']))"),
    ("computes_names", "x = lambda n, kind: getattr(n, '__kind__'.replace('kind', kind))"),
    ("computes_names", "x = lambda n, kind: ('{0.__' + kind + '__[a]}').format(n)"),
    ("computes_names", "class A:\n    def g(self, n):\n        setattr(n, f'__{self.kind}__', f)"),
    ("computes_names", "x = lambda n, kind: getattr(n, 'f_' + kind[:0] + 'locals')"),
    ("computes_names", "x = lambda n, kind: getattr(n, f'__{kind!s}__')"),
    ("computes_names", "x = lambda n, kind: getattr(n, '__{kind}__'.format(kind=kind))"),
    ("computes_names", "x = lambda n: f(n).__loader__"),
    (
        "computes_names",
        "def g(n, k):\n    name = f'__{k}__'\n    return hasattr(n, name) and delattr(n, name)",
    ),
    ("computes_names", "def look(n, name):\n    return getattr(n, name)\nx = lambda k: look(f, f'__{k}__')"),
    ("computes_names", "def name(k):\n    return f'__{k}__'\nx = lambda n, k: getattr(n, name(k))"),
    (
        "computes_names",
        "def g(n, k):\n    for name in [f'__{k}__']:\n        n = getattr(n, name)\n    return n",
    ),
    ("computes_names", "x = lambda k: type('A', (), {f'__{k}__': f})"),
    (
        "computes_names",
        "def g(k):\n    names = {}\n    names[f'__{k}__'] = f\n    return type('A', (), names)",
    ),
    ("computes_names", "def g(n, k):\n    text = '{0.__' + k + '__}'\n    return text.format(n)"),
    (
        "inspects_callers",
        "import inspect\nx = lambda n: [v for _, v in inspect.getmembers(n) if isinstance(v, dict)]",
    ),
    ("inspects_callers", "def look(n, kind):\n    return getattr(n, kind)\nx = look(f, '__glob' + 'als__')"),
    (
        "inspects_callers",
        "def a(n, k):\n    return getattr(n, k)\ndef b(n, k):\n    return a(n, '__' + k)\nb(f, 'code__')",
    ),
    ("inspects_callers", "look = lambda n, *, kind: getattr(n, f'f_{kind}')\nx = look(f, kind='back')"),
    ("inspects_callers", "x = [getattr(f, '__' + kind) for kind in ('globals__', 'code__')]"),
    ("computes_names", "import pickle\nx = lambda n: pickle.loads(n)"),
    ("computes_names", "import pickle\nx = lambda n: pickle.loads(n.dumps())"),
    ("computes_names", "import json\nimport pickle\nx = lambda n: pickle.loads(json.dumps(n))"),
    ("computes_names", "def g(n, k):\n    return n.a\n" + "\n".join(f"g(f, 'a{i}')" for i in range(401))),
    ("computes_names", "from pickle import Unpickler as R\nx = lambda n: R(n).load()"),
    ("computes_names", "import shelve\nx = lambda n: shelve.open(n)['a']"),
    ("computes_names", "import yaml\nx = lambda n: yaml.load(n, yaml.UnsafeLoader)"),
    ("computes_names", "import numpy as np\nx = lambda n: np.load(n, allow_pickle=True)"),
    ("computes_names", "import dill\nx = list(map(dill.loads, []))"),
    (
        "computes_names",
        "import logging.config as c\nc.dictConfig({'filters': {'a': {'()': 'builtins.exec'}}})",
    ),
    (
        "computes_names",
        "import logging.config as c\nx = lambda n: c.dictConfig({'filters': {'a': {'()': n}}})",
    ),
    ("computes_names", "import logging.config as c\nx = lambda n: c.dictConfig(json.load(n))"),
    ("computes_names", "import logging.config as c\nc.fileConfig('logging.ini')"),
    ("inspects_callers", "import inspect\nx = dict(inspect.getmembers(json))"),
    ("computes_names", "import logging.config as c\ndef g(n):\n    c.dictConfig(n)"),
]
HONEST = [
    "x = lambda n: getattr(n, 'a' + 'b')",
    "x = lambda n, name: getattr(n, name)",
    "x = json.__name__ + '.' + os.sep",
    "x = hasattr(sys, 'ps1')",
    "def eval(n):\n    return n\nx = eval(3)",
    "def g(n):\n    def compile(n):\n        return n\n    return compile(n)",
    "import re\nx = re.compile('a')",
    "import ast\nx = ast.literal_eval('1')",
    "import pickle\nx = lambda n: pickle.loads(pickle.dumps(n))",
    "import dill\nx = lambda n: dill.loads(dill.dumps(n))",
    "def g(n, k):\n    return n.a\n" + "\n".join(f"g(f, 'a{i}')" for i in range(399)),
    "x = lambda n, name: getattr(n, f'on_{name}')",
    "def g(n, name):\n    return getattr(n, name)\nx = g(json, 'dumps')",
    "def g(key, value):\n    return f'{key}__{value}', f'a {key} of __main__', '__%s' % key",
    "x = lambda text: f'__{text}__'",
    "x = lambda t, k, v: t.replace(f'__{k}__', v)",
    "x = lambda kind, day: f'__{kind}_{day}__.csv'",
    "def g(rows, k):\n    rows['__%s__' % k] = 1\n    return {f'__{k}__': rows}",
    "def g(n, k):\n    text = f'__{k}__'\n    return text, getattr(n, k)",
    "import inspect\nx = inspect.getmembers(json, inspect.isfunction)",
    "import inspect\nclass A:\n    def g(self):\n        return dict(inspect.getmembers(self))\n"
    "x = inspect.getmembers(A)",
    "import logging.config as c\nfrom django.conf import settings\nc.dictConfig(settings.LOGGING)",
    "from logging.config import dictConfig\ndef g(level):\n    dictConfig({'version': 1, 'root': {'level': level},\n"
    "        'filters': {'a': {'()': 'django.utils.log.RequireDebugFalse'}}, 'handlers': {'b': {\n"
    "        'class': 'logging.StreamHandler', 'stream': 'ext://sys.stdout', 'filters': ['a']}}})",
    "import logging.config\nCONFIG = {'version': 1, 'loggers': {'': {'level': 'INFO'}}}\n"
    "def g():\n    logging.config.dictConfig(CONFIG)",
    "import yaml\nx = lambda text: yaml.load(text, Loader=yaml.SafeLoader)",
    "for name in ('dumps', 'loads'):\n    x = getattr(f(1), name)",
    "import types\nx = lambda n: isinstance(n, types.FunctionType)",
    "def g(code, hypothesis):\n    return code.strip(), hypothesis.text",
    "import sqlite3\nx = sqlite3.connect(':memory:')",
    "import tempfile\nx = tempfile.mkdtemp()",
    "import zipfile\nx = lambda n, folder: zipfile.ZipFile(n).extractall(folder)",
    "x = lambda frame: frame.str.extractall('(a)')",
    "x = sys.path + ['a']",
    "x = 'The attribute f_back leads to the caller.'",
    "__mro__ = type(f).__mro__",
    "x = os.environ.get('HO' + 'ME')",
]


def find_codes(change: str) -> set[str]:
    return {use.code for use in find_file_capabilities("prices.py", BEFORE, f"{BEFORE}\n\n{change}\n")}


@pytest.mark.parametrize(
    ("target", "spelling"),
    list(product(TARGETS, SPELLINGS)),
    ids=lambda value: value if isinstance(value, str) else value[1],
)
def test_a_use_is_found_in_each_spelling(target: tuple[str, str, str], spelling: str) -> None:
    module, name, code = target
    assert code in find_codes(SPELLINGS[spelling](module, name))


@pytest.mark.parametrize("access", COMPUTED)
def test_a_name_or_code_that_the_text_does_not_show_is_reported(access: str) -> None:
    assert "computes_names" in find_codes(COMPUTED[access])


@pytest.mark.parametrize(("code", "change"), REACHING)
def test_what_leads_to_other_code_or_files_is_reported(code: str, change: str) -> None:
    assert code in find_codes(change)


@pytest.mark.parametrize("change", HONEST)
def test_ordinary_names_and_files_are_not_reported(change: str) -> None:
    assert find_codes(change) == set()


@pytest.mark.parametrize(
    "change",
    [
        "a = 'x'\n" + "\n".join(f"a{i} = a{i - 1 or ''} + a{i - 1 or ''}" for i in range(1, 60)),
        "x = 'a' * 999999999 + ('b' * 9**9) * 9**9",
        "x = '%999999999d' % 1 + '{:>999999999}'.format(1)",
        "x = bytes(9999999999)",
        "x = [[[c for c in 'ab' * 99] for b in 'ab' * 99] for a in 'ab' * 99]",
        "x = f" + "(1)" * 90,
        "x = " + "f(" * 80 + ")" * 80,
        "x = x + 'a'",
        "def g(n):\n    return n\nx = g(f(" + "+".join(["n"] * 1500) + "))",
    ],
)
def test_constants_are_computed_with_little_work(change: str) -> None:
    # Each takes milliseconds. Without limits, each exceeds the time limit of a test, or the memory.
    assert find_codes(change) == set()
