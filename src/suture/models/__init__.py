"""One chat seam over every model: `complete(messages, sampling) -> Reply`.

This room owns the seam, the embedded llama.cpp server with its weights, the providers behind LangChain, the
scripted model, and the store that holds every reply before it is used. It must not know roles. Vendor SDKs
are imported only when a model of theirs is used.
"""

from suture.models.auto_detection import choose_model, detect_models
from suture.models.chat_model import NO_MODEL, Message, Model, Reply, Sampling, Tool, without_model
from suture.models.llama_server.thread_calibration import read_calibration
from suture.models.pricing import Price
from suture.models.providers.registry import PROVIDERS, require_model_name
from suture.models.reply_recordings import RecordedModel, ReplySource, absent_model, call_hash, open_replies
from suture.models.reply_streaming import heard_by
from suture.models.role_models import (
    Models,
    Role,
    RoleModel,
    may_begin,
    may_call_tools,
    open_model,
    open_models,
)
from suture.models.scripted import ScriptedModel
from suture.models.tokens import count_tokens, count_upper_bound
from suture.models.weights.download import pull_model
from suture.models.weights.weights_cache import list_models, model_path, remove_model

__all__ = [
    "NO_MODEL",
    "PROVIDERS",
    "Message",
    "Model",
    "Models",
    "Price",
    "RecordedModel",
    "Reply",
    "ReplySource",
    "Role",
    "RoleModel",
    "Sampling",
    "ScriptedModel",
    "Tool",
    "absent_model",
    "call_hash",
    "choose_model",
    "count_tokens",
    "count_upper_bound",
    "detect_models",
    "heard_by",
    "list_models",
    "may_begin",
    "may_call_tools",
    "model_path",
    "open_model",
    "open_models",
    "open_replies",
    "pull_model",
    "read_calibration",
    "remove_model",
    "require_model_name",
    "without_model",
]
