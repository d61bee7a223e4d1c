"""The optional Transformers back end, with a tiny random model and tokenizer."""

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
from suture.core.installation import format_install_command
from suture.core.settings.schema import ModelSettings, Settings
from suture.errors import ContextTooLong, ModelTimeout, PrerequisiteError
from suture.models import Message, Model, Sampling, listen_to_replies, open_model, prompt_token_upper_bound

PROMPT = (
    Message(role="system", content="You write code."),
    Message(role="user", content="def add(a, b):"),
)
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}<|assistant|>"
CONTEXT_TOKENS = 256
# Warnings of torch and transformers are not errors of Suture.
pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("name", ["org/model", "model"])
def test_a_project_folder_does_not_replace_a_model_of_the_hub(
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
        is_installed = importlib.util.find_spec(package) is not None
        require("huggingface", is_installed, f"the package {package!r} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        return make_tiny_model(tmp_path_factory.mktemp("hub") / "tiny")


def make_tiny_model(folder: Path) -> Path:
    """Write a two-layer model with random weights and a byte-level tokenizer."""
    tokenizers: Any = importlib.import_module("tokenizers")
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, "<end>"])}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
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
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def open_tiny_model(folder: Path, **knobs: object) -> Model:
    """Open the model of a folder."""
    name = f"huggingface:{folder}"
    return open_model(Settings(model=ModelSettings.model_validate({"name": name, **knobs})))


async def test_a_reply_is_generated_and_its_tokens_are_counted(tiny_model: Path) -> None:
    model = open_tiny_model(tiny_model)
    reply = await model.complete(PROMPT, Sampling(max_tokens=12))

    assert reply.model == model.name == f"huggingface:{tiny_model}"
    assert reply.text
    assert 0 < reply.prompt_tokens <= prompt_token_upper_bound(PROMPT)
    assert 0 < reply.completion_tokens <= 12
    assert reply.finish in ("stop", "length")

    await model.close()


async def test_greedy_replies_repeat_and_samples_follow_the_seed(tiny_model: Path) -> None:
    model = open_tiny_model(tiny_model)

    async def generate(temperature: float, index: int) -> str:
        sampling = Sampling(temperature=temperature, max_tokens=16, index=index)
        return (await model.complete(PROMPT, sampling)).text

    assert await generate(0, 0) == await generate(0, 1)
    assert await generate(1, 0) == await generate(1, 0)
    assert len({await generate(1, index) for index in range(3)}) == 3


async def test_the_end_token_ends_a_reply(tiny_model: Path) -> None:
    model = open_tiny_model(tiny_model, seed=3)
    replies = [
        await model.complete(PROMPT, Sampling(temperature=2, max_tokens=180, index=index))
        for index in range(12)
    ]

    assert {reply.finish for reply in replies} == {"stop", "length"}
    assert all((reply.completion_tokens == 180) == (reply.finish == "length") for reply in replies)


async def test_a_prompt_beyond_the_context_is_refused_before_generation(tiny_model: Path) -> None:
    with pytest.raises(ContextTooLong, match=f"has {CONTEXT_TOKENS} tokens of context"):
        await open_tiny_model(tiny_model).complete(PROMPT, Sampling(max_tokens=CONTEXT_TOKENS))


async def test_generation_ends_at_the_time_limit(tiny_model: Path) -> None:
    with pytest.raises(ModelTimeout):
        await open_tiny_model(tiny_model, timeout_s=0.001).complete(
            PROMPT, Sampling(max_tokens=180, temperature=0)
        )


async def test_a_reply_is_streamed_to_the_listener(tiny_model: Path) -> None:
    chunks: list[str | None] = []
    with listen_to_replies(lambda number, text: chunks.append(text)):
        reply = await open_tiny_model(tiny_model).complete(PROMPT, Sampling(max_tokens=12))
    assert len(chunks) == reply.completion_tokens + 1
    assert chunks[-2:] == [reply.text, None]


async def test_generation_stops_before_a_stop_text(tiny_model: Path) -> None:
    model = open_tiny_model(tiny_model)
    full_reply = await model.complete(PROMPT, Sampling(max_tokens=24))
    # A letter from well before the end; it must be ASCII, because a broken character cannot be a stop text.
    stop_letter = next(letter for letter in full_reply.text[4:] if letter.isascii())
    chunks: list[str | None] = []
    with listen_to_replies(lambda number, text: chunks.append(text)):
        cut = await model.complete(PROMPT, Sampling(max_tokens=24, stop=("never written", stop_letter)))

    assert cut.text == full_reply.text[: full_reply.text.index(stop_letter)]
    assert cut.finish == "stop"
    assert cut.completion_tokens < full_reply.completion_tokens
    assert not any(stop_letter in text for text in chunks if text is not None)


async def test_a_prefilled_reply_continues_the_prefill(tiny_model: Path) -> None:
    model = open_tiny_model(tiny_model)
    full_reply = await model.complete(PROMPT, Sampling(max_tokens=24))
    # The random model may write half a character, which cannot be sent as a prefill; plain text can.
    messages = (*PROMPT, Message(role="assistant", content="    return a"))

    reply = await model.complete(messages, Sampling(max_tokens=4))

    assert reply.prompt_tokens == full_reply.prompt_tokens + len("    return a")
    assert "return a" not in reply.text


@pytest.mark.parametrize("missing", ["bitsandbytes", "accelerate"])
def test_four_bit_quantization_names_missing_packages(
    missing: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("bitsandbytes", "accelerate"):
        # With `None`, Python finds no such package; with a module, the package seems to be installed.
        module = ModuleType(package)
        module.__spec__ = ModuleSpec(package, None)
        monkeypatch.setitem(sys.modules, package, None if package == missing else module)

    with pytest.raises(PrerequisiteError, match=f"needs the package '{missing}'") as refused:
        open_tiny_model(tiny_model, quantization="4bit")
    assert "model.quantization" in refused.value.remedy


async def test_a_missing_model_has_a_remedy(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(PrerequisiteError, match="check the name"):
        await open_tiny_model(tmp_path / "nothing").complete(PROMPT, Sampling(max_tokens=4))


def test_missing_packages_have_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)  # Python finds no such package
    with pytest.raises(PrerequisiteError, match="needs the package 'transformers'") as refused:
        open_tiny_model(Path("any"))
    assert refused.value.remedy == format_install_command("huggingface")
