"""Structured replies: ask a model for a Pydantic type, and get that or a `MalformedReply`.

The schema goes to the provider, which constrains its output where it can. What comes back is validated in
any case; what is nearly right is read with tolerance, and what is not is asked for again. Nothing here ever
makes a value up: no field is filled with a default, and no reply that was cut is read. Code does not belong
into these types: it travels in fenced blocks, which need no escaping.
"""

from suture.models.structured_output.ask import ask
from suture.models.structured_output.reply_schemas import describe_schema

__all__ = ["ask", "describe_schema"]
