"""Compiles packages of Go's standard library inside the sandbox and packs the new cache entries."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

BOX = Path(__file__).resolve().parent
MODULE = BOX / "library"
MAX_PACKED_BYTES = 24 << 20
"""One run can bring back 32 MiB."""
LISTED = "{{if and .Standard .GoFiles}}{{.ImportPath}}{{end}}"
TEST_COMMANDS = (
    ("go", "test", "."),
    ("go", "test", "-c", "-vet=off", "-cover", "-coverpkg=./...", "-o", "/dev/null", "."),
    ("go", "test", "-c", "-vet=off", "-o", "/dev/null", "."),
)
"""The ways in which tests are compiled later; each produces cache entries of its own."""
OVERLAY = BOX / "_suture" / "overlay.json"
OVERLAY_COMMAND = ("go", "test", f"-overlay={OVERLAY}", ".")
"""Verdicts replace package `testing`, so it and its dependents are compiled once more with the overlay."""


def compile_all(names: list[str]) -> bool:
    """Compile packages by testing a package that imports all of them; return whether that succeeded."""
    MODULE.mkdir()
    (MODULE / "go.mod").write_text("module library\n\ngo 1.16\n")
    listed = subprocess.run(
        ("go", "list", "-e", "-f", LISTED, *names), cwd=MODULE, capture_output=True, text=True, check=False
    )
    imports = "".join(f'import _ "{name}"\n' for name in listed.stdout.split())
    (MODULE / "library.go").write_text(f"package library\n\n{imports}")
    test = 'package library\n\nimport "testing"\n\nfunc TestLibrary(t *testing.T) {}\n'
    (MODULE / "library_test.go").write_text(test)
    if OVERLAY.exists():
        subprocess.run(
            OVERLAY_COMMAND, cwd=MODULE, check=False
        )  # if this fails, verdicts do without the overlay
    return all(subprocess.run(way, cwd=MODULE, check=False).returncode == 0 for way in TEST_COMMANDS)


def pack(cache: Path) -> int:
    """Pack the new cache entries, oldest first, and return how many did not fit."""
    new = [path for path in cache.glob("??/*-[ad]") if not path.is_symlink()]
    new.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    left = len(new)
    with zipfile.ZipFile(BOX / "entries.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        size = 0
        for path in new:
            archive.write(path, f"{path.parent.name}/{path.name}")
            size += archive.infolist()[-1].compress_size
            left -= 1
            if size > MAX_PACKED_BYTES:
                break
    return left


def main() -> None:
    """Compile and pack what `plan.json` lists."""
    plan = json.loads((BOX / "plan.json").read_text("utf-8"))
    if compile_all(plan["packages"]):
        left = pack(Path(os.environ["GOCACHE"]))
        (BOX / "state.json").write_text(json.dumps(left))


if __name__ == "__main__":
    main()
