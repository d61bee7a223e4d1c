"""Find calls of a Python file that write at a path inside the project, as far as the source of the path shows.

A relative path is inside the project, because tests run in its folder. A path that is a parameter or an attribute
is the caller's choice, and not a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.project.python_source.module_names import ModuleNames
from suture.project.tuning import MAX_NAME_PARTS

PATH_FUNCTIONS = (
    "Path", "PurePath", "PosixPath", "str", "fspath", "join", "abspath", "dirname", "realpath", "normpath",
)  # fmt: skip
"""Functions whose result is in the project if their first argument is."""
FOLDER_FUNCTIONS = ("os.getcwd", "pathlib.Path.cwd")
"""Functions that return the current folder, which is the project's while tests run."""
PATH_CLASSES = ("pathlib.Path", "pathlib.PosixPath")
"""Classes whose methods may write files."""
OPENING_FUNCTIONS = (
    "open", "io.open", "io.FileIO", "codecs.open", "gzip.open", "gzip.GzipFile", "bz2.open", "bz2.BZ2File",
    "lzma.open", "lzma.LZMAFile", "zipfile.ZipFile", "tarfile.open",
)  # fmt: skip
"""Functions that get a path and a mode."""
WRITING_FUNCTIONS = {
    **dict.fromkeys(
        (
            "os.replace", "os.rename", "os.renames", "os.remove", "os.unlink", "os.rmdir", "os.truncate", "os.link",
            "os.symlink", "shutil.rmtree", "shutil.move", "shutil.make_archive",
        ),
        0,
    ),
    **dict.fromkeys(
        (
            "sqlite3.connect", "shelve.open", "dbm.open", "logging.FileHandler", "logging.handlers.RotatingFileHandler",
            "logging.handlers.TimedRotatingFileHandler", "logging.handlers.WatchedFileHandler",
        ),
        0,
    ),
    **dict.fromkeys(
        ("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.unpack_archive"), 1
    ),
}  # fmt: skip
"""Function -> the first of its arguments that is a path that it changes."""
WRITTEN_KEYWORDS = {
    **dict.fromkeys(("dst", "extract_dir"), ("shutil.", "os.")),
    "filename": ("logging.",),
    "dir": ("tempfile.",),
}
"""Keyword -> beginnings of the functions that write at its value."""
WRITING_FLAGS = frozenset(("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"))
"""Flags of `os.open`."""
ARCHIVE_MODULES = ("zipfile", "tarfile")
"""Modules whose objects have `extractall`, which writes into the current folder if it gets no other."""
WRITING_METHODS = (
    "write_text", "write_bytes", "unlink", "rename", "replace", "rmdir", "touch", "symlink_to", "hardlink_to",
)  # fmt: skip
"""Methods of a path that change the file or folder there."""


def find_written_path(node: ast.Call, names: ModuleNames) -> str | None:
    """Return the source of a path inside the project at which a call writes, or `None`."""
    return next(
        (ast.unparse(path) for path in _written_paths(node, names) if _is_in_project(path, names)), None
    )


def _written_paths(node: ast.Call, names: ModuleNames) -> Iterator[ast.expr]:
    """Yield the paths at which a call writes, wherever they are."""
    function = names.resolve(node.func)
    for word in node.keywords:
        if function.startswith(WRITTEN_KEYWORDS.get(word.arg or "", "-")):
            yield word.value
    if function in OPENING_FUNCTIONS:
        yield from node.args[:1] if _is_writing_mode(node, 1, names) else []
    elif function == "os.open":
        flags = {
            part.attr
            for argument in node.args[1:]
            for part in ast.walk(argument)
            if isinstance(part, ast.Attribute)
        }
        yield from node.args[:1] if flags & WRITING_FLAGS else []
    elif function in WRITING_FUNCTIONS:
        yield from node.args[WRITING_FUNCTIONS[function] : 2]
    elif isinstance(node.func, ast.Attribute):
        method, owner = node.func.attr, node.func.value
        if method == "extractall" and names.imports_any(ARCHIVE_MODULES):
            folders = [word.value for word in node.keywords if word.arg == "path"]
            yield from (folders or node.args or [ast.Constant(value=".")])[:1]
        writes = method in WRITING_METHODS or (method == "open" and _is_writing_mode(node, 0, names))
        # `"a.b".replace(".", "/")` writes nothing.
        if writes and _is_path_object(owner, names):
            yield owner


def _is_writing_mode(node: ast.Call, position: int, names: ModuleNames) -> bool:
    modes = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    mode = modes[0] if modes else node.args[position] if len(node.args) > position else None
    text = names.fold_text(mode) if mode is not None else None
    return text is not None and bool({*text} & {*"wax+"})


def _is_path_object(node: ast.expr, names: ModuleNames, depth: int = 0) -> bool:
    if depth > MAX_NAME_PARTS:
        return False
    if isinstance(node, ast.Name) and node.id in names.assigned:
        return _is_path_object(names.assigned[node.id], names, depth + 1)
    if isinstance(node, ast.Call):
        is_path = names.resolve(node.func) in (*PATH_CLASSES, *FOLDER_FUNCTIONS[1:])
        is_method = isinstance(node.func, ast.Attribute) and _is_path_object(
            node.func.value, names, depth + 1
        )
        return is_path or is_method
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _is_path_object(node.left, names, depth + 1)
    return isinstance(node, ast.Attribute | ast.Subscript) and _is_path_object(node.value, names, depth + 1)


def _is_in_project(node: ast.expr, names: ModuleNames, depth: int = 0) -> bool:
    """Return whether a path is relative or begins at the module's own file."""
    if depth > MAX_NAME_PARTS:
        return False
    text = names.fold_text(node)
    if text is not None or isinstance(node, ast.Constant):
        # A string that begins with a placeholder may become any path, and `:memory:` is a database without a file.
        return (text or "")[:1] not in ("", "/", "~", "\\", "<", "{", "%", ":")
    is_file_name = isinstance(node, ast.Name) and node.id == "__file__"
    is_own_file = is_file_name or (isinstance(node, ast.Attribute) and node.attr == "__file__")
    if is_own_file or (isinstance(node, ast.Call) and names.resolve(node.func) in FOLDER_FUNCTIONS):
        return True
    first = _get_first_part(node, names)
    return first is not None and _is_in_project(first, names, depth + 1)


def _get_first_part(node: ast.expr, names: ModuleNames) -> ast.expr | None:
    """Return the expression that a path begins with, or `None` if that is not known."""
    if isinstance(node, ast.Name):
        return names.assigned.get(node.id)
    if isinstance(node, ast.JoinedStr):
        return node.values[0] if node.values else None
    if isinstance(node, ast.BinOp):
        return node.left
    if isinstance(node, ast.FormattedValue | ast.Attribute | ast.Subscript):
        return node.value
    if isinstance(node, ast.Call):
        function = names.resolve(node.func)
        if function and function.rpartition(".")[2] in PATH_FUNCTIONS:
            return node.args[0] if node.args else None
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    return None
