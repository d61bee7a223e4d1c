"""Separating what a model thinks from its answer, where a server sends both as one string.

This is the only place that does so: all readers of replies get the answer alone.
"""

from __future__ import annotations

import re
from dataclasses import replace

from suture.models.chat_model import Reply

TAG_NAMES = "think|thinking|thought|seed:think"
"""Tags around thinking: `think` by DeepSeek, Qwen and most others, `thought` by Gemini, `seed:think` by Seed."""
# A tag next to a quote or a backtick is text about tags, such as code that removes them.
OPENING = re.compile(rf"^[ \t]*(?:<(?:{TAG_NAMES})>|\[THINK\])", re.IGNORECASE | re.MULTILINE)
CLOSING = re.compile(
    rf"(?<!['\"\\*?])(?<!(?<!``)`)(?:</(?:{TAG_NAMES})>|\[/THINK\])(?!['\"\\]|`(?!``))", re.IGNORECASE
)
FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
HARMONY_ANSWER = re.compile(r"<\|channel\|>final(?: [^<]*)?<\|message\|>")
"""Begins the answer of gpt-oss, if its server passes on the model's own format."""
HARMONY_THINKING = re.compile(r"\s*<\|channel\|>(?:analysis|commentary)[^<]*<\|message\|>")
HARMONY_MARK = re.compile(r"<\|(?:start|end|return|message|channel)\|>(?:assistant)?")


def separate_thinking(reply: Reply) -> Reply:
    """Return the reply with its thinking separated from its text.

    A reply whose token limit was spent before any answer ends with `thinking`, also if the provider hides it.
    """
    thinking, answer = split_thinking(reply.text)
    if answer != reply.text:
        parts = [part for part in (reply.thinking, thinking) if part]
        reply = replace(reply, text=answer, thinking="\n".join(parts))
    has_thought = bool(reply.thinking or reply.thinking_tokens or reply.completion_tokens)
    if reply.finish == "length" and has_thought and not reply.text.strip() and not reply.tool_calls:
        return replace(reply, finish="thinking")
    return reply


def split_thinking(text: str) -> tuple[str, str]:
    """Return `(thinking, answer)` of a reply; the answer is unchanged where there is no thinking.

    The opening tag may be missing, because many chat templates contain it. The closing tag is missing where the
    reply was cut off; then everything after the opening tag is thinking.
    """
    if "<|channel|>" in text:
        return _split_harmony(text)
    opening = OPENING.match(text.lstrip())
    if opening is None:
        end = _find_closing(text, 0)
        if end is None or not _stands_at_line_edge(text, end):
            return _cut_later_blocks(text)
        thinking, answer = text[: end.start()], text[end.end() :]
    else:
        text = text.lstrip()
        end = _find_closing(text, opening.end())
        if end is None:
            return text[opening.end() :].strip(), ""
        thinking, answer = text[opening.end() : end.start()], text[end.end() :]
    answer = answer.lstrip("\r\n")
    further = split_thinking(answer) if OPENING.match(answer.lstrip()) else _cut_later_blocks(answer)
    return "\n".join(filter(None, (thinking.strip(), further[0]))), further[1]


def _stands_at_line_edge(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag begins or ends its line; one in the middle of a sentence is text about tags."""
    line_start = text[: tag.start()].rpartition("\n")[2]
    line_end = text[tag.end() :].partition("\n")[0]
    return not line_start.strip() or not line_end.strip()


def _cut_later_blocks(text: str) -> tuple[str, str]:
    """Return `(thinking, answer)` of a reply that begins with its answer.

    Each block of thinking begins a line outside of fenced code. One that is never closed has its tag alone on the
    line.
    """
    thoughts: list[str] = []
    position = 0
    while (opening := OPENING.search(text, position)) is not None:
        end = _find_closing(text, opening.end())
        is_alone = not text[opening.end() :].partition("\n")[0].strip()
        position = opening.end()
        if not _is_fenced(text, opening.start()) and (end is not None or is_alone):
            position = opening.start()
            thoughts.append(text[opening.end() : end.start() if end else None].strip())
            text = text[:position] + (text[end.end() :].lstrip("\r\n") if end else "")
    return "\n".join(filter(None, thoughts)), text


def _find_closing(text: str, start: int) -> re.Match[str] | None:
    """Return the first closing tag from `start` that ends thinking, rather than being part of code."""
    return next(
        (
            tag
            for tag in CLOSING.finditer(text, start)
            # Thinking may contain a fence that it never closes; then the answer's own fences are complete.
            if not _is_fenced(text[start:], tag.start() - start) or not _is_fenced(text, len(text), tag.end())
        ),
        None,
    )


def _is_fenced(text: str, position: int, start: int = 0) -> bool:
    """Return whether a fence is open at a position, counted from `start`."""
    return len(FENCE.findall(text[start:position])) % 2 == 1


def _split_harmony(text: str) -> tuple[str, str]:
    """Split a reply in the format of gpt-oss, whose parts are marked as channels."""
    answer = HARMONY_ANSWER.search(text)
    thinking = HARMONY_THINKING.match(text)
    if answer is None:
        return (text[thinking.end() :].strip(), "") if thinking else ("", text)
    before = HARMONY_THINKING.sub("", text[: answer.start()])
    return HARMONY_MARK.sub("", before).strip(), HARMONY_MARK.sub("", text[answer.end() :])
