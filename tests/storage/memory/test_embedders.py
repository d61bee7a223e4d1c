"""Embedders: MiniLM against reference vectors, embedders of servers, and the choice by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from requirements import Require
from suture.core.settings import Settings
from suture.core.settings.schema import MemorySettings
from suture.errors import ModelAuthError, ModelError, UsageError
from suture.storage.memory.embedders import HashedNgrams, ServedEmbedder, open_embedder
from suture.storage.memory.minilm import MiniLm, is_installed

REFERENCE = json.loads((Path(__file__).parent / "data" / "minilm_vectors.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def minilm(require: Require) -> MiniLm:
    """The MiniLM embedder, if its weights are installed."""
    require("minilm", is_installed(), "the embedder minilm is not installed")
    return MiniLm()


def test_minilm_gives_the_reference_vectors(minilm: MiniLm) -> None:
    vectors = minilm.embed(REFERENCE["texts"])
    assert np.abs(vectors - np.array(REFERENCE["vectors"], dtype=np.float32)).max() < 2e-6


def test_a_vector_does_not_depend_on_the_rest_of_the_batch(minilm: MiniLm) -> None:
    text = REFERENCE["texts"][0]
    batch = minilm.embed(["a much longer text " * 40, text, ""])
    assert np.abs(batch[1] - minilm.embed([text])[0]).max() < 2e-6
    assert np.allclose(np.linalg.norm(batch, axis=1), 1, atol=1e-5)


def test_similar_texts_have_similar_vectors(minilm: MiniLm) -> None:
    vectors = minilm.embed(
        ["a list index out of range", "an array read past its end", "a red car in the street"]
    )
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_hashed_ngrams_reflect_similar_spelling() -> None:
    vectors = HashedNgrams().embed(
        ["KeyError in read_config", "KeyError in readConfig", "matrix product", ""]
    )
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]
    assert np.allclose(np.linalg.norm(vectors[:3], axis=1), 1, atol=1e-5)
    assert not vectors[3].any()


def make_client(status: int, body: object) -> httpx.Client:
    """Return a client whose server always sends this answer."""
    return httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(status, json=body)))


def test_vectors_of_openai_are_in_the_order_of_the_texts() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        rows = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 4]}]
        return httpx.Response(200, json={"data": rows})

    client = httpx.Client(transport=httpx.MockTransport(answer))
    embedder = ServedEmbedder("openai", "some-model", "http://server/v1/", key="k1", client=client)

    assert embedder.embed(["a", "b"]).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 1]]
    assert str(requests[0].url) == "http://server/v1/embeddings"
    assert requests[0].headers["authorization"] == "Bearer k1"
    assert json.loads(requests[0].content) == {"model": "some-model", "input": ["a", "b"]}


def test_vectors_of_ollama_are_normalised() -> None:
    client = make_client(200, {"embeddings": [[3, 4]]})
    vectors = ServedEmbedder("ollama", "m", "http://server", client=client).embed(["a"])
    assert vectors.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, {}, ModelAuthError),
        (500, {}, ModelError),
        (200, {"data": []}, ModelError),
        (200, {"data": [{"index": 0, "embedding": ["x"]}]}, ModelError),
        (200, {"data": [{"index": 0, "embedding": [0.0] * 9000}]}, ModelError),
        (200, [1], ModelError),
    ],
)
def test_an_answer_without_valid_vectors_is_an_error(
    status: int, body: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ServedEmbedder("openai", "m", "http://server", client=make_client(status, body)).embed(["a"])


def test_an_endless_answer_is_an_error() -> None:
    def chunks() -> Iterator[bytes]:
        while True:
            yield b" " * 65536

    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, content=chunks())))

    with pytest.raises(ModelError, match="without end"):
        ServedEmbedder("openai", "m", "http://server", client=client).embed(["a"])


def test_a_setting_names_an_embedder() -> None:
    def identity_for(name: str) -> str:
        embedder = open_embedder(Settings(memory=MemorySettings(embedder=name)))
        return embedder.identity if embedder is not None else ""

    assert identity_for("none") == ""
    assert identity_for("hashed") == HashedNgrams.identity
    assert identity_for("openai:text-embedding-3-small") == "openai:text-embedding-3-small"
    assert identity_for("ollama:all-minilm") == "ollama:all-minilm"
    with pytest.raises(UsageError, match="is not an embedder"):
        identity_for("word2vec")
