"""Python: detect test commands, recognise pytest and unittest, and resolve what `python` means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import dropwhile, islice, pairwise
from pathlib import PurePosixPath

from suture.project.languages.command_prefix import add_prefix, split_prefix
from suture.project.languages.interpreter import LOANED_PYTEST_MOUNT, PACKAGES_MOUNT, Interpreter
from suture.project.languages.language import LanguageFacts, ProjectOverview, expand_word_globs
from suture.project.languages.layouts import PYTHON_LAYOUT
from suture.project.languages.python_imports import find_shadowing_modules
from suture.project.languages.runner_config import find_pytest_plugins
from suture.project.languages.safety_rules import python_rules as in_python

PYTHON = re.compile(r"python(3(\.\d+)?)?")
"""Matches the names of Python's program."""
PYTEST = ("pytest", "py.test")
OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python itself that take the next word as their value."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
"""The folders of the machine's programs, which every sandbox shows."""
PYTEST_CONFIGURATION: Mapping[str, bytes] = {
    "pytest.ini": b"",
    ".pytest.ini": b"",
    "pytest.toml": b"",
    ".pytest.toml": b"",
    "pyproject.toml": b"[tool.pytest",
    "tox.ini": b"[pytest]",
    "setup.cfg": b"[tool:pytest]",
}
"""Files that configure pytest -> text that they must contain for that."""
CONFIG_GLOBS = (
    *PYTEST_CONFIGURATION, "noxfile.py", "requirements*.txt", "constraints*.txt",
    # Files that Python runs at start-up.
    "sitecustomize.py", "usercustomize.py", "sitecustomize/", "usercustomize/", "*.pth", "*.egg-link",
    # Metadata that makes pytest load a plugin as if it were installed.
    "*.dist-info/", "*.egg-info/",
    # Modules in the project shadow the real ones of the same name.
    "/pytest.py", "/pytest/", "/_pytest/", "/pluggy/", "/unittest.py", "/unittest/",
)  # fmt: skip
"""Globs of files that decide the outcome of a test command, or what it loads."""
UNITTEST_OPTIONS = {
    "-s": "start", "--start-directory": "start", "-p": "pattern", "--pattern": "pattern", "-t": "top",
    "--top-level-directory": "top", "-k": "names",
}  # fmt: skip
"""Options of unittest with a value -> what the value is."""
TEST_CASE = re.compile(rb"^class \w+\(.*TestCase\b.*\):", re.MULTILINE)
"""Matches a class of tests that unittest can run. A file with a match of the next pattern needs pytest."""
PYTEST_TEST = re.compile(rb"^(?:async )?def test|^\s*(?:import|from) pytest\b", re.MULTILINE)
"""Matches what only pytest can run: a function as a test, or an import of pytest."""
PYTEST_COMMAND = ("python", "-m", "pytest", "-q")
PYTEST_FILE_NAME = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py")
"""Names of files in which pytest looks for tests by default."""
TEST_DEFINITION = re.compile(rb"^[ \t]*(?:async )?def test", re.MULTILINE)
"""Matches a test, as a function or as a method."""
MANAGE_FILE = "manage.py"
SETTINGS_VARIABLE = "DJANGO_SETTINGS_MODULE"
DJANGO_PLUGIN = "suture_django"
"""The module name of the plugin inside the sandbox; see `suture.judge.runners.report_plugin.django_plugin`."""
DJANGO_VALUE_OPTIONS = ("-v", "--verbosity", "--settings", "-p", "--pattern", "-k", "--pythonpath", "-t")
IGNORED_DJANGO_OPTIONS = (
    "--noinput", "--no-input", "--keepdb", "--failfast", "--traceback", "--no-color", "--force-color", "--timing",
    "--debug-mode", "--buffer", "-b", "--parallel", "--shuffle", "--durations", "-v", "--verbosity",
)  # fmt: skip
"""Options that change neither which tests run nor their outcome."""


def detect_python_tests(signs: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """Return a pytest command; a unittest command only if pytest is not installed and not needed."""
    files, tests = signs.files, signs.tests
    for config_file, marker in PYTEST_CONFIGURATION.items():
        if config_file in files and marker in files[config_file]:
            return PYTEST_COMMAND, f"{config_file} configures pytest"
    if not tests:
        return None
    manage_files = [path for path in files if PurePosixPath(path).name == MANAGE_FILE]
    if len(manage_files) == 1 and SETTINGS_VARIABLE.encode() in files[manage_files[0]]:
        folder = str(PurePosixPath(manage_files[0]).parent)
        command = ("python", MANAGE_FILE, "test")
        return add_prefix("" if folder == "." else folder, (), command), f"{manage_files[0]} starts Django"
    unittest_files = [name for name in tests if TEST_CASE.search(files[name])]
    if not any(map(PYTEST_FILE_NAME.fullmatch, tests)):
        test_files = sorted(name for name in tests if TEST_DEFINITION.search(files[name]))
        if test_files:
            return _list_files(test_files, signs)
    if not unittest_files or any(PYTEST_TEST.search(files[name]) for name in tests):
        return PYTEST_COMMAND, f"{min(tests)} is a test in Python"
    if signs.has_pytest():
        return PYTEST_COMMAND, "the tests are unittest's; pytest runs them too, and reports each of them"
    why = "the tests are unittest's, and the project's Python has no pytest"
    return ("python", "-m", "unittest", *_discovery(files, unittest_files)), why


def _list_files(paths: Sequence[str], signs: ProjectOverview) -> tuple[tuple[str, ...], str]:
    """Return a command that lists its test files.

    This is for files that neither pytest nor unittest finds by their names, such as `tests.py`.
    """
    why = f"{paths[0]} holds tests, and no file is named as pytest looks for them"
    needs_pytest = any(PYTEST_TEST.search(signs.files[path]) for path in paths)
    if needs_pytest or signs.has_pytest():
        return (*PYTEST_COMMAND, *paths), why
    return ("python", "-m", "unittest", *paths), why


def _discovery(files: Mapping[str, bytes], unittest_files: Collection[str]) -> tuple[str, ...]:
    """Return the arguments of unittest that make it find the tests. Without them, it enters only packages."""
    folders = {PurePosixPath(name).parts[0] if "/" in name else "" for name in unittest_files}
    if len(folders) != 1 or "" in folders:
        return ("discover",)
    folder = folders.pop()
    return ("discover", "-s", folder, *(("-t", ".") if f"{folder}/__init__.py" in files else ()))


def find_python_test_files(words: Sequence[str]) -> Iterator[str]:
    """Yield globs of the tests that unittest discovers, of pytest's plugins, or of a folder run as a program."""
    pairs = list(pairwise(words))
    if ("-m", "unittest") in pairs:
        yield from _unittest_globs(words[pairs.index(("-m", "unittest")) + 2 :])
        return
    if any(PurePosixPath(word).name in PYTEST for word in words):
        plugins = (word.replace(".", "/") for before, word in pairs if before == "-p")
        yield from (glob for name in plugins for glob in (f"/{name}.py", f"/{name}/"))
        return
    after_python = dropwhile(lambda word: not PYTHON.fullmatch(PurePosixPath(word).name), words)
    program = next((word for word in islice(after_python, 1, None) if not word.startswith("-")), "")
    yield from (f"{glob}__main__.py" for glob in expand_word_globs(program) if glob.endswith("/"))


def _unittest_globs(words: Sequence[str]) -> Iterator[str]:
    """Yield globs of what `python -m unittest` discovers if no tests are named."""
    options: dict[str, str] = {}
    arguments: list[str] = []
    for before, word in pairwise(("", *words)):
        if option := UNITTEST_OPTIONS.get(before):
            options[option] = word
        elif not word.startswith("-"):
            arguments.append(word)
    if arguments and arguments[0] != "discover":
        return
    start, pattern = [*arguments[1:3], "", ""][:2]
    start_folder = (options.get("start") or start or ".").removeprefix("./").rstrip("/")
    prefix = "" if start_folder == "." else f"/{start_folder}"
    yield f"{prefix}/**/{options.get('pattern') or pattern or 'test*.py'}"
    if prefix:
        yield f"{prefix}/"


PYTHON_FACTS = LanguageFacts(
    label="Python",
    fence="python",
    extensions=(".py",),
    program="",
    command_pattern=re.compile(r"python(3(\.\d+)?)?|pytest|py\.test|tox|nox|unittest"),
    line_comment="#",
    safety_rules=in_python.RULES,
    find_unsafe_uses=in_python.find_python_uses,
    test_files=("test_*.py", "*_test.py", "tests.py", "conftest.py"),
    config_globs=CONFIG_GLOBS,
    find_loaded_files=find_python_test_files,
    find_configured_files=find_pytest_plugins,
    find_shadowing_files=find_shadowing_modules,
    detect_test_command=detect_python_tests,
    parsed=True,
    package_client="pip",
    new_project=PYTHON_LAYOUT,
)


def is_pytest_command(argv: Sequence[str]) -> bool:
    """Return whether a command runs pytest: `pytest ...`, or `python [options] -m pytest ...`.

    Args:
        argv: The command, perhaps after a call of `env`. The name of its program may be a path.
    """
    _, argv = split_prefix(argv)
    if not argv:
        return False
    program = PurePosixPath(argv[0]).name
    if program in PYTEST:
        return True
    return bool(PYTHON.fullmatch(program)) and _module_of(argv) == "pytest"


def find_django_tests(argv: Sequence[str]) -> tuple[str, ...] | None:
    """Return pytest's arguments for the tests of `manage.py test`; `None` for any other command.

    It is also `None` for options that pytest has no counterpart for, such as `--tag`.

    Args:
        argv: The command, without a call of `env`.
    """
    words = list(argv)
    names = [PurePosixPath(word).name for word in words[:3]]
    is_program = names[:1] == [MANAGE_FILE]
    if MANAGE_FILE not in names[:2] or names[1 if is_program else 2 :][:1] != ["test"]:
        return None
    manage = words[0 if is_program else 1]
    arguments = ["-p", DJANGO_PLUGIN, f"--django-manage={manage}"]
    rest = iter(words[2 if is_program else 3 :])
    previous = ""
    for word in rest:
        is_count = previous == "--parallel" and (word.isdecimal() or word == "auto")
        previous = word
        if is_count:
            continue
        option, equals_sign, value = word.partition("=")
        if not word.startswith("-"):
            arguments.append(f"--django-label={word}")
            continue
        if option in DJANGO_VALUE_OPTIONS and not equals_sign:
            value = next(rest, "")
        if option == "--settings":
            arguments.append(f"--django-settings={value}")
        elif option in ("-p", "--pattern"):
            arguments.append(f"--django-pattern={value}")
        elif option not in IGNORED_DJANGO_OPTIONS and not option.startswith("-v"):
            return None
    return tuple(arguments)


def is_test_command(argv: Sequence[str]) -> bool:
    """Return whether a command runs the tests of unittest or of Django."""
    return bool(argv) and (_is_unittest(argv) or find_django_tests(argv) is not None)


def _is_unittest(argv: Sequence[str]) -> bool:
    return bool(PYTHON.fullmatch(PurePosixPath(argv[0]).name)) and _module_of(argv) == "unittest"


def pytest_equivalent(argv: Sequence[str]) -> tuple[str, ...] | None:
    """Return a pytest command that runs the tests of unittest or Django, or `None` for any other command.

    Its outcomes are only hints for the search, not verdicts: pytest runs such tests slightly differently.

    Args:
        argv: The command, such as `python -m unittest discover -s tests`.
    """
    prefix, argv = split_prefix(argv)
    django = find_django_tests(argv)
    if django is not None:
        python = argv[0] if PYTHON.fullmatch(PurePosixPath(argv[0]).name) else "python"
        return (*prefix, python, "-m", "pytest", "-q", *django)
    if not argv or not _is_unittest(argv):
        return None
    folder, pattern, targets = ".", "test*.py", list[str]()
    words = iter(_after_module(argv))
    for word in words:
        if word in ("-s", "--start-directory"):
            folder = next(words, folder)
        elif word in ("-p", "--pattern"):
            pattern = next(words, pattern)
        elif word in ("-k", "-t", "--top-level-directory", "--durations"):
            next(words, None)
        elif not word.startswith("-") and word != "discover":
            targets.append(_to_pytest_id(word))
    return (*prefix, argv[0], "-m", "pytest", "-o", f"python_files={pattern}", *(targets or [folder]))


def _to_pytest_id(name: str) -> str:
    """Convert `tests.test_cart.CartTest.test_total` to a test id of pytest. Paths stay as they are."""
    if name.endswith(".py"):
        return name
    parts = name.split(".")
    class_at = next((n for n, part in enumerate(parts) if part[:1].isupper()), len(parts))
    return "::".join([f"{'/'.join(parts[:class_at])}.py", *parts[class_at:]])


def _after_module(argv: Sequence[str]) -> Sequence[str]:
    """Return the words after `-m MODULE`."""
    option_index = next(n for n, word in enumerate(argv) if word.startswith("-m"))
    return argv[option_index + 1 :] if argv[option_index] != "-m" else argv[option_index + 2 :]


def _module_of(argv: Sequence[str]) -> str | None:
    """Return the module that `python -m MODULE` runs; `None` if the command runs something else."""
    words = iter(argv[1:])
    for word in words:
        if word in OPTIONS_WITH_VALUE:
            next(words, None)
        elif word == "-m":
            return next(words, None)
        elif word.startswith("-m"):
            return word[2:]
        elif not word.startswith("-") or word in ("-c", "-"):
            return None
    return None


def resolve_command(argv: Sequence[str], interpreter: Interpreter) -> tuple[str, ...]:
    """Return a command that starts a project's own interpreter in place of `python` or `pytest`.

    Only a program's name without a slash is replaced: a path means that path.

    Args:
        argv: The command as the user wrote it.
        interpreter: What `python` means.
    """
    prefix, command = split_prefix(argv)
    if command and command[0] in PYTEST:
        command = (interpreter.executable, "-m", "pytest", *command[1:])
    elif command and PYTHON.fullmatch(command[0]):
        command = (interpreter.executable, *command[1:])
    return (*prefix, *command)


def program_environment(interpreter: Interpreter, box: str) -> dict[str, str]:
    """Return the variables with which a project's commands find their interpreter inside the sandbox.

    Args:
        interpreter: What `python` means.
        box: Folder of the project inside the sandbox.
    """
    toolchain = interpreter.toolchain
    folders = [str(PurePosixPath(interpreter.executable).parent), *(toolchain.folders if toolchain else ())]
    environment = {"PATH": ":".join((*folders, SYSTEM_PATH)), **(toolchain.variables if toolchain else {})}
    # glibc reserves 64 MiB of address space for each thread; the limit would be reached with some twenty.
    environment["MALLOC_ARENA_MAX"] = "1"
    if interpreter.is_virtual:
        environment["VIRTUAL_ENV"] = interpreter.prefix
    roots = [str(PurePosixPath(box) / root) for root in interpreter.source_roots]
    roots += [PACKAGES_MOUNT] if interpreter.packages else []
    roots += [LOANED_PYTEST_MOUNT] if interpreter.loaned_pytest else []
    if roots:
        environment["PYTHONPATH"] = ":".join(roots)
    return environment
