"""Compiles packages of Go's standard library and packs what its cache got by that, behind the wall."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

BOX = Path(__file__).resolve().parent
MODULE = BOX / "library"
PACKED_BYTES = 24 << 20
"""A run brings back 32 MiB."""
LISTED = "{{if and .Standard .GoFiles}}{{.ImportPath}}{{end}}"
WAYS = (
    ("go", "test", "."),
    ("go", "test", "-c", "-vet=off", "-cover", "-coverpkg=./...", "-o", "/dev/null", "."),
    ("go", "test", "-c", "-vet=off", "-o", "/dev/null", "."),
)
OVERLAY = BOX / "_suture" / "overlay.json"
VOUCHING = ("go", "test", f"-overlay={OVERLAY}", ".")
"""As in verdicts: package `testing` is another there, and so is what needs it."""
"""How tests are compiled later; each has some files of its own."""


def compile_all(names: list[str]) -> bool:
    """Compile packages by testing one of ours that imports them; whether that went well."""
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
        subprocess.run(VOUCHING, cwd=MODULE, check=False)  # where that fails, no verdict is made so
    return all(subprocess.run(way, cwd=MODULE, check=False).returncode == 0 for way in WAYS)


def pack(cache: Path) -> int:
    """Pack the files that are new, the oldest first; how many were left."""
    new = [path for path in cache.glob("??/*-[ad]") if not path.is_symlink()]
    new.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    left = len(new)
    with zipfile.ZipFile(BOX / "entries.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        size = 0
        for path in new:
            archive.write(path, f"{path.parent.name}/{path.name}")
            size += archive.infolist()[-1].compress_size
            left -= 1
            if size > PACKED_BYTES:
                break
    return left


def main() -> None:
    """Carry out the plan."""
    plan = json.loads((BOX / "plan.json").read_text("utf-8"))
    if compile_all(plan["packages"]):
        left = pack(Path(os.environ["GOCACHE"]))
        (BOX / "state.json").write_text(json.dumps(left))


if __name__ == "__main__":
    main()
