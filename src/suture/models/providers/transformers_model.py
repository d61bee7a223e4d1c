"""`huggingface:NAME`: a model of the hub or of a local folder, run by Transformers in this process."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from suture.core.settings.schema import Settings
from suture.errors import ContextTooLong, ModelError, ModelTimeout, PrerequisiteError
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.reply_streaming import current_listener, report_reply

TORCH_REMEDY = "install the torch that fits your machine (docs/models.md)"
PACKAGES = (("transformers", 'pip install "suture[huggingface]"'), ("torch", TORCH_REMEDY))
FOUR_BIT_PACKAGES = tuple(
    (name, "pip install bitsandbytes accelerate, or set model.quantization = none")
    for name in ("bitsandbytes", "accelerate")
)
"""Additional packages for 4-bit quantization; Transformers would name only the first missing one."""


@dataclass(frozen=True, kw_only=True)
class LoadedWeights:
    """Weights in memory with their tokenizer. `busy` serialises generation."""

    tokenizer: Any
    weights: Any
    busy: threading.Lock


class TransformersModel:
    """A causal language model that runs in this process.

    Args:
        model: Its name on the hub, or a folder.
        settings: Seed, time limit, quantization and the hub's token.

    Raises:
        PrerequisiteError: A required package is missing, or the name is also a folder here.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        _refuse_ambiguous_name(model)
        self.name = f"huggingface:{model}"
        self._model = model
        self._knobs = settings.model
        token = settings.keys.huggingface
        self._token = token.get_secret_value() if token is not None else None
        needed = (*PACKAGES, *FOUR_BIT_PACKAGES) if self._knobs.quantization == "4bit" else PACKAGES
        for package, remedy in needed:
            if importlib.util.find_spec(package) is None:
                raise PrerequisiteError(f"{self.name!r} needs the package {package!r}", remedy=remedy)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Generate one reply, loading the weights if necessary; see `Model.complete`.

        Raises:
            PrerequisiteError: The weights cannot be loaded.
        """
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(self._draw, tuple(messages), sampling, cancelled)
        finally:
            cancelled.set()  # after a cancellation the thread stops at its next token

    async def close(self) -> None:
        """Do nothing: the weights stay for the next model object of this process."""

    def _draw(self, messages: tuple[Message, ...], sampling: Sampling, cancelled: threading.Event) -> Reply:
        loaded = _load(self._model, self._knobs.quantization, self._token)
        torch = importlib.import_module("torch")
        prompt = _encode_prompt(loaded.tokenizer, messages).to(loaded.weights.device)
        prompt_tokens = int(prompt["input_ids"].shape[1])
        context_tokens = getattr(loaded.weights.config, "max_position_embeddings", None)
        if context_tokens is not None and prompt_tokens + sampling.max_tokens > context_tokens:
            raise ContextTooLong(
                f"{self.name!r} has {context_tokens} tokens of context, but the prompt needs {prompt_tokens} "
                f"and the reply {sampling.max_tokens}",
                remedy="lower model.max_tokens, or give less",
            )
        with loaded.busy:
            torch.manual_seed(self._knobs.seed + sampling.index)
            start_s = time.perf_counter()
            listener = current_listener()
            try:
                with report_reply(listener) if listener is not None else nullcontext() as report:
                    written = self._generate(loaded, prompt, sampling, cancelled, report)
            except (RuntimeError, ValueError, IndexError) as fault:  # from torch, including out of memory
                raise ModelError(f"{self.name!r} failed: {fault}") from fault
            seconds = time.perf_counter() - start_s
        tokens = written[0, prompt_tokens:]
        text, stopped = _cut_at_stop(_text(loaded, tokens), sampling.stop)
        ended = stopped or (bool(len(tokens)) and int(tokens[-1]) in _end_tokens(loaded))
        if not ended and len(tokens) < sampling.max_tokens and seconds >= self._knobs.timeout_s:
            raise ModelTimeout(f"{self.name!r} did not answer in time", remedy="raise model.timeout_s")
        return Reply(
            text=text,
            finish="stop" if ended else "length" if len(tokens) >= sampling.max_tokens else "other",
            prompt_tokens=prompt_tokens,
            completion_tokens=len(tokens),
            seconds=seconds,
            model=self.name,
        )

    def _generate(
        self,
        loaded: LoadedWeights,
        prompt: Any,
        sampling: Sampling,
        cancelled: threading.Event,
        report: Callable[[str], None] | None,
    ) -> Any:
        """Return the token ids of prompt and reply (1 x n); `report` gets the text after each token."""
        transformers = importlib.import_module("transformers")
        torch = importlib.import_module("torch")
        until_s = time.perf_counter() + self._knobs.timeout_s
        prompt_tokens = int(prompt["input_ids"].shape[1])

        def is_over(input_ids: Any, scores: Any, **rest: Any) -> Any:
            over = cancelled.is_set() or time.perf_counter() >= until_s
            if report is not None or sampling.stop:
                text, stopped = _cut_at_stop(_text(loaded, input_ids[0, prompt_tokens:]), sampling.stop)
                over = over or stopped
                if report is not None:
                    report(text)
            return torch.full((input_ids.shape[0],), over, device=input_ids.device)

        drawn: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            drawn = {"do_sample": True, "temperature": float(sampling.temperature)}
        return loaded.weights.generate(
            **prompt,
            **drawn,
            max_new_tokens=sampling.max_tokens,
            pad_token_id=loaded.tokenizer.pad_token_id or loaded.tokenizer.eos_token_id,
            stopping_criteria=transformers.StoppingCriteriaList([is_over]),
        )


_loading = threading.Lock()


def _load(model: str, quantization: str, token: str | None) -> LoadedWeights:
    with _loading:
        return _load_once(model, quantization, token)


@lru_cache(maxsize=1)
def _load_once(model: str, quantization: str, token: str | None) -> LoadedWeights:
    """Load a model; the last one stays in memory, because loading takes longer than generating.

    Raises:
        PrerequisiteError: The model does not exist, or cannot be loaded with this quantization on this
            machine.
    """
    transformers = importlib.import_module("transformers")
    torch = importlib.import_module("torch")
    how: dict[str, Any] = {"dtype": "auto"}
    if quantization == "4bit":
        how = {
            "quantization_config": transformers.BitsAndBytesConfig(load_in_4bit=True),
            "device_map": "auto",
        }
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, token=token)
        weights = transformers.AutoModelForCausalLM.from_pretrained(model, token=token, **how)
    except (OSError, ValueError, ImportError) as fault:
        raise PrerequisiteError(
            f"{'huggingface:' + model!r} cannot be loaded: {' '.join(str(fault).split())[:300]}",
            remedy="check the name, keys.huggingface for a gated model, and the network",
        ) from fault
    if quantization == "none" and torch.cuda.is_available():
        weights = weights.to("cuda")
    return LoadedWeights(tokenizer=tokenizer, weights=weights.eval(), busy=threading.Lock())


def _refuse_ambiguous_name(model: str) -> None:
    """Refuse a hub name that is also a folder here: Transformers would load the folder.

    Raises:
        PrerequisiteError: There is such a folder; the user must write it as a path.
    """
    if not model.startswith(("/", "./", "../")) and Path(model).exists():
        raise PrerequisiteError(
            f"'huggingface:{model}' could be a model of the hub, and there is a folder {model!r} here",
            remedy=f"for the folder say huggingface:./{model}; for the hub's model go to another folder",
        )


def _encode_prompt(tokenizer: Any, messages: tuple[Message, ...]) -> Any:
    """Return the prompt in the model's chat template; a base model without one gets the plain texts."""
    if tokenizer.chat_template:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        has_prefill = messages[-1].role == "assistant"
        return tokenizer.apply_chat_template(
            turns,
            add_generation_prompt=not has_prefill,
            continue_final_message=has_prefill,
            return_tensors="pt",
            return_dict=True,
        )
    text = "\n\n".join(message.content for message in messages)
    text += "" if messages[-1].role == "assistant" else "\n"
    return tokenizer(text, return_tensors="pt", return_token_type_ids=False)


def _text(loaded: LoadedWeights, tokens: Any) -> str:
    written: str = loaded.tokenizer.decode(tokens, skip_special_tokens=True)
    return written


def _cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return the text before the first stop text, and whether there is one."""
    found = [text.index(stop) for stop in stops if stop in text]
    return (text[: min(found)], True) if found else (text, False)


def _end_tokens(loaded: LoadedWeights) -> set[int]:
    """Return the ids of the tokens that end a reply."""
    ends = loaded.weights.generation_config.eos_token_id
    if ends is None:
        ends = loaded.tokenizer.eos_token_id
    return set(ends) if isinstance(ends, list) else {ends}
