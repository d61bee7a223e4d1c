"""Give the task of a new project a skeleton, so that a small model writes only one file of it."""

from __future__ import annotations

from dataclasses import replace

from suture.core.records import Task
from suture.project.languages import LANGUAGES
from suture.project.skeletons import find_skeleton
from suture.project.test_commands import escape_glob
from suture.project.workspace import is_test_file
from suture.sandbox.packages import manifest_name_for

README_PATH = "README.md"
TEST_HEADING = "## Test"
"""The heading of the README before which the files are described."""


def add_skeleton(task: Task) -> Task:
    """Return the task with the files of a skeleton; the task as it is if there is none for it.

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
    protected = [path for path in files if path not in (skeleton.file, manifest_name_for(task.language))]
    tests = [path for path in files if is_test_file(path)]
    layout = LANGUAGES[task.language].layout
    command = task.test_command or tuple(word for word in layout.test_file_command if word != "{entry}")
    readme = task.files[README_PATH].decode()
    description = f"## Files\n\n{skeleton.readme}\n\n{TEST_HEADING}"
    files[README_PATH] = readme.replace(TEST_HEADING, description, 1).encode()
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
