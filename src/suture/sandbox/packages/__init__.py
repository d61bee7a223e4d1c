"""Installing dependencies that new code asks for: fetched, locked by their hashes, and shown inside the
sandbox.

The user's own pip, npm and go fetch them from the index that the user has configured. They execute nothing of
a package: only archives are taken, and no install script runs. They run in their own sandbox
(`client.py`) with an empty folder to write to and one way out: Suture's proxy, which leads to the index and
nowhere else (`index_proxy.py`). This package does not decide whether a package may be installed:
`suture.project.safety` has decided that before. It starts no program of a project.
"""

from suture.sandbox.packages.added_packages import AddedPackages, packages_for_task
from suture.sandbox.packages.installer import InstalledPackages, PackagesRefused
from suture.sandbox.packages.package_sets import (
    NewProjectPackages,
    is_lock_path,
    manifest_name_for,
    with_packages_shown,
)

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
