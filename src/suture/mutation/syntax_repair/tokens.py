"""One token more, less or another where reading stopped: what no other family knows a name for."""

from __future__ import annotations

from collections.abc import Iterator

from suture.mutation.syntax_repair.source_lines import PAIRS, LineRewrite, strip_comment, rewrite_line, scan_line
from suture.mutation.syntax_repair.stopped import ParseStop

BETWEEN = (
    *((", ", 0.5), (")", 0.3), ("]", 0.3), ("(", 0.2), ("[", 0.2), (" in ", 0.4), (" + ", 0.3), (" = ", 0.3)),
    *((" and ", 0.3), (" or ", 0.25), (" == ", 0.25), (" - ", 0.25), (" * ", 0.25), (".", 0.3), (": ", 0.2)),
    *((" not ", 0.1), (" else ", 0.15), (" if ", 0.15), ("; ", 0.1), (" for ", 0.1), ("}", 0.2)),
    *((" as ", 0.1), (" < ", 0.1), (" > ", 0.1), (" % ", 0.1), (" // ", 0.1), (" 0 ", 0.1), (" None ", 0.1)),
)
SWAPS = {
    **{".": (",", ":"), ",": (".", ":", ";"), ";": (",", ":"), ":": (",", "=", "."), "=": ("==",)},
    **{"{": ("(", "["), "}": (")", "]"), "(": ("[", "{"), ")": ("]", "}"), "[": ("(", "{"), "]": (")", "}")},
    **{"==": ("=",), "!": ("!=", "not "), "&": (" and ",), "|": (" or ",)},
    **{"->": (".", ":", "="), ":=": ("=",)},
    **dict.fromkeys(("?", "$", "@"), ("",)),
}


def rewrite_tokens(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Changes of the token at which reading stopped, and of the two before it."""
    number = stop.line - 1
    if number >= len(lines):
        return
    line = lines[number]
    tokens = [token for token in scan_line(line) if token.kind != "comment"]
    here = next((n for n, token in enumerate(tokens) if token.end > stop.column), len(tokens))
    for at in range(max(0, here - 2), min(len(tokens), here + 2)):
        token = tokens[at]
        near = 1.0 if at == here else 0.6 if at == here - 1 else 0.3
        gone = f"{line[: token.start].rstrip() if at else line[: token.start]}{line[token.end :]}"
        yield rewrite_line(lines, number, gone, f"{token.text} goes", 0.35 * near)
        for other in SWAPS.get(token.text, ()):
            text = f"{line[: token.start]}{other}{line[token.end :]}"
            yield rewrite_line(lines, number, text, f"{token.text} becomes {other.strip() or 'nothing'}", 0.5 * near)
    for token in tokens[1:] if "forgot a comma" in stop.message else ():
        if token.start > stop.column and (token.kind != "sign" or token.text in PAIRS):
            text = f"{line[: token.start].rstrip()}, {line[token.start :]}"
            yield rewrite_line(lines, number, text, f"a comma before {token.text}", 0.8)
    for at in (here, here - 1):
        place = tokens[at].start if 0 <= at < len(tokens) else len(strip_comment(line))
        for between, weight in BETWEEN:
            text = f"{line[:place].rstrip() or line[:place]}{between}{line[place:].lstrip()}"
            yield rewrite_line(
                lines, number, text, f"{between.strip()} is missing", weight * (1.0 if at == here else 0.5)
            )
    if number and lines[number - 1].strip():
        yield rewrite_line(lines, number - 1, f"{lines[number - 1].rstrip()} \\", "goes on in the next line", 0.2)
