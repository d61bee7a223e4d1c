"""Compiles packages of Go's standard library inside the sandbox and packs the new cache entries."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

BOX = Path(__file__).resolve().parent
MODULE_FOLDER = BOX / "library"
MAX_PACKED_BYTES = 24 << 20
"""Compressed bytes that one run packs; it can return 32 MiB in all."""
STANDARD_PACKAGE_TEMPLATE = "{{if and .Standard .GoFiles}}{{.ImportPath}}{{end}}"
"""Prints a package's name if it belongs to the standard library and has Go files here."""
TEST_COMMANDS = (
    ("go", "test", "."),
    ("go", "test", "-c", "-vet=off", "-cover", "-coverpkg=./...", "-o", "/dev/null", "."),
    ("go", "test", "-c", "-vet=off", "-o", "/dev/null", "."),
)
"""The ways in which tests are compiled later; each produces cache entries of its own."""
OVERLAY_PATH = BOX / "_suture" / "overlay.json"
OVERLAY_COMMAND = ("go", "test", f"-overlay={OVERLAY_PATH}", ".")
"""Verdicts replace package `testing`, so it and its dependents are compiled again with the overlay."""


def compile_all(names: list[str]) -> bool:
    """Compile packages by testing a package that imports all of them; return whether that succeeded."""
    MODULE_FOLDER.mkdir()
    (MODULE_FOLDER / "go.mod").write_text("module library\n\ngo 1.16\n")
    listed = subprocess.run(
        ("go", "list", "-e", "-f", STANDARD_PACKAGE_TEMPLATE, *names),
        cwd=MODULE_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    imports = "".join(f'import _ "{name}"\n' for name in listed.stdout.split())
    (MODULE_FOLDER / "library.go").write_text(f"package library\n\n{imports}")
    test = 'package library\n\nimport "testing"\n\nfunc TestLibrary(t *testing.T) {}\n'
    (MODULE_FOLDER / "library_test.go").write_text(test)
    if OVERLAY_PATH.exists():
        # If this fails, verdicts run without the overlay.
        subprocess.run(OVERLAY_COMMAND, cwd=MODULE_FOLDER, check=False)
    return all(
        subprocess.run(command, cwd=MODULE_FOLDER, check=False).returncode == 0 for command in TEST_COMMANDS
    )


def pack(cache: Path) -> int:
    """Pack the new cache entries, oldest first, and return how many did not fit."""
    new_entries = [path for path in cache.glob("??/*-[ad]") if not path.is_symlink()]
    new_entries.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    remaining = len(new_entries)
    with zipfile.ZipFile(BOX / "entries.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        size = 0
        for path in new_entries:
            archive.write(path, f"{path.parent.name}/{path.name}")
            size += archive.infolist()[-1].compress_size
            remaining -= 1
            if size > MAX_PACKED_BYTES:
                break
    return remaining


def main() -> None:
    """Compile and pack what `plan.json` lists."""
    plan = json.loads((BOX / "plan.json").read_text("utf-8"))
    if compile_all(plan["packages"]):
        remaining = pack(Path(os.environ["GOCACHE"]))
        (BOX / "state.json").write_text(json.dumps(remaining))


if __name__ == "__main__":
    main()
