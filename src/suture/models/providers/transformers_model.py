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

from suture.core.installation import format_install_command
from suture.core.settings.schema import Settings
from suture.errors import ContextTooLong, ModelError, ModelTimeout, PrerequisiteError
from suture.models.chat_model import Message, Reply, Sampling, current_listener, report_reply
from suture.models.thinking import separate_thinking

TORCH_REMEDY = "install the torch that fits your machine (docs/models.md)"
FOUR_BIT_REMEDIES = dict.fromkeys(
    ("bitsandbytes", "accelerate"),
    "pip install bitsandbytes accelerate, or set model.quantization = none",
)
"""Additional packages for 4-bit quantization; Transformers would name only the first missing one."""


@dataclass(frozen=True, kw_only=True)
class LoadedWeights:
    """Weights in memory with their tokenizer. `busy` serialises generation."""

    tokenizer: Any
    weights: Any
    busy: threading.Lock


class TransformersModel:
    """A causal language model that runs in this process, from the hub or a local folder.

    Raises:
        PrerequisiteError: A required package is missing, or the name is also a folder here.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        self.name = f"huggingface:{model}"
        if not model.startswith(("/", "./", "../")) and Path(model).exists():  # Transformers would load it
            raise PrerequisiteError(
                f"{self.name!r} could be a model of the hub, and there is a folder {model!r} here",
                remedy=f"for the folder say huggingface:./{model}; for the hub's model go to another folder",
            )
        self._model = model
        self._settings = settings.model
        token = settings.keys.huggingface
        self._token = token.get_secret_value() if token is not None else None
        is_four_bit = self._settings.quantization == "4bit"
        remedies = {
            "transformers": format_install_command("huggingface"),
            "torch": TORCH_REMEDY,
            **(FOUR_BIT_REMEDIES if is_four_bit else {}),
        }
        for package, remedy in remedies.items():
            if importlib.util.find_spec(package) is None:
                raise PrerequisiteError(f"{self.name!r} needs the package {package!r}", remedy=remedy)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Generate one reply, loading the weights if necessary; see `Model.complete`."""
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(self._complete, tuple(messages), sampling, cancelled)
        finally:
            cancelled.set()  # after a cancellation the thread stops at its next token

    async def close(self) -> None:
        """Do nothing: the weights stay for the next model object of this process."""

    def _complete(
        self, messages: tuple[Message, ...], sampling: Sampling, cancelled: threading.Event
    ) -> Reply:
        with _load_lock:
            loaded = _load_weights(self._model, self._settings.quantization, self._token)
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
            torch.manual_seed(self._settings.seed + sampling.index)
            start_s = time.perf_counter()
            listener = current_listener()
            try:
                with report_reply(listener) if listener is not None else nullcontext() as report:
                    token_ids = self._generate(loaded, prompt, sampling, cancelled, report)
            except (RuntimeError, ValueError, IndexError) as fault:  # from torch, including out of memory
                raise ModelError(f"{self.name!r} failed: {fault}") from fault
            seconds = time.perf_counter() - start_s
        reply_ids = token_ids[0, prompt_tokens:]
        text, stopped = _cut_at_stop(_decode(loaded, reply_ids), sampling.stop)
        is_complete = stopped or (bool(len(reply_ids)) and int(reply_ids[-1]) in _end_token_ids(loaded))
        reached_limit = len(reply_ids) >= sampling.max_tokens
        if not is_complete and not reached_limit and seconds >= self._settings.timeout_s:
            raise ModelTimeout(f"{self.name!r} did not answer in time", remedy="raise model.timeout_s")
        reply = Reply(
            text=text,
            finish="stop" if is_complete else "length" if reached_limit else "other",
            prompt_tokens=prompt_tokens,
            completion_tokens=len(reply_ids),
            seconds=seconds,
            model=self.name,
        )
        # A model that continues our text does not think before it.
        return reply if messages[-1].role == "assistant" else separate_thinking(reply)

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
        deadline_s = time.perf_counter() + self._settings.timeout_s
        prompt_tokens = int(prompt["input_ids"].shape[1])

        def must_stop(input_ids: Any, scores: Any, **_: Any) -> Any:
            stop_now = cancelled.is_set() or time.perf_counter() >= deadline_s
            if report is not None or sampling.stop:
                text, stopped = _cut_at_stop(_decode(loaded, input_ids[0, prompt_tokens:]), sampling.stop)
                stop_now = stop_now or stopped
                if report is not None:
                    report(text)
            return torch.full((input_ids.shape[0],), stop_now, device=input_ids.device)

        sampling_options: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            sampling_options = {"do_sample": True, "temperature": float(sampling.temperature)}
        return loaded.weights.generate(
            **prompt,
            **sampling_options,
            max_new_tokens=sampling.max_tokens,
            pad_token_id=loaded.tokenizer.pad_token_id or loaded.tokenizer.eos_token_id,
            stopping_criteria=transformers.StoppingCriteriaList([must_stop]),
        )


_load_lock = threading.Lock()
"""Held while a model is loaded: the cache below does not keep two threads from loading the same one."""


@lru_cache(maxsize=1)
def _load_weights(model: str, quantization: str, token: str | None) -> LoadedWeights:
    """Load a model; the last one stays in memory, because loading takes longer than generating."""
    transformers = importlib.import_module("transformers")
    torch = importlib.import_module("torch")
    options: dict[str, Any] = {"dtype": "auto"}
    if quantization == "4bit":
        options = {
            "quantization_config": transformers.BitsAndBytesConfig(load_in_4bit=True),
            "device_map": "auto",
        }
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, token=token)
        weights = transformers.AutoModelForCausalLM.from_pretrained(model, token=token, **options)
    except (OSError, ValueError, ImportError) as fault:
        raise PrerequisiteError(
            f"{'huggingface:' + model!r} cannot be loaded: {' '.join(str(fault).split())[:300]}",
            remedy="check the name, keys.huggingface for a gated model, and the network",
        ) from fault
    if quantization == "none" and torch.cuda.is_available():
        weights = weights.to("cuda")
    return LoadedWeights(tokenizer=tokenizer, weights=weights.eval(), busy=threading.Lock())


def _encode_prompt(tokenizer: Any, messages: tuple[Message, ...]) -> Any:
    """Return the prompt in the model's chat template; a base model without one gets the plain messages."""
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


def _decode(loaded: LoadedWeights, token_ids: Any) -> str:
    return str(loaded.tokenizer.decode(token_ids, skip_special_tokens=True))


def _cut_at_stop(text: str, stop_texts: Sequence[str]) -> tuple[str, bool]:
    """Return `(text before the first stop string, True)`, or `(text, False)` if there is none."""
    positions = [text.index(stop) for stop in stop_texts if stop in text]
    return (text[: min(positions)], True) if positions else (text, False)


def _end_token_ids(loaded: LoadedWeights) -> set[int]:
    """Return the ids of the tokens that end a reply: those of the model's settings, else the tokenizer's."""
    token_ids = loaded.weights.generation_config.eos_token_id
    if token_ids is None:
        token_ids = loaded.tokenizer.eos_token_id
    return set(token_ids) if isinstance(token_ids, list) else {token_ids}
