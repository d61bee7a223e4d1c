"""Packages that new code asks for: fetched, locked by their hashes, and shown behind the wall.

The user's own pip, npm and go fetch them, from the index that the user has set, and run nothing of a package:
archives alone, and no script. They do so behind a wall of their own (`client`), with an empty folder to write
to and one way out: a proxy of ours that leads to the index and nowhere else (`gate`). It asks nobody whether
a package may be had: `suture.project.safety` has seen to that before. It starts no program of a project.
"""

from suture.sandbox.packages.added_packages import AddedPackages
from suture.sandbox.packages.installer import InstalledPackages, PackagesRefused
from suture.sandbox.packages.package_sets import (
    NewProjectPackages,
    is_lock_path,
    manifest_name_for,
    with_packages_shown,
)
from suture.sandbox.packages.task_packages import packages_for_task

__all__ = [
    "AddedPackages",
    "InstalledPackages",
    "NewProjectPackages",
    "PackagesRefused",
    "is_lock_path",
    "manifest_name_for",
    "packages_for_task",
    "with_packages_shown",
]
