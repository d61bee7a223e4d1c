"""What code does to the test process is seen by its effect, whatever the words of its text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from judge.conftest import PYTEST, PYTHON
from suture.core.records import Task
from suture.core.settings import SandboxSettings
from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.pytest_report import LOST_FAILURE, TEST_TEXT, PytestReport
from suture.judge.runners.pytest_runner import PytestRunner
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(180)
READ = "from {0} import read\n\ndef test_reads():\n    assert read({0!r}) == 'text of a note'\n"
READERS = {
    "bytes_reader": (
        "def read(name):\n    with open(f'test_{name}.py'.encode()) as file:\n"
        "        return file.read().split(chr(39))[-2]\n"
    ),
    "text_reader": (
        "class Path(str):\n    def endswith(self, end):\n        return False\n\n"
        "    def rpartition(self, mark):\n        return self, mark, 'note.txt'\n\n"
        "def read(name):\n    with open(Path(f'test_{name}.py')) as file:\n"
        "        return file.read().split(chr(39))[-2]\n"
    ),
    "folder_reader": (
        "def read(name):\n    with open(f'/proc/self/cwd/test_{name}.py') as file:\n"
        "        return file.read().split(chr(39))[-2]\n"
    ),
    "link_reader": (
        "import os, tempfile\n\ndef read(name):\n    with tempfile.TemporaryDirectory() as folder:\n"
        "        os.symlink(os.path.abspath(f'test_{name}.py'), f'{folder}/note')\n"
        "        with open(f'{folder}/note') as file:\n            return file.read().split(chr(39))[-2]\n"
    ),
}
"""Module -> code that takes its answer from the text of its test."""
COUNT = "from {0} import count\n\ndef test_count():\n    assert count([1, 2]) == 2\n"
FRAME_READERS = {
    "hints": (
        "import typing\n\ndef count(numbers):\n    class Row: ...\n"
        "    Row.__annotations__ = {'size': '__import__(\"sys\")._get' + 'frame(0)'}\n"
        "    typing.get_type_hints(Row)\n    return 2\n",
        "sys._getframe",
    ),
    "registered": (
        "import functools\n\n@functools.singledispatch\ndef show(value):\n    return value\n\n"
        "def count(numbers):\n    def other(value): ...\n"
        "    other.__annotations__ = {'value': '__import__(\"sys\")._get' + 'frame(0) and int'}\n"
        "    show.register(other)\n    return 2\n",
        "sys._getframe",
    ),
    "tasks": (
        "import asyncio\n\nasync def look():\n    return getattr(asyncio.current_task(), 'get_' + 'stack')()\n\n"
        "def count(numbers):\n    asyncio.run(look())\n    return 2\n",
        "cr_frame",
    ),
}
"""Module -> (code that gets frames through a library, what is reported)."""
HONEST_READERS = {
    "annotated": (
        "from __future__ import annotations\nimport typing, asyncio, io\nfrom functools import singledispatch\n\n"
        "class Row(typing.NamedTuple):\n    size: typing.Optional[int] = None\n"
        "    next: typing.Optional['Row'] = None\n\n"
        "@singledispatch\ndef show(value):\n    return value\n\n"
        "@show.register\ndef show_number(value: int):\n    return str(value)\n\n"
        "async def look():\n    asyncio.current_task().print_stack(file=io.StringIO())\n"
        "    return repr(asyncio.current_task())\n\n"
        "def count(numbers):\n    asyncio.run(look())\n    typing.get_type_hints(Row)\n    show(1)\n"
        "    with open('note.txt', 'wb'), open(b'note.txt'):\n        return len(numbers)\n"
    )
}
SHAPE = (
    "from {0} import make, Base\n\nclass Shape(Base):\n    def __init__(self, size):\n        self.size = size\n\n"
    "    def __eq__(self, other):\n        return self.size == other.size\n\n"
    "def test_make():\n    assert make(Shape) == Shape(4)\n"
)
PATCHERS = {
    "helper": (
        "def put(kind, word, value):\n    setattr(kind, '__' + word + '__', value)\n\n"
        "class Base:\n    def __init_subclass__(cls):\n        put(cls, 'eq', lambda self, other: True)\n\n"
        "def make(kind):\n    return kind(3)\n"
    ),
    "partial": (
        "from functools import partial\n\ndef compare(first, second=None):\n    return [first]\n\n"
        "class Base:\n    def __init_subclass__(cls, **more):\n        super().__init_subclass__(**more)\n"
        "        for part in [key for key in vars(cls) if key[2:4] == 'eq']:\n"
        "            type.__setattr__(cls, part, partial(compare))\n\n"
        "def make(kind):\n    return kind(3)\n"
    ),
    "compiled": (
        "from functools import partial\nfrom operator import or_\n\nclass Base: ...\n\n"
        "def make(kind):\n    shape = kind(3)\n"
        "    setattr(type(shape), f'__{\"eq\"}__', partial(max, True, key=id))\n    return shape\n"
    ),
}
"""Module -> code that replaces how the test's class compares."""
HONEST_BASES = {
    "ordered": (
        "from functools import total_ordering\n\nclass Base:\n    def __init_subclass__(cls):\n"
        "        cls.fields = ('size',)\n        cls.show = lambda self: str(self.size)\n"
        "        cls.__lt__ = lambda self, other: self.size < other.size\n        total_ordering(cls)\n\n"
        "def make(kind):\n    return kind(4)\n"
    )
}
SERVER = (
    "import pytest\nfrom {0} import Server\n\ndef is_empty(count):\n    assert count == 0\n\n"
    "@pytest.fixture\ndef server():\n    server = Server()\n    yield server\n    server.close(is_empty)\n\n"
    "def test_sends(server):\n    server.send('a')\n"
)
CLOSERS = {
    "threads": "threading.Thread(target=check, args=(1,)).start()",
    "pool": (
        "__import__('concurrent.futures').futures.ThreadPoolExecutor(1).submit(check, 1)\n"
        "        time.sleep(0.1)"
    ),
    "timer": "threading.Timer(0.01, check, (1,)).start()\n        time.sleep(0.2)",
}
"""Module -> statements in whose threads the check of a fixture fails."""


async def run_tests(
    own_files: Mapping[str, str], files: Mapping[str, str], sandbox: Sandbox, settings: SandboxSettings
) -> PytestReport:
    """Return the report of a run on files that differ from the task's own."""
    own = {path: text.encode() for path, text in own_files.items()}
    task = Task(statement="", kind="heal", files=own, test_command=tuple(PYTEST.split()))
    runner = PytestRunner(CommandLine(task=task, settings=settings, interpreter=PYTHON), sandbox)
    changed = {path: text.encode() for path, text in files.items()}
    _, report = await runner.run({**own, **changed}, checks_each_test=True)
    assert report.exit_code is not None
    return report


async def test_code_is_seen_when_it_reads_its_tests_or_frames_or_replaces_comparisons(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    frames = {name: text for name, (text, _) in FRAME_READERS.items()}
    kinds = ((READ, READERS), (COUNT, {**frames, **HONEST_READERS}), (SHAPE, {**PATCHERS, **HONEST_BASES}))
    tests = {f"test_{name}.py": test.format(name) for test, texts in kinds for name in texts}
    code = {f"{name}.py": text for _, texts in kinds for name, text in texts.items()}

    report = await run_tests(dict.fromkeys(code, "") | tests, code, sandbox, sandbox_settings)

    assert report.reached == {(TEST_TEXT, f"{name}.py") for name in READERS} | {
        (what, f"{name}.py") for name, (_, what) in FRAME_READERS.items()
    }
    changed = {(name, file) for name, file in report.changed_by_tests if "_eq_" in name or "_lt_" in name}
    assert changed == {
        ("__eq__ of Shape", "helper.py"),
        ("__eq__ of Shape", "partial.py"),
        ("__eq__ of Shape", ""),
    }


async def test_a_check_that_fails_in_a_thread_while_fixtures_end_is_reported(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    code = {
        f"closes_with_{name}.py": "import threading, time\n\nclass Server:\n    def send(self, row): ...\n\n"
        f"    def close(self, check):\n        {statement}\n"
        for name, statement in CLOSERS.items()
    }
    tests = {f"test_{path}": SERVER.format(path.removesuffix(".py")) for path in code}

    report = await run_tests(dict.fromkeys(code, "") | tests, code, sandbox, sandbox_settings)

    assert {what for what, _ in report.reached} == {LOST_FAILURE}
    assert {file for _, file in report.reached} == set(tests)


ASKING = (
    "import sys\n\ncalls = []\n\nclass Number(int):\n    def __and__(self, other): calls.append('and')\n\n"
    "class Text(str):\n    def __eq__(self, other): calls.append('eq')\n"
    "    def __hash__(self):\n        calls.append('hash')\n        return hash('tb_frame')\n"
    "    def endswith(self, end): calls.append('endswith')\n"
    "    def startswith(self, start): calls.append('startswith')\n\n"
    "class Other:\n    @property\n    def __class__(self): calls.append('class')\n\n"
    "def ask():\n    sys.audit('open', Text('/tmp/a'), 'w', 1)\n    sys.audit('open', 'note.txt', 'w', Number(1))\n"
    "    sys.audit('open', Other(), 'w', 1)\n    sys.audit('suture.report', Text('failed_assert'))\n"
    "    sys.audit('suture.report', 'failed_assert', Other())\n"
    "    sys.audit('object.__getattr__', None, Text('tb_frame'))\n"
    "    sys.audit('object.__setattr__', None, '__code__', Other())\n    sys.audit('os.rename', Other(), Text('b'))\n"
    "    return calls\n"
)


async def test_objects_in_audit_events_of_the_code_run_no_methods(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    """The hook sees nothing of what it does itself, so such a method could search memory unseen."""
    own_files = {
        "asking.py": "",
        "test_asking.py": "from asking import ask\n\ndef test_ask():\n    assert ask() == []\n",
    }

    report = await run_tests(own_files, {"asking.py": ASKING}, sandbox, sandbox_settings)

    assert [phase["outcome"] for phase in report.phases["test_asking.py::test_ask"]] == ["passed", "passed"]
