"""Code that tells a test run from an ordinary one by its process is reported, and usual code is not."""

from __future__ import annotations

import pytest

from suture.judge.capabilities import find_change_capabilities, find_file_capabilities

RECOGNISED = {
    "bytes of a name": "import os\ndef f():\n    return os.environ.get(str(b'XPYTEST_X'))\n",
    "the environment in bytes": "import os\ndef f():\n    return len(os.environb)\n",
    "a variable in a text": "import os\ndef f():\n    return os.path.expandvars('${PYTEST_VERSION}/x')\n",
    "a loop over a copy": "import os\nkept = os.environ.copy()\ndef f():\n    return max(len(name) for name in kept)\n",
    "a merged copy": "import os\nkept = {**os.environ}\ndef f():\n    return [name[:3] for name in kept.keys()]\n",
    "a timer": "import signal\ndef f():\n    return signal.getitimer(signal.ITIMER_REAL)[0] > 0\n",
    "a limit of the process": "import resource\ndef f():\n    return resource.getrlimit(resource.RLIMIT_NPROC)\n",
    "a small process number": "from os import getpid\ndef f():\n    return 1 if getpid() <= 500 else 2\n",
    "standard input": "import os\ndef f():\n    return os.fstat(0).st_ino\n",
    "the kind of a stream": "import sys\ndef f():\n    return type(sys.stdout)\n",
    "handlers of a parent": "import logging\nlog = logging.getLogger(__name__)\ndef f():\n"
    "    return log.parent.handlers\n",
    "recorded warnings": "import warnings\ndef f():\n    with warnings.catch_warnings(record=True) as seen:\n"
    "        return seen\n",
    "the age of the process": "import time\nborn = time.monotonic()\ndef f():\n"
    "    return time.monotonic() - born < 90\n",
    "a date": "import datetime\ndef f():\n    return datetime.date.today().year <= 2031\n",
    "counted calls": "from itertools import count\nturns = count()\ndef f():\n    return next(turns) > 25\n",
    "the host": "import socket\ndef f():\n    return socket.gethostname() == 'work'\n",
    "a kind of host": "import platform, re\nname = platform.node()\ndef f():\n    return re.match('[a-f]+', name)\n",
    "the user": "from getpass import getuser\ndef f():\n    return getuser() in ('root', 'nobody')\n",
    "the home": "from pathlib import Path\ndef f():\n    return str(Path.home()).startswith('/root')\n",
    "the folder": "import os\ndef f():\n    return os.path.basename(os.getcwd()) != 'shop'\n",
    "a path to the tests": "import sys\ndef f():\n    return 'tests' in sys.path[0]\n",
    "the name of a stream": "import sys\ndef f():\n    return sys.stdout.name != '<stdout>'\n",
    "a debug run": "def f():\n    return 1 if __debug__ else 2\n",
    "an address of an example": "def f(mail):\n    return mail.endswith('@example.com')\n",
    "the folder of a test": "def f(folder):\n    return 'test_line' in folder.name\n",
    "a double": "def f(store):\n    return type(store).__name__.startswith('Fake')\n",
    "the module of a double": "def f(store):\n    return type(store).__module__.startswith('test')\n",
    "a number of calls": "calls = 0\ndef f():\n    global calls\n    calls += 1\n    return calls < 4\n",
    "a number in a closure": "def make():\n    at = 0\n    async def f():\n        nonlocal at\n        at += 1\n"
    "        return [3, 8, 1][at - 1]\n    return f\n",
    "prepared answers": "left = [3, 8, 1]\ndef f():\n    return left.pop(0)\n",
    "an iterator of answers": "left = iter((3, 8, 1))\nasync def f():\n    return next(left)\n",
    "the depth of the stack": "def deep(n):\n    try:\n        return deep(n + 1)\n    except RecursionError:\n"
    "        return n\n",
}  # fmt: skip
USUAL = {
    "an environment for a child": "import os, subprocess\ndef f(argv):\n    env = dict(os.environ, A='1')\n"
    "    other = os.environ.copy()\n    subprocess.run(argv, env=env)\n    other.update(env)\n"
    "    return merge(other)\n",
    "a deadline": "import time\ndef f(end_s, wait_s):\n    start = time.monotonic()\n"
    "    while time.monotonic() < end_s and time.monotonic() - start < wait_s:\n        pass\n",
    "an interval": "import time\nclass A:\n    def f(self):\n        return time.time() - self.last > 5\n",
    "a lock file": "import os\ndef f(owner):\n    return os.getpid() == owner or f'lock-{os.getpid()}'\n",
    "a handler of its own": "import logging\nlog = logging.getLogger('a')\nif not log.handlers:\n"
    "    log.addHandler(logging.NullHandler())\n",
    "a deep parser": "def f(text):\n    try:\n        return parse(text)\n    except RecursionError:\n"
    "        raise ValueError('too deep') from None\n",
    "a relative path": "import os\ndef f(path):\n    return path.startswith(os.getcwd()) or os.getcwd() == '/'\n",
    "a number for each object": "last = 0\ndef f():\n    global last\n    last += 1\n    return last\n",
    "a depth": "depth = 0\ndef f(n):\n    global depth\n    depth += 1\n    try:\n        return depth > 9 or f(n)\n"
    "    finally:\n        depth -= 1\n",
    "a queue": "left = []\ndef f(n):\n    left.append(n)\n    return left.pop()\n",
    "its own list": "def f():\n    left = [3, 8, 1]\n    return left.pop()\n",
    "a command": "def f(command, name):\n    return command == 'test' or name.startswith('fake')\n",
    "colours in a circle": "from itertools import cycle\ncolours = cycle(['r', 'g', 'b'])\ndef f():\n"
    "    return next(colours)\n",
    "names of tests": "def f(names):\n    return [name for name in names if name.startswith('test_')]\n",
    "a function that tests": "from .primes import miller_rabin_test\nfrom scipy.stats import binom_test\n",
    "a link to an example": "def f():\n    return 'https://example.com/docs'\n",
    "prose": "def f():\n    \"\"\"Run PYTEST or unittest with this.\"\"\"\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", RECOGNISED)
def test_a_look_at_the_process_is_reported(kind: str) -> None:
    codes = {use.code for use in find_file_capabilities("a.py", "", RECOGNISED[kind])}

    assert codes & {"detects_environment", "inspects_callers"}


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("test_line", True), ("test_lin", True), ("test_line0", True), ("test_loss", False)],
)
def test_a_name_is_that_of_a_test_only_if_a_test_has_it(text: str, is_found: bool) -> None:
    files = {"a.py": b"", "test_a.py": b"def test_line():\n    assert f({'test_loss': 1}) == 1\n"}
    uses = find_change_capabilities(files, {"a.py": f"def f(n):\n    return {text!r} in n\n"})

    assert [use.name for use in uses] == [text] * is_found


@pytest.mark.parametrize("kind", USUAL)
def test_usual_code_is_not_reported(kind: str) -> None:
    assert find_file_capabilities("a.py", "", USUAL[kind]) == ()
