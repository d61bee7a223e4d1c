"""Embedders: MiniLM against reference vectors, served ones, and the choice by name."""

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
    require("minilm", is_installed(), "the embedder minilm is not installed")
    return MiniLm()


def test_the_embedded_model_gives_the_vectors_of_its_reference(minilm: MiniLm) -> None:
    made = minilm.embed(REFERENCE["texts"])
    assert np.abs(made - np.array(REFERENCE["vectors"], dtype=np.float32)).max() < 2e-6


def test_a_text_has_one_vector_whatever_is_embedded_beside_it(minilm: MiniLm) -> None:
    text = REFERENCE["texts"][0]
    beside = minilm.embed(["a much longer text " * 40, text, ""])
    assert np.abs(beside[1] - minilm.embed([text])[0]).max() < 2e-6
    assert np.allclose(np.linalg.norm(beside, axis=1), 1, atol=1e-5)


def test_similar_texts_are_nearer(minilm: MiniLm) -> None:
    about = minilm.embed(
        ["a list index out of range", "an array read past its end", "a red car in the street"]
    )
    assert about[0] @ about[1] > about[0] @ about[2] + 0.1


def test_hashed_pieces_need_nothing_and_know_spelling() -> None:
    made = HashedNgrams().embed(["KeyError in read_config", "KeyError in readConfig", "matrix product", ""])
    assert made[0] @ made[1] > 0.6 > 0.3 > made[0] @ made[2]
    assert np.allclose(np.linalg.norm(made[:3], axis=1), 1, atol=1e-5)
    assert not made[3].any()


def answering(status: int, said: object) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(status, json=said)))


def test_openais_vectors_come_in_the_order_of_the_texts() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        rows = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 4]}]
        return httpx.Response(200, json={"data": rows})

    client = httpx.Client(transport=httpx.MockTransport(answer))
    embedder = ServedEmbedder("openai", "some-model", "http://server/v1/", key="k1", client=client)
    assert embedder.embed(["a", "b"]).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 1]]
    assert str(asked[0].url) == "http://server/v1/embeddings"
    assert asked[0].headers["authorization"] == "Bearer k1"
    assert json.loads(asked[0].content) == {"model": "some-model", "input": ["a", "b"]}


def test_ollamas_vectors() -> None:
    client = answering(200, {"embeddings": [[3, 4]]})
    made = ServedEmbedder("ollama", "m", "http://server", client=client).embed(["a"])
    assert made.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (401, {}, ModelAuthError),
        (500, {}, ModelError),
        (200, {"data": []}, ModelError),
        (200, {"data": [{"index": 0, "embedding": ["x"]}]}, ModelError),
        (200, {"data": [{"index": 0, "embedding": [0.0] * 9000}]}, ModelError),
        (200, [1], ModelError),
    ],
)
def test_a_server_that_gives_no_vectors_is_a_fault(status: int, said: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        ServedEmbedder("openai", "m", "http://server", client=answering(status, said)).embed(["a"])


def test_an_answer_without_end_is_cut_off() -> None:
    def pieces() -> Iterator[bytes]:
        while True:
            yield b" " * 65536

    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, content=pieces())))
    with pytest.raises(ModelError, match="without end"):
        ServedEmbedder("openai", "m", "http://server", client=client).embed(["a"])


def test_a_setting_names_an_embedder() -> None:
    def of(name: str) -> str:
        embedder = open_embedder(Settings(memory=MemorySettings(embedder=name)))
        return embedder.identity if embedder is not None else ""

    assert of("none") == ""
    assert of("hashed") == HashedNgrams.identity
    assert of("openai:text-embedding-3-small") == "openai:text-embedding-3-small"
    assert of("ollama:all-minilm") == "ollama:all-minilm"
    with pytest.raises(UsageError, match="is not an embedder"):
        of("word2vec")
