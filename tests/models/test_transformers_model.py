"""Transformers in this process, with a tiny random model and tokenizer; optional."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from requirements import Require
from suture.core.settings.schema import ModelSettings, Settings
from suture.errors import ContextTooLong, ModelTimeout, PrerequisiteError
from suture.models import Message, Model, Sampling, listen_to_replies, open_model, prompt_token_upper_bound

PROMPT = (
    Message(role="system", content="You write code."),
    Message(role="user", content="def add(a, b):"),
)
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}<|assistant|>"
CONTEXT_TOKENS = 256
# What torch and transformers warn of is theirs.
pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("name", ["org/model", "model"])
def test_a_folder_of_the_project_does_not_take_the_place_of_a_model_of_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PrerequisiteError, match="there is a folder") as refused:
        open_model(Settings(model=ModelSettings(name=f"huggingface:{name}")))
    assert f"huggingface:./{name}" in refused.value.remedy


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """A folder with a two-layer model of random weights and a byte-level tokenizer."""
    for package in ("torch", "transformers", "tokenizers"):
        found = importlib.util.find_spec(package) is not None
        require("huggingface", found, f"the package {package!r} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        return _make(tmp_path_factory.mktemp("hub") / "tiny")


def _make(folder: Path) -> Path:
    tokenizers: Any = importlib.import_module("tokenizers")
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, "<end>"])}
    core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    shape = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=CONTEXT_TOKENS,
        eos_token_id=vocabulary["<end>"],
        bos_token_id=None,
        pad_token_id=None,
    )
    transformers.LlamaForCausalLM(shape).save_pretrained(folder)
    return folder


def opened(folder: Path, **knobs: object) -> Model:
    name = f"huggingface:{folder}"
    return open_model(Settings(model=ModelSettings.model_validate({"name": name, **knobs})))


async def test_a_reply_is_drawn_and_counted(tiny_model: Path) -> None:
    model = opened(tiny_model)
    reply = await model.complete(PROMPT, Sampling(max_tokens=12))
    assert reply.model == model.name == f"huggingface:{tiny_model}"
    assert reply.text
    assert 0 < reply.prompt_tokens <= prompt_token_upper_bound(PROMPT)
    assert 0 < reply.completion_tokens <= 12
    assert reply.finish in ("stop", "length")
    await model.close()


async def test_greedy_repeats_itself_and_samples_follow_the_seed(tiny_model: Path) -> None:
    model = opened(tiny_model)

    async def text(temperature: float, index: int) -> str:
        sampling = Sampling(temperature=temperature, max_tokens=16, index=index)
        return (await model.complete(PROMPT, sampling)).text

    assert await text(0, 0) == await text(0, 1)
    assert await text(1, 0) == await text(1, 0)
    assert len({await text(1, index) for index in range(3)}) == 3


async def test_the_end_token_ends_a_reply(tiny_model: Path) -> None:
    model = opened(tiny_model, seed=3)
    drawn = [
        await model.complete(PROMPT, Sampling(temperature=2, max_tokens=180, index=n)) for n in range(12)
    ]
    assert {reply.finish for reply in drawn} == {"stop", "length"}
    assert all((reply.completion_tokens == 180) == (reply.finish == "length") for reply in drawn)


async def test_a_prompt_beyond_the_context_is_refused_before_generation(tiny_model: Path) -> None:
    with pytest.raises(ContextTooLong, match=f"has {CONTEXT_TOKENS} tokens of context"):
        await opened(tiny_model).complete(PROMPT, Sampling(max_tokens=CONTEXT_TOKENS))


async def test_it_ends_when_its_time_is_up(tiny_model: Path) -> None:
    with pytest.raises(ModelTimeout):
        await opened(tiny_model, timeout_s=0.001).complete(PROMPT, Sampling(max_tokens=180, temperature=0))


async def test_a_reply_is_streamed_to_the_listener(tiny_model: Path) -> None:
    told: list[str | None] = []
    with listen_to_replies(lambda number, text: told.append(text)):
        reply = await opened(tiny_model).complete(PROMPT, Sampling(max_tokens=12))
    assert len(told) == reply.completion_tokens + 1
    assert told[-2:] == [reply.text, None]


async def test_it_stops_before_a_text_and_draws_no_more(tiny_model: Path) -> None:
    model = opened(tiny_model)
    whole = await model.complete(PROMPT, Sampling(max_tokens=24))
    # One letter that was written well before the end: bytes of broken characters are no stop.
    middle = next(letter for letter in whole.text[4:] if letter.isascii())
    told: list[str | None] = []
    with listen_to_replies(lambda number, text: told.append(text)):
        cut = await model.complete(PROMPT, Sampling(max_tokens=24, stop=("never written", middle)))
    assert cut.text == whole.text[: whole.text.index(middle)]
    assert cut.finish == "stop"
    assert cut.completion_tokens < whole.completion_tokens
    assert not any(middle in text for text in told if text is not None)


async def test_a_prefilled_reply_continues_the_prefill(tiny_model: Path) -> None:
    model = opened(tiny_model)
    whole = await model.complete(PROMPT, Sampling(max_tokens=24))
    # The random model's bytes may be halves of a letter, which cannot be said again; a plain one can.
    begun = (*PROMPT, Message(role="assistant", content="    return a"))
    reply = await model.complete(begun, Sampling(max_tokens=4))
    assert reply.prompt_tokens == whole.prompt_tokens + len("    return a")
    assert "return a" not in reply.text


@pytest.mark.parametrize("missing", ["bitsandbytes", "accelerate"])
def test_four_bit_quantization_names_missing_packages(
    missing: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("bitsandbytes", "accelerate"):
        # `None` makes Python find no such package; a module makes it one that is there.
        there = ModuleType(package)
        there.__spec__ = ModuleSpec(package, None)
        monkeypatch.setitem(sys.modules, package, None if package == missing else there)
    with pytest.raises(PrerequisiteError, match=f"needs the package '{missing}'") as refused:
        opened(tiny_model, quantization="4bit")
    assert "model.quantization" in refused.value.remedy


async def test_a_model_that_is_not_there_names_the_remedy(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(PrerequisiteError, match="check the name"):
        await opened(tmp_path / "nothing").complete(PROMPT, Sampling(max_tokens=4))


def test_missing_packages_have_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)  # Python finds no such package
    with pytest.raises(PrerequisiteError, match="needs the package 'transformers'") as refused:
        opened(Path("any"))
    assert "suture[huggingface]" in refused.value.remedy
