"""Python code in a request behaves as with `python -I -S -B -c`, in a warm and in a cold sandbox."""

from __future__ import annotations

import subprocess

import pytest

from suture.sandbox import BubblewrapSandbox, ProgramLimits, RunRequest, get_own_interpreter

PROGRAMS = {
    "output": "import sys; print('out', end=''); sys.stderr.write('err')",
    "exit code": "raise SystemExit(7)",
    "exit text": "import sys; print('first'); sys.exit('last words')",
    "exit in a function": "import sys\ndef f(): sys.exit(3)\nf()",
    "an exception": "def f(x): return 1 / x\nprint('before')\nf(0)",
    "a cause": "try: {}['a']\nexcept KeyError as fault: raise ValueError('b') from fault",
    "no syntax": "print('never'\n",
    "an assert": "assert 1 == 2, 'no'",
    "a hook": "import sys; sys.excepthook = lambda *_: print('hooked'); 1 / 0",
    "exit handlers": "import atexit; atexit.register(print, 'at exit'); print('first')",
    "a thread that goes on": (
        "import threading, time\n"
        "def late(): time.sleep(0.2); print('late')\n"
        "threading.Thread(target=late).start(); print('early')"
    ),
    "a thread that need not": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print(1)"
    ),
    "its names": "import sys, __main__ as m; print(m, __name__, sys.argv, sys.path, sorted(vars(m)))",
    "its flags": "import sys; print(sys.flags, sys.warnoptions, sys.stdout.encoding, sys.stdin.errors)",
    "its limits": "import sys, gc; print(sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold())",
    "classes": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "stdin": "import sys; print(input(), sys.stdin.read().upper())",
    "bytes": r"import os, sys; sys.stdout.buffer.write(b'\xff\0'); sys.stdout.flush(); os.write(1, b'x')",
    "surrogates": r"print('\udc80')",
    "modules of ours": "import sys; print([n for n in sys.modules if 'suture' in n])\nimport suture",
    "suppressed flush": "import os; print('lost'); os._exit(4)",
    "a closed stdout": "import sys; sys.stdout.close()",
    "a child": "import os; pid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint(pid > 0)",
    "a signal": "import os; os.kill(os.getpid(), 9)",
    "an abort": "import os; os.abort()",
    "its signals": "import signal as s; print([s.getsignal(n) for n in (2, 13)], s.pthread_sigmask(0, []))",
    "descriptors": "import os; print([fd for fd in range(64) if os.path.exists(f'/proc/self/fd/{fd}')])",
    "the stack": "import sys; f = sys._getframe(); print(f.f_code.co_filename, f.f_lineno)",
    "types": "from __future__ import annotations\ndef f(x: Nope) -> List: ...\nprint(f.__annotations__)",
    "no future of ours": "def f(x: int): ...\nprint(f.__annotations__)",
}
STDIN = b"first line\nthe rest"


@pytest.mark.parametrize("name", PROGRAMS)
async def test_code_behaves_as_in_a_fresh_interpreter(sandbox: BubblewrapSandbox, name: str) -> None:
    code = PROGRAMS[name]
    result = await sandbox.run(RunRequest(python=code, stdin=STDIN, limits=ProgramLimits(wall_s=30)))
    expected = subprocess.run(
        [get_own_interpreter().executable, "-I", "-S", "-B", "-c", code],
        input=STDIN,
        env={"LANG": "C.UTF-8"},
        capture_output=True,
        timeout=30,
        check=False,
    )
    returncode = -result.signal if result.signal is not None else result.exit_code

    assert (returncode, result.stdout, result.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )
