"""The certificate of a judgement: the verdict on somebody's change, and all that a replay without a model needs."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from typing import Any

from suture.core.records import Language
from suture.core.records.judgement import Judgement
from suture.project.languages import Interpreter

JUDGEMENT_FORMAT = "suture-judgement/1"


@dataclass(frozen=True, kw_only=True)
class TestEnvironment:
    """What tests ran with, apart from the project. It names no folder of the machine.

    Attributes:
        platform: System and processor, such as `linux-x86_64`.
        python: Version of the tests' interpreter; empty if they had none.
        packages: Name -> version of the Python packages that are installed there.
    """

    __test__ = False  # keeps pytest from collecting this class

    platform: str = ""
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JudgementCertificate:
    """A judgement with its evidence.

    Attributes:
        format: Name and version of the format.
        project: Path -> SHA-256 of each file before the change.
        project_hash: Content hash of `project`.
        contents: Path -> content before the change. Files that may hold secrets are left out, and all files of a
            large project; a replay then needs the project.
        language: The language that the test command tests.
        given_command: The test command that whoever judged gave, or the project's settings before the change; empty
            if the project's files suggested one. `judgement.command` is what ran.
        protect: Globs of files that decide, besides those that every judgement protects.
        built_files: Files in `project` that a build wrote, so that they are no code to judge.
        folder: The folder in which the command tests, if files above it decide; empty for the whole project.
        links: Path of a link to a folder of the project -> that folder.
        source_roots: Folders of the project, relative to it, that its environment has on `sys.path`.
        environment: What the tests ran with.
        policy: The settings that decided what rejects the change, by group.
        judgement: The judgement. A replay cannot confirm `base`, `detail`, `seconds` and the commits of `state`.
        suture: Version of Suture that judged; a claim.
        made_at_s: Seconds since the epoch; a claim.
        seal: Content hash of everything else. It reveals accidental changes; the replay reveals forgery.
    """

    format: str = JUDGEMENT_FORMAT
    project: Mapping[str, str]
    project_hash: str
    contents: Mapping[str, bytes] = field(default_factory=dict)
    language: Language
    given_command: str = ""
    protect: tuple[str, ...] = ()
    built_files: tuple[str, ...] = ()
    folder: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    source_roots: tuple[str, ...] = ()
    environment: TestEnvironment = field(default_factory=TestEnvironment)
    policy: Mapping[str, Any] = field(default_factory=dict)
    judgement: Judgement
    suture: str = ""
    made_at_s: float = 0.0
    seal: str = ""

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return self.judgement.diff

    @property
    def result(self) -> Mapping[str, str]:
        """Changed path -> SHA-256 after the change; removed files have none."""
        return self.judgement.state.files


def describe_environment(interpreter: Interpreter | None) -> TestEnvironment:
    """Return what tests run with here. Packages are listed by their metadata; nothing of them runs."""
    if interpreter is None:
        return TestEnvironment(platform=_describe_platform())
    folders = [*interpreter.site_packages, *([interpreter.packages] if interpreter.packages else [])]
    packages: dict[str, str] = {}
    for distribution in distributions(path=folders):
        metadata = distribution.metadata
        if "Name" in metadata and "Version" in metadata:  # a removed package can leave an empty folder
            name = metadata["Name"].lower().replace("_", "-")
            packages.setdefault(
                name, metadata["Version"]
            )  # of two versions, the first in `sys.path` is imported
    return TestEnvironment(
        platform=_describe_platform(), python=interpreter.version, packages=dict(sorted(packages.items()))
    )


def _describe_platform() -> str:
    return f"{sys.platform}-{platform.machine()}"


def hash_tree(digests: Mapping[str, str]) -> str:
    """Return the digest of a folder: the SHA-256 of the sorted output of `sha256sum` for its files.

    in-toto calls it `dirHash`, and Go's module proxy `h1`.

    Args:
        digests: Path -> SHA-256 of its content, in hexadecimal digits.
    """
    lines = sorted((os.fsencode(path), digest.encode()) for path, digest in digests.items())
    return hashlib.sha256(b"".join(b"%s  %s\n" % (digest, path) for path, digest in lines)).hexdigest()
