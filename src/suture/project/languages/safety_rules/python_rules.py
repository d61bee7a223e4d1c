"""Rules for Python, on its syntax tree. Names are followed through imports, not through values."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.project.languages.safety_rules.rule import SafetyRule, UnsafeUse, quoted
from suture.project.python_source.parsing import parsed

RULES = (
    SafetyRule(
        name="python.hidden-code",
        why="it runs code that is encoded, or that comes from the network",
        level="block",
    ),
    SafetyRule(name="python.eval", why="it evaluates text as code"),
    SafetyRule(name="python.exec", why="it runs text as code"),
    SafetyRule(name="python.compile", why="it makes code of text"),
    SafetyRule(name="python.shell", why="it hands a line to a shell"),
    SafetyRule(name="python.process", why="it replaces or starts a process past `subprocess`"),
    SafetyRule(name="python.pickle", why="it loads data that may run code as it is loaded"),
    SafetyRule(name="python.yaml-load", why="YAML without a safe loader makes any object"),
    SafetyRule(name="python.all-interfaces", why="it listens on every address of the machine"),
    SafetyRule(name="python.debug-server", why="a web server in debug mode runs code for its callers"),
    SafetyRule(name="python.tls-off", why="it does not check whom it talks to"),
    SafetyRule(name="python.native-code", why="it loads native code, past all of Python's checks"),
    SafetyRule(name="python.sql", why="it builds a statement of SQL out of text"),
    SafetyRule(name="python.temporary-name", why="the name of a temporary file can be taken by others"),
    SafetyRule(name="python.delete-tree", why="it deletes a folder with all that is in it"),
)
NAMED: Mapping[str, str] = {
    **dict.fromkeys(("eval", "builtins.eval"), "python.eval"),
    **dict.fromkeys(("exec", "builtins.exec", "runpy.run_path", "code.interact"), "python.exec"),
    **dict.fromkeys(("compile", "builtins.compile"), "python.compile"),
    **dict.fromkeys(
        (
            *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn"),
            *("asyncio.create_subprocess_shell", "asyncio.subprocess.create_subprocess_shell"),
        ),
        "python.shell",
    ),
    **dict.fromkeys(
        (
            *(f"os.exec{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
            *(f"os.spawn{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
            *("os.posix_spawn", "os.posix_spawnp", "os.fork", "os.forkpty"),
        ),
        "python.process",
    ),
    **dict.fromkeys(
        (
            *(f"{module}.{name}" for module in ("pickle", "_pickle", "cPickle", "dill", "cloudpickle")
              for name in ("load", "loads", "Unpickler")),
            *("marshal.load", "marshal.loads", "shelve.open", "joblib.load", "jsonpickle.decode"),
            *("pandas.read_pickle", "numpy.loads"),
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
"""A name with its module -> the rule, whether it is called or handed on."""
RUNS_TEXT = ("python.eval", "python.exec", "python.compile")
DECODES = frozenset(
    (
        *("b64decode", "b32decode", "b16decode", "a85decode", "b85decode", "urlsafe_b64decode"),
        *("decodebytes", "unhexlify", "fromhex", "decompress", "a2b_base64", "urlopen"),
    )
)
"""Calls by which what stands in a file, or comes from elsewhere, becomes the text that is run."""
FETCHES = ("requests.", "httpx.", "urllib.request.", "aiohttp.", "codecs.decode", "marshal.load")
STARTS = tuple(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
EVERY_ADDRESS = ("0.0.0.0", "::", "[::]")  # what is looked for
LISTENS = frozenset(
    ("bind", "run", "serve", "start_server", "create_server", "listen", "run_app", "run_simple")
)
STATEMENT = ("select ", "insert ", "update ", "delete ", "drop ", "create ", "alter ", "replace ")
LONGEST_LINE = 1000
DEEPEST = 8
"""Parts of a dotted name that are looked at: a file may hold any number."""


def find_python_uses(path: str, text: str) -> Iterator[UnsafeUse]:
    """Uses in a file of Python, in the order of its lines; none where it is no Python, and so cannot run.

    Args:
        path: Not looked at.
        text: The file.
    """
    del path
    tree = parsed(text)
    if tree is None:
        return
    known = _Names(tree)
    found = {
        (rule, node.lineno, node.col_offset): node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Dict)
        for rule in _rules_of(node, known)
    }
    # As the parser counts them: `splitlines` knows more ends, and would quote another line than is meant.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for (rule, line, _), node in sorted(found.items(), key=lambda item: item[0][1:]):
        yield UnsafeUse(rule=rule, line=line, code=quoted(_source(node, lines)))


class _Names:
    """What the names of a module stand for, as far as its imports tell."""

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

    def of(self, node: ast.expr, deep: int = 0) -> str:
        """A dotted name with its module, such as `os.system`; empty for what is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < DEEPEST:
            parts.append(node.attr)
            node = node.value
        first = self._first(node, deep + 1)
        return ".".join([first, *reversed(parts)]) if first else ""

    def _first(self, node: ast.expr, deep: int) -> str:
        if isinstance(node, ast.Name):
            named = self._meant.get(node.id, "" if node.id in self._own else node.id)
            return {"__builtins__": "builtins"}.get(named, named)
        if not isinstance(node, ast.Call) or not node.args or deep > DEEPEST:
            return ""
        called, asked = self.of(node.func, deep), node.args[-1]
        text = asked.value if isinstance(asked, ast.Constant) and isinstance(asked.value, str) else ""
        if called in ("__import__", "builtins.__import__", "importlib.import_module"):
            first = node.args[0]
            return str(first.value) if isinstance(first, ast.Constant) else ""
        if called == "getattr" and len(node.args) == 2 and text:
            of = self.of(node.args[0], deep)
            return f"{of}.{text}" if of else ""
        return ""


def _rules_of(node: ast.Name | ast.Attribute | ast.Call | ast.Dict, known: _Names) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        rule = NAMED.get(known.of(node)) if isinstance(node.ctx, ast.Load) else None
        if rule:
            yield rule
    elif isinstance(node, ast.Call):
        name = known.of(node.func)
        by_getattr = NAMED.get(known.of(node)) if name == "getattr" else None
        if by_getattr:
            yield by_getattr
        if NAMED.get(name) in RUNS_TEXT and any(_is_hidden(part, known) for part in _given(node)):
            yield "python.hidden-code"
        yield from _rules_of_call(name, node, known)


def _rules_of_call(name: str, node: ast.Call, known: _Names) -> Iterator[str]:
    last = name.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    keywords = {word.arg: word.value for word in node.keywords if word.arg}
    if name in STARTS and "shell" in keywords and not _is(keywords["shell"], False, 0, None):
        yield "python.shell"
    if name in ("yaml.load", "yaml.load_all"):
        loader = keywords.get("Loader") or (node.args[1] if len(node.args) > 1 else None)
        if loader is None or "Safe" not in known.of(loader):
            yield "python.yaml-load"
    if name == "torch.load" and not _is(keywords.get("weights_only"), True):
        yield "python.pickle"
    if "verify" in keywords and _is(keywords["verify"], False):
        yield "python.tls-off"
    if last == "run" and _is(keywords.get("debug"), True):
        yield "python.debug-server"
    if last in LISTENS or "host" in keywords or "bind" in keywords:
        words = [
            part for one in _given(node) for part in (one.elts if isinstance(one, ast.Tuple) else (one,))
        ]
        empty = last == "bind" and bool(node.args) and isinstance(node.args[0], ast.Tuple)
        if any(_is(word, *EVERY_ADDRESS, *([""] if empty else [])) for word in words):
            yield "python.all-interfaces"
    if last in ("execute", "executemany", "executescript") and node.args and _is_made_of_sql(node.args[0]):
        yield "python.sql"


def _given(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(word.value for word in node.keywords)]


def _is(node: ast.expr | None, *values: object) -> bool:
    return isinstance(node, ast.Constant) and any(
        type(node.value) is type(value) and node.value == value for value in values
    )


def _is_hidden(node: ast.expr, known: _Names) -> bool:
    """Whether what is run is decoded or fetched on the spot."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = known.of(part.func)
            last = part.func.attr if isinstance(part.func, ast.Attribute) else name.rpartition(".")[2]
            if last in DECODES or name.startswith(FETCHES):
                return True
    return False


def _is_made_of_sql(node: ast.expr) -> bool:
    """Whether a statement is put together out of parts that are no literals."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
        begins: ast.expr | None = node
    elif isinstance(node, ast.JoinedStr):
        if not any(isinstance(part, ast.FormattedValue) for part in node.values):
            return False
        begins = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        left: ast.expr = node
        for _ in range(DEEPEST):
            if not isinstance(left, ast.BinOp):
                break
            left = left.left
        begins = left
    else:
        return False
    text = begins.value if isinstance(begins, ast.Constant) else ""
    return isinstance(text, str) and text.lstrip().lower().startswith(STATEMENT)


def _source(node: ast.expr, lines: list[str]) -> str:
    """The text of a node; of one over several lines the first few."""
    last = min(node.end_lineno or node.lineno, node.lineno + 3, len(lines))
    return "\n".join(line[:LONGEST_LINE] for line in lines[node.lineno - 1 : last])
