"""Make Go's test programs attest the tests that they ran, by adding a few lines to package `testing`."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from importlib import resources
from pathlib import Path

from suture.project.languages.reports import Attestation

# The lines of package `testing` with which the run of all tests, the report of a test and the report of an example
# begin.
ENDS = re.compile(r"^func \(m \*M\) Run\(\) \(code int\) \{$", re.MULTILINE)
REPORTS = re.compile(r"^func \((\w) \*[TF]\) report\(\) \{$", re.MULTILINE)
EXAMPLES = re.compile(
    r"^func \(eg \*InternalExample\) processRunResult\(.*\) \(passed bool\) \{$", re.MULTILINE
)
# Go code that is added after the line that a pattern has matched.
RECORD = r"\g<0>" "\n\t" r"sutureRecord(\1.name, sutureStatus(\1.Failed(), \1.Skipped()))"
RECORD_EXAMPLE = r"\g<0>" "\n\tdefer func() { sutureRecord(eg.Name, sutureStatus(!passed, false)) }()"
OVERLAY = "overlay.json"
"""The file that maps the files of Go's library to those that replace them."""
PROBE = {
    "go.mod": b"module probe\n\ngo 1.16\n",
    "probe_test.go": b'package probe\n\nimport "testing"\n\nfunc TestProbe(t *testing.T) {}\n',
}


def build_overlay(program: str, folder: str) -> Mapping[str, bytes]:
    """Return the files of a modified package `testing`, and the overlay that makes Go use it.

    The result is empty if the installed package is not as expected.

    Args:
        folder: Folder in which the files will be.
    """
    source = Path(program).resolve().parent.parent / "src" / "testing"
    replacements = (
        ("testing.go", ENDS, "func (m *M) sutureRun() (code int) {"),
        ("testing.go", REPORTS, RECORD),
        ("fuzz.go", REPORTS, RECORD),
        ("example.go", EXAMPLES, RECORD_EXAMPLE),
    )
    try:
        texts = {name: (source / name).read_text("utf-8") for name, _, _ in replacements}
    except (OSError, UnicodeDecodeError):
        return {}
    for name, pattern, replacement in replacements:
        texts[name], count = pattern.subn(replacement, texts[name])
        if count != 1:
            return {}
    attestation = resources.files(__package__).joinpath("attestation.go").read_text("utf-8")
    texts["testing.go"] += attestation.partition("\n")[2]  # without its package clause
    overlay = {"Replace": {str(source / name): f"{folder}/testing/{name}" for name in texts}}
    files = {f"testing/{name}": text.encode() for name, text in texts.items()}
    return {OVERLAY: json.dumps(overlay).encode(), **files}


def create_tokens(files: Iterable[str]) -> Mapping[str, bytes]:
    """Return a token for each folder of tests, by the name of its file; see `attestation.go`."""
    folders = {path[: path.rfind("/") + 1] for path in files if path.endswith("_test.go")}
    return {f"tokens/%{folder.replace('/', '%')}": secrets.token_hex(16).encode() for folder in folders}


def read_attestations(report: bytes, tokens: Collection[bytes]) -> Mapping[str, Mapping[str, str]]:
    """Return package -> test -> outcome, for the packages whose test programs completed.

    Args:
        report: What the test programs wrote. Code under test in the same process may write there, too.
        tokens: The tokens of the run. Each is valid for one package.
    """
    owners: dict[bytes, bytes] = {}
    outcomes: dict[bytes, dict[str, str]] = {}
    for line in report.split(b"\n"):
        token, *fields = line.split(b"\t")
        if token not in tokens or not fields:
            continue
        if owners.setdefault(token, fields[0]) != fields[0]:
            return {}  # a package used the token of another one
        package_outcomes = outcomes.setdefault(fields[0], {})
        for field in fields[1:]:
            status, _, name = field.decode("utf-8", "replace").partition(" ")
            if package_outcomes.get(name) != "failed":  # a later line cannot revoke a failure
                package_outcomes[name] = status
    return {package.decode("utf-8", "replace"): tests for package, tests in outcomes.items()}


GO_ATTESTATION = Attestation(
    files=build_overlay,
    tokens=create_tokens,
    environment=lambda folder: {
        "SUTURE_ATTESTATION": folder,
        "GOFLAGS": f"-p=4 -v -json -overlay={folder}/{OVERLAY}",
    },
    read=read_attestations,
    probe=PROBE,
    probe_command=("go", "test", "./..."),
    supports_command=lambda line: "-overlay" not in line,
)
