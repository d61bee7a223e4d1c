"""Skeletons of new projects: programs that run, of which a small model writes only one file.

A folder `LANGUAGE_KIND` holds the files of one skeleton, in which `project_name` stands for the project's name. Its
`skeleton.toml` names the file that the model writes, and says in words what that file must hold. `example` is such a
file for another task; the prompt shows it, and the tests of the skeleton pass with it.
"""

from suture.project.skeletons.skeleton import Skeleton, find_skeleton

__all__ = ["Skeleton", "find_skeleton"]
