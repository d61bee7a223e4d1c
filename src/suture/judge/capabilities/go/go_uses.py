"""Find what a Go file uses of the test machinery and of the runtime, in its syntax tree.

Find calls of a Go file that write at a path inside the project, as far as the source of the path shows.

A relative path is inside the project, because `go test` runs in the package's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.records import CapabilityCode
from suture.judge.capabilities.go.go_comparisons import find_comparison_uses
from suture.judge.capabilities.kept_state import find_kept_state
from suture.judge.capabilities.surroundings import find_surrounding_uses
from suture.judge.capabilities.use import (
    ENTRY_FUNCTION,
    TEST_FILE_NAME,
    TEST_VARIABLE,
    Use,
    find_path_uses,
)
from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_text, walk
from suture.mutation.tree_sitter.value_kinds import STRINGS
from suture.project.tuning import MAX_NAME_PARTS

if TYPE_CHECKING:
    from tree_sitter import Node


IMPORT_CODES: dict[str, CapabilityCode] = {
    "unsafe": "reaches_memory",
    "C": "reaches_memory",
    "plugin": "reaches_memory",
    "runtime/debug": "reaches_memory",
    "runtime/pprof": "inspects_callers",
    "testing": "imports_test_machinery",
    "os/exec": "starts_test_process",
}
"""Imported package -> what its use means."""
CALL_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        ("Callers", "Caller", "CallersFrames", "FuncForPC", "Stack", "GoroutineProfile"), "inspects_callers"
    ),
    **dict.fromkeys(("RawSyscall", "RawSyscall6", "Syscall", "Syscall6", "Mmap"), "reaches_memory"),
    **dict.fromkeys(("PtraceAttach", "PtracePeekData", "PtracePokeData"), "reaches_memory"),
    # Tests with goroutines do not notice that one of them ends before its assertion.
    **dict.fromkeys(("Exec", "Kill", "Dup2", "Dup3", "Goexit"), "ends_process"),
    **dict.fromkeys(("ForkExec", "StartProcess"), "starts_test_process"),
}
"""Function of `runtime`, `syscall` or `os` -> what its use means."""
CALLED_PACKAGES = ("runtime", "syscall", "golang.org/x/sys/unix")
MEMORY_METHODS = ("UnsafeAddr", "UnsafePointer", "NewAt")
"""Functions of `reflect` that reach unexported fields and any memory."""
PATCHED_TARGET = re.compile(r"os\.(?:Args|Std\w+)|flag\.CommandLine")
"""A variable of Go's library that is shared with package `testing`."""
PREDECLARED = frozenset((
    "append", "bool", "byte", "cap", "close", "complex", "copy", "delete", "error", "false", "float32", "float64",
    "imag", "int", "int8", "int16", "int32", "int64", "iota", "len", "make", "new", "nil", "panic", "print", "println",
    "real", "recover", "rune", "string", "true", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr",
))  # fmt: skip
"""Names of the language that tests in the same package use. Packages for older versions of Go define `max`, `any`."""
GO_FUNCTIONS = ("function_declaration", "method_declaration")
DECLARATIONS = ("function_declaration", "const_spec", "var_spec", "type_spec", "type_alias")
ENVIRONMENT_CALLS = ("os.Executable", "os.Environ")
"""Functions that show the name of a test program, or all variables of the environment."""
STATE_CALLS = (
    "flag.Parsed",
    "flag.NFlag",
    "flag.Visit",
    "flag.VisitAll",
    "flag.Lookup",
    "runtime.NumGoroutine",
    "flag.CommandLine.Parsed",
    "flag.CommandLine.NFlag",
    "flag.CommandLine.Visit",
    "flag.CommandLine.VisitAll",
    "flag.CommandLine.Lookup",
    "os.Stdout.Stat",
    "os.Stderr.Stat",
)
"""Functions that show how a program was started, and what else runs in it."""
SETTING_CALLS = ("os.Setenv", "os.Unsetenv", "syscall.Setenv", "syscall.Unsetenv")
OBSERVED_VARIABLES = ("TZ", "GODEBUG")
"""Variables of the environment by which the runtime computes what tests observe, such as local times."""
FOLDER_LISTING = (
    "os.ReadDir", "os.Open", "os.DirFS", "ioutil.ReadDir", "filepath.Glob", "filepath.Walk", "filepath.WalkDir",
)  # fmt: skip
ENDING_CALLS = ("os.Exit", "syscall.Exit")
TEST_FLAG = re.compile(r"-{0,2}test\.\w+|\.test(?:\.exe)?")
"""A string that names an option of `go test`, or the ending of a test program."""


def find_go_uses(root: Node) -> list[Use]:
    """Return the uses in the syntax tree of a Go file."""
    nodes = list(walk(root))
    packages = dict(_name_import(node) for node in nodes if node.type == "import_spec")
    values: dict[str, Node] = {}
    for node in nodes:
        if node.type in ("const_spec", "var_spec", "short_var_declaration"):
            _add_value(node, values)
    uses = [use for node in nodes for use in _find_node_uses(node, packages, values)]

    def resolve(node: Node) -> str:
        return _resolve(node, packages)

    surrounding = (use for node in nodes for use in find_surrounding_uses(node, values, resolve))
    return [*uses, *surrounding, *find_kept_state(nodes)]


def _name_import(node: Node) -> tuple[str, str]:
    """Return (local name, path) of an imported package."""
    source, name = node.child_by_field_name("path"), node.child_by_field_name("name")
    path = get_text(source)[1:-1] if source is not None else ""
    return (get_text(name) if name is not None else path.rpartition("/")[2]), path


def _add_value(node: Node, values: dict[str, Node]) -> None:
    names = node.child_by_field_name("left") or node.child_by_field_name("name")
    value = node.child_by_field_name("right") or node.child_by_field_name("value")
    if names is not None and value is not None and value.named_children:
        for name in names.named_children if names.type == "expression_list" else [names]:
            values.setdefault(get_text(name), value.named_children[0])


def _find_node_uses(node: Node, packages: Mapping[str, str], values: Mapping[str, Node]) -> Iterator[Use]:
    line = node.start_point[0] + 1
    if node.type == "import_spec":
        _, name = _name_import(node)
        code = IMPORT_CODES.get("testing" if name.startswith("testing/") else name)
        if code is not None:
            yield Use(code=code, name=name, line=line, key=name)
    elif node.type == "comment":
        yield from _find_directive_uses(get_text(node), line)
    elif node.type == "call_expression":
        yield from _find_call_uses(node, line, packages, values)
    elif node.type == "method_declaration":
        yield from find_comparison_uses(node, line)
    elif node.type == "selector_expression":
        yield from _find_selector_uses(node, line, packages)
    elif node.type == "assignment_statement" or node.type in DECLARATIONS:
        yield from _find_patch_uses(node, line, packages)
    elif node.type in STRINGS:
        text = get_text(node)[1:-1]
        yield from find_path_uses(text, line)
        if TEST_FLAG.fullmatch(text):
            yield Use(code="detects_environment", name=text, line=line, key="test flags")


def _find_patch_uses(node: Node, line: int, packages: Mapping[str, str]) -> Iterator[Use]:
    """Yield a new value of another package's variable, and a name of the language that gets another meaning."""
    name = get_text(node.child_by_field_name("name"))
    if node.type in DECLARATIONS and name in PREDECLARED and _is_in_package(node):
        yield Use(code="patches_code", name=name, line=line, key=name)
    targets = node.child_by_field_name("left")
    for target in targets.named_children if targets is not None else ():
        is_foreign = _is_foreign_variable(target, packages)
        if is_foreign or PATCHED_TARGET.fullmatch(_resolve(target, packages)):
            yield Use(code="patches_code", name=get_text(target), line=line, key=get_text(target))


def _is_in_package(node: Node) -> bool:
    """Return whether a declaration is one of the package, and not of a function."""
    return find_enclosing(node, GO_FUNCTIONS) is None or node.type == "function_declaration"


def _is_foreign_variable(target: Node, packages: Mapping[str, str]) -> bool:
    """Return whether an assignment changes a variable of an imported package: `io.EOF = nil`."""
    if target.type != "selector_expression":
        return False
    owner, function = get_text(target.child_by_field_name("operand")), find_enclosing(target, GO_FUNCTIONS)
    if owner not in packages or function is None or ENTRY_FUNCTION.fullmatch(_enclosing_function(target)):
        return False
    # A variable often has the name of a package, as in `url, err := url.Parse(text)`.
    declaring = ("short_var_declaration", "parameter_declaration", "var_spec", "range_clause")
    names = (
        get_text(part)
        for node in walk(function)
        if node.type in declaring
        for part in walk(node.child_by_field_name("left") or node)
        if part.type == "identifier"
    )
    return owner not in names


def _find_directive_uses(text: str, line: int) -> Iterator[Use]:
    """Yield what a comment asks the compiler for."""
    if text.startswith("//go:linkname"):
        yield Use(code="reaches_memory", name="//go:linkname", line=line, key="//go:linkname")
    elif text.startswith("//go:embed"):
        patterns = [word.strip('"`') for word in text.split()[1:]]
        # A folder or a pattern such as `*` may include the tests of the package.
        covering = [word for word in patterns if word in ("*", ".", "*.go") or TEST_FILE_NAME.fullmatch(word)]
        if covering:
            yield Use(code="reads_tests", name=f"//go:embed {covering[0]}", line=line, key="")


def _find_call_uses(
    node: Node, line: int, packages: Mapping[str, str], values: Mapping[str, Node]
) -> Iterator[Use]:
    function = node.child_by_field_name("function")
    name = _resolve(function, packages) if function is not None else ""
    path = find_written_path(node, name, values)
    if path is not None:
        yield Use(code="writes_project_files", name=f"{name}({path})", line=line, key="")
    if name in ENDING_CALLS:
        function_name = _enclosing_function(node)
        if function_name != "main":  # a program may end there
            yield Use(code="ends_process", name=name, line=line, key=f"in {function_name}")
    else:
        yield from _find_state_uses(node, name, line)


def _find_state_uses(node: Node, name: str, line: int) -> Iterator[Use]:
    """Yield a call that shows who called it, how the program was started, or its environment."""
    given = get_text(node.child_by_field_name("arguments"))
    if name == "log.New" and re.match(
        r"\(\s*&.*\bL(?:short|long)file\b", get_text(node.child_by_field_name("arguments"))
    ):
        yield Use(code="inspects_callers", name="log.New with the caller's file", line=line, key=name)
    elif name in STATE_CALLS:
        if ENTRY_FUNCTION.fullmatch(_enclosing_function(node)) is None:
            yield Use(code="detects_environment", name=name, line=line, key=name)
    elif name in ENVIRONMENT_CALLS:
        if ENTRY_FUNCTION.fullmatch(_enclosing_function(node)) is None and not _is_for_process(node):
            yield Use(code="detects_environment", name=name, line=line, key=name)
    elif name in SETTING_CALLS:
        set_variable = re.match(r"""\(\s*["`](\w+)["`]""", given)
        if set_variable is not None and set_variable[1] in OBSERVED_VARIABLES:
            yield Use(code="patches_code", name=f"{name}({set_variable[1]})", line=line, key=set_variable[1])
    elif name in FOLDER_LISTING:
        if re.match(r"""\(\s*["`](?:\.?/?["`]|(?:\./)?[*?])""", given):
            yield Use(code="detects_environment", name=f"{name}{given}", line=line, key="working folder")
    elif name in ("os.Getenv", "os.LookupEnv"):
        arguments = node.child_by_field_name("arguments")
        variable = get_text(arguments).strip('()"`') if arguments is not None else ""
        if TEST_VARIABLE.fullmatch(variable):
            yield Use(code="detects_environment", name=variable, line=line, key=variable)


def _is_for_process(node: Node) -> bool:
    """Return whether a copied environment is extended, or given to a command: `cmd.Env = append(os.Environ(), x)`."""
    arguments = node.parent
    call = arguments.parent if arguments is not None and arguments.type == "argument_list" else None
    is_extended = call is not None and get_text(call.child_by_field_name("function")) == "append"
    statement = arguments.parent if arguments is not None and arguments.type == "expression_list" else None
    target = get_text(statement.child_by_field_name("left")) if statement is not None else ""
    is_read = (
        re.search(rf"range\s+{re.escape(target)}\b", get_text(find_enclosing(node, GO_FUNCTIONS))) is not None
    )
    return is_extended or (re.search("env$", target, re.IGNORECASE) is not None and not is_read)


def _find_selector_uses(node: Node, line: int, packages: Mapping[str, str]) -> Iterator[Use]:
    owner, field = node.child_by_field_name("operand"), node.child_by_field_name("field")
    name = get_text(field) if field is not None else ""
    package = packages.get(get_text(owner), "") if owner is not None else ""
    code = CALL_CODES.get(name) if package in CALLED_PACKAGES or name == "StartProcess" else None
    if code is not None:
        yield Use(code=code, name=get_text(node), line=line, key=name)
    elif name in MEMORY_METHODS and package in ("", "reflect"):  # not `types.UnsafePointer`
        yield Use(code="reaches_memory", name=get_text(node), line=line, key=name)
    elif package == "os" and name == "Args" and ENTRY_FUNCTION.fullmatch(_enclosing_function(node)) is None:
        # Assigned arguments are a change of the library's variable.
        is_target = node.parent is not None and node.parent == _find_targets(node.parent)
        if not is_target:
            yield Use(code="detects_environment", name="os.Args", line=line, key="os.Args")


def _find_targets(node: Node) -> Node | None:
    statement = node.parent
    is_assignment = statement is not None and statement.type == "assignment_statement"
    return statement.child_by_field_name("left") if statement is not None and is_assignment else None


def _resolve(node: Node, packages: Mapping[str, str]) -> str:
    """Return `os.Exit` for `system.Exit` if the file imports `os` under the name `system`."""
    owner, _, name = get_text(node).partition(".")
    return f"{packages[owner].rpartition('/')[2]}.{name}" if name and owner in packages else get_text(node)


def _enclosing_function(node: Node) -> str:
    function = find_enclosing(node, GO_FUNCTIONS)
    return get_text(function.child_by_field_name("name")) if function is not None else ""


WRITTEN_ARGUMENTS = {
    **dict.fromkeys(("WriteFile", "Create", "Remove", "RemoveAll", "Truncate", "Chmod"), (0,)),
    **dict.fromkeys(("Link", "Symlink"), (1,)),
    "Rename": (0, 1),
}
"""Function of `os` -> the positions of the paths that it changes."""
WRITING_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREATE", "O_APPEND", "O_TRUNC")
PATH_FUNCTIONS = ("Join", "Clean", "FromSlash", "Abs", "Dir")
"""Functions of `filepath` whose result is in the project if their first argument is."""


def find_written_path(node: Node, name: str, values: Mapping[str, Node]) -> str | None:
    """Return the source of a path inside the project at which a call writes, or `None`.

    Args:
        name: The called function, such as `os.Create`.
        values: Name of a constant or variable of the file -> its first value.
    """
    package, _, function = name.partition(".")
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    if package not in ("os", "ioutil"):
        return None
    positions = WRITTEN_ARGUMENTS.get(function, ())
    if (
        function == "OpenFile"
        and len(given) > 1
        and any(flag in get_text(given[1]) for flag in WRITING_FLAGS)
    ):
        positions = (0,)
    paths = [given[position] for position in positions if position < len(given)]
    return next((get_text(path) for path in paths if _is_in_project(path, values)), None)


def _is_in_project(node: Node | None, values: Mapping[str, Node], depth: int = 0) -> bool:
    if node is None or depth > MAX_NAME_PARTS:
        return False
    if node.type in STRINGS:
        return get_text(node)[1:2] not in ("/", "~", "%", "{", "<", get_text(node)[:1])
    if node.type == "identifier":
        return _is_in_project(values.get(get_text(node)), values, depth + 1)
    if node.type == "binary_expression":
        return _is_in_project(node.child_by_field_name("left"), values, depth + 1)
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is not None and get_text(function).rpartition(".")[2] in PATH_FUNCTIONS:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_children[:1] if arguments is not None else []
        return bool(first) and _is_in_project(first[0], values, depth + 1)
    return False
