"""Safety rules for Python, which are checked on the syntax tree.

A name is resolved through the imports and simple assignments of its module: after `from os import system as s`, `s`
means `os.system`, and so does `getattr(os, "sys" + "tem")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.project.languages.safety_rules.rule import SafetyRule, UnsafeUse, quote_code
from suture.project.python_source.module_names import ModuleNames
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
    "eval": "python.eval",
    **dict.fromkeys(("exec", "runpy.run_path", "code.interact"), "python.exec"),
    "compile": "python.compile",
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
TEXT_RUNNING_RULES = ("python.eval", "python.exec", "python.compile")
"""Rules for functions that run strings. If the string is decoded or downloaded on the spot, it is hidden code too."""
DECODING_FUNCTIONS = frozenset((
    "b64decode", "b32decode", "b16decode", "a85decode", "b85decode", "urlsafe_b64decode", "decodebytes",
    "unhexlify", "fromhex", "decompress", "a2b_base64", "urlopen",
))  # fmt: skip
"""Calls that decode or download the string that is run."""
FETCHING_PREFIXES = ("requests.", "httpx.", "urllib.request.", "aiohttp.", "codecs.decode", "marshal.load")
"""Beginnings of further names of functions that decode or download, with their modules."""
PROCESS_STARTERS = tuple(
    f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")
)
EVERY_ADDRESS = ("0.0.0.0", "::", "[::]")
"""Addresses that stand for all addresses of the machine."""
LISTENERS = frozenset(
    ("bind", "run", "serve", "start_server", "create_server", "listen", "run_app", "run_simple")
)
"""Functions and methods, of any module, that may get the address on which to listen."""
SQL_STATEMENTS = ("select ", "insert ", "update ", "delete ", "drop ", "create ", "alter ", "replace ")
"""Beginnings of SQL statements, in lower case."""


def find_python_uses(path: str, text: str) -> Iterator[UnsafeUse]:
    """Yield the uses in a Python file, line by line. Invalid Python has none, because it cannot run."""
    del path
    tree = parse_module(text)
    if tree is None:
        return
    names = ModuleNames(tree)
    nodes_by_use = {
        (rule, node.lineno, node.col_offset): node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        for rule in _find_rules(node, names)
    }
    # Count lines as the parser does: `splitlines` splits at further characters.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for (rule, line, _), node in sorted(nodes_by_use.items(), key=lambda item: item[0][1:]):
        yield UnsafeUse(rule=rule, line=line, code=quote_code(_source(node, lines)))


def _find_rules(
    node: ast.Name | ast.Attribute | ast.Call | ast.Subscript, names: ModuleNames
) -> Iterator[str]:
    """Yield the names of the rules that a node alone violates."""
    if isinstance(node, ast.Name | ast.Attribute):
        rule = RULE_BY_NAME.get(names.resolve(node)) if isinstance(node.ctx, ast.Load) else None
        if rule:
            yield rule
        return
    # `getattr(os, "system")` means the same as `os.system`.
    rule = RULE_BY_NAME.get(names.resolve(node)) if names.find_access(node) else None
    if rule:
        yield rule
    if isinstance(node, ast.Call):
        name = names.resolve(node.func)
        runs_text = RULE_BY_NAME.get(name) in TEXT_RUNNING_RULES
        if runs_text and any(_is_hidden(argument, names) for argument in _all_arguments(node)):
            yield "python.hidden-code"
        yield from _find_call_rules(name, node, names)


def _find_call_rules(name: str, node: ast.Call, names: ModuleNames) -> Iterator[str]:
    """Yield the names of the rules that depend on a call's arguments."""
    last_name = name.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    has_shell = "shell" in keywords and not _is_constant(keywords["shell"], False, 0, None)
    if name in PROCESS_STARTERS and has_shell:
        yield "python.shell"
    if name in ("yaml.load", "yaml.load_all"):
        loader = keywords.get("Loader") or (node.args[1] if len(node.args) > 1 else None)
        if loader is None or "Safe" not in names.resolve(loader):  # `SafeLoader` or `CSafeLoader`
            yield "python.yaml-load"
    if name == "torch.load" and not _is_constant(keywords.get("weights_only"), True):
        yield "python.pickle"
    if "verify" in keywords and _is_constant(keywords["verify"], False):
        yield "python.tls-off"
    if last_name == "run" and _is_constant(keywords.get("debug"), True):
        yield "python.debug-server"
    if last_name in LISTENERS or "host" in keywords or "bind" in keywords:
        values: list[ast.expr] = []
        for argument in _all_arguments(node):
            values += argument.elts if isinstance(argument, ast.Tuple) else [argument]
        # In `bind(("", 80))`, the empty host means every address.
        is_socket_address = last_name == "bind" and bool(node.args) and isinstance(node.args[0], ast.Tuple)
        addresses = (*EVERY_ADDRESS, "") if is_socket_address else EVERY_ADDRESS
        if any(_is_constant(value, *addresses) for value in values):
            yield "python.all-interfaces"
    if last_name in ("execute", "executemany", "executescript") and node.args and _builds_sql(node.args[0]):
        yield "python.sql"


def _all_arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(word.value for word in node.keywords)]


def _is_constant(node: ast.expr | None, *values: object) -> bool:
    """Return whether an expression is one of some constants; `0` is not `False` here."""
    return isinstance(node, ast.Constant) and any(
        type(node.value) is type(value) and node.value == value for value in values
    )


def _is_hidden(node: ast.expr, names: ModuleNames) -> bool:
    """Return whether an expression that is run decodes or downloads its code on the spot."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = names.resolve(part.func)
            last_name = part.func.attr if isinstance(part.func, ast.Attribute) else name.rpartition(".")[2]
            if last_name in DECODING_FUNCTIONS or name.startswith(FETCHING_PREFIXES):
                return True
    return False


def _builds_sql(node: ast.expr) -> bool:
    """Return whether an SQL statement is built from parts that are not literals."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
        beginning: ast.expr | None = node
    elif isinstance(node, ast.JoinedStr):
        if not any(isinstance(part, ast.FormattedValue) for part in node.values):
            return False
        beginning = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        left: ast.expr = node
        for _ in range(MAX_NAME_PARTS):
            if not isinstance(left, ast.BinOp):
                break
            left = left.left
        beginning = left
    else:
        return False
    text = beginning.value if isinstance(beginning, ast.Constant) else ""
    return isinstance(text, str) and text.lstrip().lower().startswith(SQL_STATEMENTS)


def _source(node: ast.expr, lines: list[str]) -> str:
    """Return the source of a node; of a node over several lines, the first few."""
    # Three further lines are more than a finding can quote of ordinary code. Chosen by judgement.
    last_line = min(node.end_lineno or node.lineno, node.lineno + 3, len(lines))
    return "\n".join(line[:MAX_SOURCE_LINE_CHARS] for line in lines[node.lineno - 1 : last_line])
