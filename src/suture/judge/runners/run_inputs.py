"""Which files decide a test run, and which of them the code under test changed while the tests ran.

Imported code could rewrite a later test file, its configuration or the expected results. The sandbox watches
these files from outside the program (see `RunResult.changed`). Some suites rewrite their own data; what the
*base run*, a run on the task's own files, changes too is therefore legitimate.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from suture.core.records import Counterexample, Language, Task
from suture.judge.failures import make_failure
from suture.judge.tuning import MAX_MACHINERY_NAME_CHARS
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.mixed_files import find_mixed_files
from suture.project.workspace import DEFAULT_PROTECTED, decode_text, is_protected, is_test_file
from suture.sandbox import RunResult

STRING_LITERAL = re.compile(r"""["']([^"'\n]{1,200})["']""")
"""A string that may be a path. The maximum length is chosen by judgement; not measured."""
SNAPSHOT_SUFFIX = ".snap"
"""The suffix of files in which Jest and Vitest keep expected results."""
VITE_COPY = ".timestamp-"
"""Part of the name of the compiled configuration that Vite temporarily writes next to its configuration."""
BYTECODE_FOLDER, PACKAGES_FOLDER = "__pycache__", "node_modules"


@dataclass(frozen=True)
class RunInputs:
    """The files that decide a run of the test command.

    Args:
        task: The task.
        test_files: Paths of the project's files that hold the command's tests, under any name.
        opened: Paths of the files other than Python code that tests opened in the base run.
    """

    task: Task
    test_files: Collection[str] = ()
    opened: Collection[str] = ()

    @cached_property
    def files(self) -> frozenset[str]:
        """The project's tests, their configuration and their expected results, which no candidate may write."""
        task = self.task
        globs = task.protected or DEFAULT_PROTECTED
        deciding = {*self.test_files, *find_mixed_files(task.files)}
        protected = {
            path
            for path in task.files
            if path in deciding or path.endswith(SNAPSHOT_SUFFIX) or is_protected(path, globs)
        }
        return frozenset(protected - {*task.modules}) | find_test_data(
            task.files, task, self.test_files, self.opened
        )

    def find_change(self, command: str, result: RunResult, base: RunResult | None) -> Counterexample | None:
        """Return the failure of a run whose inputs were changed; `None` if they were not.

        Args:
            command: The command as a string.
            result: The run, in which `files` were watched.
            base: The base run, in which all files were watched, if there was one.
        """
        changed = result.changed - (base.changed if base else frozenset())
        created = result.created - (base.created if base else frozenset())
        deciding = filter(self._decides, created)
        path, action = min(changed, default=""), "changed"
        if not path:
            path, action = min(deciding, default=""), "created"
        if not path:
            return None
        shown = path[:MAX_MACHINERY_NAME_CHARS]
        return make_failure(command, "inputs_changed", call=command, path=shown, action=action)

    def _decides(self, path: str) -> bool:
        """Whether a file that appears during a run can change what later tests do.

        In a new folder it cannot, except for compiled code and packages. Other new files, even next to tests, are what
        tests write.
        """
        folder, name = posixpath.split(path)
        if name == BYTECODE_FOLDER:
            return bool(self._sources_by_folder.get(folder))
        if posixpath.basename(folder) == BYTECODE_FOLDER:
            sources = self._sources_by_folder.get(posixpath.dirname(folder), ())
            return any(name.startswith(source.removesuffix("py")) for source in sources)
        if posixpath.basename(folder) == PACKAGES_FOLDER:
            return not name.startswith(".")  # caches of test runners
        is_temporary = VITE_COPY in name
        return folder in self._folders and not is_temporary and is_protected(path, self._configuration_globs)

    @cached_property
    def _sources_by_folder(self) -> dict[str, list[str]]:
        """Folder -> names of the deciding Python files in it. Python runs compiled code in their place."""
        sources: dict[str, list[str]] = {}
        for path in self.files:
            if path.endswith(".py"):
                folder, name = posixpath.split(path)
                sources.setdefault(folder, []).append(name)
        return sources

    @cached_property
    def _folders(self) -> frozenset[str]:
        folders = {""}
        for path in self.task.files:
            folder = posixpath.dirname(path)
            while folder not in folders:
                folders.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(folders)

    @cached_property
    def _configuration_globs(self) -> tuple[str, ...]:
        facts = LANGUAGES[self.task.language]
        return tuple(glob for glob in (*facts.test_files, *facts.config_globs) if not glob.endswith("/"))


def find_test_data(
    paths: Iterable[str], task: Task, test_files: Collection[str], opened: Collection[str] = ()
) -> frozenset[str]:
    """Return the paths that are not source code and that the tests open or name, such as expected results.

    A string in a test names a file if it is the file's name or that of a folder that contains it. Of a package's own
    data only the file's name counts, because words such as `data` are also keys. Files that the user allowed by
    name (`--only`) are left out.

    Args:
        paths: Paths as in `task.files`; others are left out.
        test_files: Paths of the files that hold the command's tests.
        opened: Paths of the files that tests opened in the base run, as far as that is known.
    """

    def is_code(language: Language) -> bool:
        # Text in C or Java is data for the tests of another language, as that of any language without a search.
        return language == task.language or LANGUAGES[language].is_searched

    data = {
        path
        for path in paths
        if path in task.files
        and not any(map(is_code, detect_file_languages((path,))))
        and not (task.writable and is_protected(path, task.writable))
    }
    if not data or task.kind != "heal":  # only a repair is restricted, by judgement
        return frozenset()
    named = {
        part
        for path, content in task.files.items()
        if (path in test_files or is_test_file(path)) and detect_file_languages((path,))
        for literal in STRING_LITERAL.findall(decode_text(content))
        for part in literal.split("/")
    }
    packages = {posixpath.dirname(path) for path in task.files if path.endswith("/__init__.py")}

    def is_named(path: str) -> bool:
        if path in opened:
            return True
        parts = path.split("/")
        is_in_package = any("/".join(parts[:depth]) in packages for depth in range(1, len(parts)))
        return parts[-1] in named if is_in_package else not named.isdisjoint((".", *parts))

    return frozenset(filter(is_named, data))
