"""The zygote's first code: load its modules from stdin, serve, and in a child become the program.

Started as `python -I -S -B -c SOURCE`. The program's code is executed from here, so that its call stack holds
no frame of the zygote. By then, `__main__` is the program's module and no longer this one.
"""

import os
import sys
import types


def load() -> types.ModuleType:
    """Create modules from the first part of stdin, and return the last one.

    It consists of a 4-byte length and pairs `(name, source)` in JSON.
    """
    import json

    def read_exactly(size: int) -> bytes:
        content = b""
        while len(content) < size:
            chunk = os.read(0, size - len(content))
            if not chunk:
                os._exit(0)
            content += chunk
        return content

    for name, source in json.loads(read_exactly(int.from_bytes(read_exactly(4), "big"))):
        module = types.ModuleType(name)
        module.__path__ = []
        sys.modules[name] = module
        exec(compile(source, f"<{name}>", "exec", dont_inherit=True), module.__dict__)
    return module


def leave(fault: "BaseException | None") -> None:
    """End this process as an interpreter does, except for freeing memory, which the kernel does anyway."""
    code: object = 0
    if isinstance(fault, SystemExit):
        code = fault.code
        if code is None or isinstance(code, int):
            code = code or 0
        else:
            print(code, file=sys.stderr)
            code = 1
    elif fault is not None:
        # Without the first frame, which is this module's.
        fault = fault.with_traceback(fault.__traceback__ and fault.__traceback__.tb_next)
        sys.excepthook(type(fault), fault, fault.__traceback__)
        code = 1
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        if "atexit" in sys.modules:
            sys.modules["atexit"]._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            code = code or 120  # the exit code that `Py_FinalizeEx` uses
    os._exit(int(code) & 0xFF)  # type: ignore[call-overload] # the argument of `sys.exit`


_code = load().main()
if _code is not None:
    _scope = types.ModuleType("__main__")
    _scope.__dict__.update(
        __annotations__={},
        __builtins__=sys.modules["builtins"],
        __loader__=getattr(sys.modules["builtins"], "__loader__", None),
    )
    sys.modules["__main__"] = _scope
    try:
        exec(_code, _scope.__dict__)
    except BaseException as _fault:
        leave(_fault)
    else:
        leave(None)
