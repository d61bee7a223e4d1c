"""Chat models behind one protocol: `Model.complete(messages, sampling) -> Reply`.

This package owns the protocol, the providers, structured replies, recordings, prices, the embedded llama.cpp
server and its weights. It does not know what roles ask, and it decides nothing about a run. The SDK of a
vendor is imported only when one of its models is called.
"""

from suture.models.chat_model import (
    NO_MODEL,
    Message,
    Model,
    Reply,
    Sampling,
    ToolCall,
    ToolDeclaration,
    listen_to_replies,
    model_required_error,
)
from suture.models.llama_server.thread_calibration import read_calibration, read_threads
from suture.models.pricing import Price
from suture.models.profiles import ModelProfile, find_profile
from suture.models.providers.registry import PROVIDERS, require_model_name
from suture.models.reply_recordings import (
    RecordedModel,
    ReplyRecording,
    call_hash,
    load_recording,
    replay_only_model,
)
from suture.models.role_models import (
    Role,
    RoleModel,
    RoleModels,
    choose_model,
    detect_models,
    open_model,
    open_role_models,
)
from suture.models.scripted_model import ScriptedModel
from suture.models.token_counting import count_tokens, prompt_token_upper_bound
from suture.models.weights.download import pull_model
from suture.models.weights.weights_cache import list_catalogue_models, model_path, remove_model

__all__ = [
    "NO_MODEL",
    "PROVIDERS",
    "Message",
    "Model",
    "ModelProfile",
    "Price",
    "RecordedModel",
    "Reply",
    "ReplyRecording",
    "Role",
    "RoleModel",
    "RoleModels",
    "Sampling",
    "ScriptedModel",
    "ToolCall",
    "ToolDeclaration",
    "call_hash",
    "choose_model",
    "count_tokens",
    "detect_models",
    "find_profile",
    "list_catalogue_models",
    "listen_to_replies",
    "load_recording",
    "model_path",
    "model_required_error",
    "open_model",
    "open_role_models",
    "prompt_token_upper_bound",
    "pull_model",
    "read_calibration",
    "read_threads",
    "remove_model",
    "replay_only_model",
    "require_model_name",
]
