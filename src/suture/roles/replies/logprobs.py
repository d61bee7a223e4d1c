"""How sure a model was of what it wrote: the log probabilities of the tokens of some lines of its reply."""

from __future__ import annotations

from itertools import accumulate
from statistics import mean

from suture.models import Reply

__all__ = ["mean_logprob"]


def mean_logprob(source: str, reply: Reply) -> float | None:
    """The mean natural logarithm of the probability of the tokens of a program's lines, as a reply has them.

    Args:
        source: The program; lines of it that the reply does not have, such as added ones, are passed over.
        reply: Where it was read from.

    Returns:
        Nats per token, at most 0; `None` where the provider did not tell, or no line is found.
    """
    if not reply.logprobs or len(reply.tokens) != len(reply.logprobs):
        return None
    text = "".join(reply.tokens)
    wanted = [False] * len(text)
    for line in {line.strip() for line in source.splitlines()} - {""}:
        at = text.find(line)
        if at >= 0:
            wanted[at : at + len(line)] = [True] * len(line)
    ends = list(accumulate(map(len, reply.tokens)))
    starts = [0, *ends]
    spans = zip(starts, ends, reply.logprobs, strict=False)
    of_lines = [logprob for start, end, logprob in spans if any(wanted[start:end])]
    return mean(of_lines) if of_lines else None
