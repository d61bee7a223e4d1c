"""Safety rules for Python, on its syntax tree. Names are resolved through imports, not through values."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.project.languages.safety_rules.rule import SafetyRule, UnsafeUse, quote_code
from suture.project.python_source.parsing import parse_module
from suture.project.tuning import MAX_NAME_PARTS, MAX_SOURCE_LINE_CHARS

RULES = (
    SafetyRule(
        name="python.hidden-code",
        why="it runs code that is encoded, or that comes from the network",
        level="block",
    ),
    SafetyRule(name="python.eval", why="it evaluates text as code"),
    SafetyRule(name="python.exec", why="it runs text as code"),
    SafetyRule(name="python.compile", why="it compiles text to code"),
    SafetyRule(name="python.shell", why="it passes a line to a shell"),
    SafetyRule(name="python.process", why="it replaces or starts a process without `subprocess`"),
    SafetyRule(name="python.pickle", why="it loads data that may run code while it is loaded"),
    SafetyRule(name="python.yaml-load", why="YAML without a safe loader creates arbitrary objects"),
    SafetyRule(name="python.all-interfaces", why="it listens on every address of the machine"),
    SafetyRule(name="python.debug-server", why="a web server in debug mode runs code for its callers"),
    SafetyRule(name="python.tls-off", why="it does not verify the other side of a connection"),
    SafetyRule(name="python.native-code", why="it loads native code, without any of Python's checks"),
    SafetyRule(name="python.sql", why="it builds an SQL statement from text"),
    SafetyRule(name="python.temporary-name", why="others can take the name of the temporary file"),
    SafetyRule(name="python.delete-tree", why="it deletes a folder with its content"),
)
RULE_BY_NAME: Mapping[str, str] = {
    **dict.fromkeys(("eval", "builtins.eval"), "python.eval"),
    **dict.fromkeys(("exec", "builtins.exec", "runpy.run_path", "code.interact"), "python.exec"),
    **dict.fromkeys(("compile", "builtins.compile"), "python.compile"),
    **dict.fromkeys(
        (
            "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn",
            "asyncio.create_subprocess_shell", "asyncio.subprocess.create_subprocess_shell",
        ),
        "python.shell",
    ),
    **dict.fromkeys(
        (
            *(f"os.exec{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
            *(f"os.spawn{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
            "os.posix_spawn", "os.posix_spawnp", "os.fork", "os.forkpty",
        ),
        "python.process",
    ),
    **dict.fromkeys(
        (
            *(f"{module}.{name}" for module in ("pickle", "_pickle", "cPickle", "dill", "cloudpickle")
              for name in ("load", "loads", "Unpickler")),
            "marshal.load", "marshal.loads", "shelve.open", "joblib.load", "jsonpickle.decode",
            "pandas.read_pickle", "numpy.loads",
        ),
        "python.pickle",
    ),
    **dict.fromkeys(("yaml.unsafe_load", "yaml.unsafe_load_all"), "python.yaml-load"),
    **dict.fromkeys(("ssl._create_unverified_context", "ssl.CERT_NONE"), "python.tls-off"),
    **dict.fromkeys(
        ("ctypes.CDLL", "ctypes.cdll", "ctypes.PyDLL", "ctypes.pythonapi", "cffi.FFI"), "python.native-code"
    ),
    "tempfile.mktemp": "python.temporary-name",
    "shutil.rmtree": "python.delete-tree",
}  # fmt: skip
"""A name with its module -> its rule, whether it is called or passed on."""
RUNS_TEXT = ("python.eval", "python.exec", "python.compile")
DECODES = frozenset(
    (
        "b64decode",
        "b32decode",
        "b16decode",
        "a85decode",
        "b85decode",
        "urlsafe_b64decode",
        "decodebytes",
        "unhexlify",
        "fromhex",
        "decompress",
        "a2b_base64",
        "urlopen",
    )
)
"""Calls that decode or download the text that is run."""
FETCHES = ("requests.", "httpx.", "urllib.request.", "aiohttp.", "codecs.decode", "marshal.load")
PROCESS_STARTERS = tuple(
    f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")
)
EVERY_ADDRESS = ("0.0.0.0", "::", "[::]")
LISTENERS = frozenset(
    ("bind", "run", "serve", "start_server", "create_server", "listen", "run_app", "run_simple")
)
SQL_STATEMENTS = ("select ", "insert ", "update ", "delete ", "drop ", "create ", "alter ", "replace ")


def find_python_uses(path: str, text: str) -> Iterator[UnsafeUse]:
    """Yield the uses in a Python file, in the order of lines. Invalid Python has none, because it cannot run.

    Args:
        path: Ignored.
        text: Text of the file.
    """
    del path
    tree = parse_module(text)
    if tree is None:
        return
    known = _Names(tree)
    found = {
        (rule, node.lineno, node.col_offset): node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Dict)
        for rule in _rules_of(node, known)
    }
    # Count lines as the parser does: `splitlines` splits at further characters.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for (rule, line, _), node in sorted(found.items(), key=lambda item: item[0][1:]):
        yield UnsafeUse(rule=rule, line=line, code=quote_code(_source(node, lines)))


class _Names:
    """The meaning of the names in a module, as far as its imports show."""

    def __init__(self, tree: ast.Module) -> None:
        self._meant: dict[str, str] = {}
        own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        self._own = own
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    whole = name.name if name.asname else name.name.partition(".")[0]
                    self._meant[name.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for name in node.names:
                    self._meant[name.asname or name.name] = f"{node.module}.{name.name}"

    def resolve(self, node: ast.expr, deep: int = 0) -> str:
        """Return a dotted name with its module, such as `os.system`; empty if the expression is not a
        name.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < MAX_NAME_PARTS:
            parts.append(node.attr)
            node = node.value
        first = self._first(node, deep + 1)
        return ".".join([first, *reversed(parts)]) if first else ""

    def _first(self, node: ast.expr, deep: int) -> str:
        if isinstance(node, ast.Name):
            named = self._meant.get(node.id, "" if node.id in self._own else node.id)
            return {"__builtins__": "builtins"}.get(named, named)
        if not isinstance(node, ast.Call) or not node.args or deep > MAX_NAME_PARTS:
            return ""
        called, last_argument = self.resolve(node.func, deep), node.args[-1]
        text = (
            last_argument.value
            if isinstance(last_argument, ast.Constant) and isinstance(last_argument.value, str)
            else ""
        )
        if called in ("__import__", "builtins.__import__", "importlib.import_module"):
            first = node.args[0]
            return str(first.value) if isinstance(first, ast.Constant) else ""
        if called == "getattr" and len(node.args) == 2 and text:
            of = self.resolve(node.args[0], deep)
            return f"{of}.{text}" if of else ""
        return ""


def _rules_of(node: ast.Name | ast.Attribute | ast.Call | ast.Dict, known: _Names) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        rule = RULE_BY_NAME.get(known.resolve(node)) if isinstance(node.ctx, ast.Load) else None
        if rule:
            yield rule
    elif isinstance(node, ast.Call):
        name = known.resolve(node.func)
        by_getattr = RULE_BY_NAME.get(known.resolve(node)) if name == "getattr" else None
        if by_getattr:
            yield by_getattr
        if RULE_BY_NAME.get(name) in RUNS_TEXT and any(_is_hidden(part, known) for part in _given(node)):
            yield "python.hidden-code"
        yield from _rules_of_call(name, node, known)


def _rules_of_call(name: str, node: ast.Call, known: _Names) -> Iterator[str]:
    last = name.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    keywords = {word.arg: word.value for word in node.keywords if word.arg}
    if name in PROCESS_STARTERS and "shell" in keywords and not _is(keywords["shell"], False, 0, None):
        yield "python.shell"
    if name in ("yaml.load", "yaml.load_all"):
        loader = keywords.get("Loader") or (node.args[1] if len(node.args) > 1 else None)
        if loader is None or "Safe" not in known.resolve(loader):
            yield "python.yaml-load"
    if name == "torch.load" and not _is(keywords.get("weights_only"), True):
        yield "python.pickle"
    if "verify" in keywords and _is(keywords["verify"], False):
        yield "python.tls-off"
    if last == "run" and _is(keywords.get("debug"), True):
        yield "python.debug-server"
    if last in LISTENERS or "host" in keywords or "bind" in keywords:
        words = [
            part for one in _given(node) for part in (one.elts if isinstance(one, ast.Tuple) else (one,))
        ]
        empty = last == "bind" and bool(node.args) and isinstance(node.args[0], ast.Tuple)
        if any(_is(word, *EVERY_ADDRESS, *([""] if empty else [])) for word in words):
            yield "python.all-interfaces"
    if last in ("execute", "executemany", "executescript") and node.args and _builds_sql(node.args[0]):
        yield "python.sql"


def _given(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(word.value for word in node.keywords)]


def _is(node: ast.expr | None, *values: object) -> bool:
    return isinstance(node, ast.Constant) and any(
        type(node.value) is type(value) and node.value == value for value in values
    )


def _is_hidden(node: ast.expr, known: _Names) -> bool:
    """Return whether an expression that is run decodes or downloads its text on the spot."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = known.resolve(part.func)
            last = part.func.attr if isinstance(part.func, ast.Attribute) else name.rpartition(".")[2]
            if last in DECODES or name.startswith(FETCHES):
                return True
    return False


def _builds_sql(node: ast.expr) -> bool:
    """Return whether an SQL statement is built from parts that are not literals."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
        begins: ast.expr | None = node
    elif isinstance(node, ast.JoinedStr):
        if not any(isinstance(part, ast.FormattedValue) for part in node.values):
            return False
        begins = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        left: ast.expr = node
        for _ in range(MAX_NAME_PARTS):
            if not isinstance(left, ast.BinOp):
                break
            left = left.left
        begins = left
    else:
        return False
    text = begins.value if isinstance(begins, ast.Constant) else ""
    return isinstance(text, str) and text.lstrip().lower().startswith(SQL_STATEMENTS)


def _source(node: ast.expr, lines: list[str]) -> str:
    """Return the text of a node; of a node over several lines, the first few."""
    last = min(node.end_lineno or node.lineno, node.lineno + 3, len(lines))
    return "\n".join(line[:MAX_SOURCE_LINE_CHARS] for line in lines[node.lineno - 1 : last])
