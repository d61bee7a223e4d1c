"""Structured replies: ask a model for a Pydantic type, and get a validated value or a `MalformedReply`.

The schema goes to the provider, which constrains its output if it can. The reply is validated in any case: an almost
correct one is read with tolerance, and for any other the model is asked again. No value is ever invented: no field gets
a default, and a truncated reply is not read. Code does not belong in these types: it travels in fenced blocks, which
need no escaping.
"""

from suture.models.structured_output.ask import ask_structured
from suture.models.structured_output.reply_schemas import describe_schema

__all__ = ["ask_structured", "describe_schema"]
