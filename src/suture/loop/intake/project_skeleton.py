"""Give the task of a new project a skeleton, so that a small model writes only one file of it."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.machinery import PathFinder

from suture.core.records import Task
from suture.loop.intake.project_task import add_install_section
from suture.loop.intake.test_subject import LIBRARIES
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import parse_module
from suture.project.skeletons import find_skeleton
from suture.project.test_commands import escape_glob
from suture.project.workspace import is_test_file
from suture.sandbox.packages import manifest_name_for

README_PATH = "README.md"
TEST_HEADING = "## Test"
"""The heading of the README before which the files are described."""
ENTRY_WORD = "{entry}"
"""Placeholder for the test file in a layout's command that runs a single one."""
RELATIVE_IMPORT = re.compile(r"""(?:\brequire\(|\bfrom|\bimport\(?)\s*["'](\.[^"']+)["']""")
"""How JavaScript imports a file of the project."""


def add_skeleton(task: Task) -> Task:
    """Return the task with the files of a skeleton; the task as it is if there is none for it.

    There is none if the user's test imports a module that is not in the skeleton: a candidate could not write it. In
    Go, there is also none if the test does not compile together with the skeleton.

    The skeleton's tests decide together with those that the user gave. A candidate may write the missing file, and
    the manifest in which it asks for packages.
    """
    project = task.project
    if project is None or not project.is_new or project.kind is None:
        return task
    skeleton = find_skeleton(task.language, project.kind, name=project.name, sample=project.sample)
    if skeleton is None or not skeleton.suits(task.statement):
        return task
    # The user's own files, such as a test of the same name, stay.
    files = {path: text.encode() for path, text in skeleton.files.items() if path not in task.given_files}
    given = {path: text.decode("utf-8", "replace") for path, text in task.files.items()}
    modules = {**given, **skeleton.files}
    fits_package = LANGUAGES[task.language].fits_package
    others = [skeleton.files[path] for path in files if path.endswith(LANGUAGES[task.language].extensions)]
    if not all(
        _finds_imports(path, given[path], modules, skeleton.file) and fits_package(given[path], others)
        for path in task.given_files
        if is_test_file(path)
    ):
        return task
    protected = [path for path in files if path not in (skeleton.file, manifest_name_for(task.language))]
    words = LANGUAGES[task.language].layout.test_file_command
    # `go test ./...` runs the tests of all files.
    tests = [path for path in files if is_test_file(path)] if ENTRY_WORD in words else []
    command = task.test_command or tuple(word for word in words if word != ENTRY_WORD)
    readme = task.files[README_PATH].decode()
    description = f"## Files\n\n{skeleton.readme}\n\n{TEST_HEADING}"
    readme = readme.replace(TEST_HEADING, description, 1)
    if manifest_name_for(task.language) in skeleton.files:
        readme = add_install_section(readme, LANGUAGES[task.language].layout)
    files[README_PATH] = readme.encode()
    return replace(
        task,
        files={**task.files, **files},
        test_command=(*command, *tests),
        protected=(*task.protected, *map(escape_glob, protected)),
        project=replace(
            project,
            scaffold=tuple(dict.fromkeys((*project.scaffold, *files))),
            skeleton_file=skeleton.file,
        ),
    )


def _finds_imports(path: str, source: str, files: Mapping[str, str], written: str) -> bool:
    """Return whether all that a test imports is in some files, in the file to be written, or in a library."""
    if not path.endswith(".py"):
        stems = (posixpath.join(posixpath.dirname(path), stem) for stem in RELATIVE_IMPORT.findall(source))
        endings = ("", ".js", "/index.js", ".ts", "/index.ts")
        return all(any(posixpath.normpath(stem) + ending in files for ending in endings) for stem in stems)
    for module, name in _list_imports(source):
        stem, package = module.replace(".", "/"), module.partition(".")[0]
        module_path = next((file for file in (f"{stem}.py", f"{stem}/__init__.py") if file in files), None)
        if module_path is None:
            # A folder of the project hides a library of the same name.
            is_own = any(file.startswith(f"{package}/") for file in files)
            if is_own or (package not in LIBRARIES and not _is_package(package, files)):
                return False
        elif (
            name
            and module_path != written
            and not (f"{stem}/{name}.py" in files or re.search(rf"\b{name}\b", files[module_path]))
        ):
            return False
    return True


def _list_imports(source: str) -> Iterator[tuple[str, str]]:
    """Yield each absolute import of a Python file as `(module, name)`; the name is empty for a whole module."""
    tree = parse_module(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name.strip("*")) for alias in node.names)


def _is_package(name: str, files: Mapping[str, str]) -> bool:
    """Return whether a package is installed here or required by the project."""
    required = re.findall(r"\w+", files.get("requirements.txt", ""))
    return name in required or PathFinder.find_spec(name) is not None
