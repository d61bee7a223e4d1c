"""Rewrites broken Python lines: keywords, colons, `=` for `==`, syntax of other languages, single tokens."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from suture.mutation.syntax_repair.source_lines import (
    PAIRS,
    LineRewrite,
    ParseStop,
    get_indent,
    nearby_lines,
    replace_token,
    rewrite_line,
    rewrite_span,
    scan_line,
    strip_comment,
)

BLOCK_KEYWORDS = (
    "if", "elif", "else", "for", "while", "def", "class", "try", "except", "finally", "with", "async",
)  # fmt: skip
"""Keywords that begin a line that ends with a colon."""
STATEMENT_KEYWORDS = (
    "return", "import", "from", "raise", "assert", "pass", "break", "continue", "global", "del",
    "yield",
)  # fmt: skip
"""Keywords that begin another statement."""
INNER_KEYWORDS = (
    "in", "not", "and", "or", "is", "if", "else", "for", "lambda", "as", "None", "True", "False",
)  # fmt: skip
"""Keywords within a line."""
CONDITION_KEYWORDS = ("if", "elif", "while", "assert", "return", "and", "or", "not")
"""Keywords after which a line has a condition."""
BRANCH_KEYWORDS = ("if", "elif", "while")
SINGLE_EQUALS = r"^(\s*(?:if|elif|while)\b[^=]*?[^=!<>:])=(?!=)"
"""Matches a branch up to the first `=` that is not part of another sign."""
EQUALS_ALTERNATIVES = (
    ("==", 0.9), ("-", 0.45), ("+", 0.45), ("*", 0.2), ("<=", 0.2), (">=", 0.2), ("!=", 0.2),
)  # fmt: skip
"""What a single `=` may be meant for, and how likely."""
MAX_REWRITTEN_LINES = 40
"""Lines on which the same replacement is made at once. Chosen by judgement; not measured."""
DEFINERS = "function|func|fn|fun|define|sub|public|private|static|void|method"
"""Words of other languages before the name of a new function."""
DECLARERS = "var|let|const|int|float|double|string|str|bool|boolean|auto|char|long|val|set|my"
"""Words of other languages before the name of a new variable."""
FOREIGN_SYNTAX: tuple[tuple[str, str, float], ...] = (
    (r"\belse\s+if\b", "elif", 1.0),
    (r"\b(?:elseif|elsif|elif\s+if)\b", "elif", 1.0),
    (r"\s*&&\s*", " and ", 1.0),
    (r"\s*\|\|\s*", " or ", 1.0),
    (r"!(?=[\w(])\s*", "not ", 1.0),
    (r"!==", "!=", 1.0),
    (r"===", "==", 1.0),
    (r"<>", "!=", 1.0),
    (r"=>", ">=", 0.8),
    (r"=<", "<=", 0.8),
    (r"=!", "!=", 0.8),
    (r"(?<==)\s*=", "", 0.3),
    (r"([\w.\]\[]+)\s*\+\+", r"\1 += 1", 1.0),
    (r"\+\+\s*([\w.\]\[]+)", r"\1 += 1", 1.0),
    (r"([\w.\]\[]+)\s*--(?!\w)", r"\1 -= 1", 1.0),
    (rf"^(\s*)(?:{DEFINERS})\s+(?=\w+\s*\()", r"\1def ", 1.0),
    (rf"^(\s*)(?:{DECLARERS})\s+(?=\w)", r"\1", 0.9),
    (r"^(\s*)((?:import|using|package|#?include)\b.*;)\s*$", r"\1# \2", 0.9),
    (r"\bnew\s+(?=\w)", "", 1.0),
    (r"\bthrow\s+", "raise ", 1.0),
    (r"\bcatch\b", "except", 1.0),
    (r"\bforeach\b", "for", 1.0),
    (r"\bfor\s*\(\s*(\w+)\s+in\s+(.*)\)\s*:?\s*$", r"for \1 in \2:", 1.0),
    (r"\bfor\s+(\w+)\s*(?:of|:|=|at|on|into|range)\s+(?=\S)", r"for \1 in ", 0.8),
    (r"\bfor\s+(\w+)\s*=\s*(\w+)\s*to\s+(.*?)\s*:?\s*$", r"for \1 in range(\2, \3):", 0.9),
    (r"\bfor\s+(\w+)\s+(?!in\b)(?=\w)", r"for \1 in ", 0.8),
    (r"\bin\s+range\s+([^(:]+?)\s*:", r"in range(\1):", 0.9),
    (r"\s*\b(?:then|do|begin)\s*:?\s*$", ":", 1.0),
    (r"\s*\{\s*$", ":", 1.0),
    (r"\s*:\s*\{\s*$", ":", 1.0),
    (r"^\s*\}\s*else", "else", 0.9),
    (r"^\s*\}\s*;?\s*$", "", 1.0),
    (r"^\s*(?:end|fi|done|endif|endfor|endwhile)\s*;?\s*$", "", 1.0),
    (r"\s*;+\s*$", "", 0.8),
    # `x = f(1, 2) // a comment in words`, but neither `http://a` nor a division by one name: `a // b`, `(a // b)`.
    (r"(?<!:)//(?!/?\s*[\w(.]+\s*[)\]:,]?\s*$)\s*(.*)$", r"# \1", 0.6),
    (r"^(\s*)//(.*)$", r"\1#\2", 1.0),
    # `x = 1 // note`: a comment of one word looks like a division.
    (r"\s//\s(.*)$", r"  # \1", 0.8),
    (r"/\*\s*(.*?)\s*\*/", r"\1", 0.9),
    (r"/\*(.*?)\*/", r"#\1", 0.8),
    (r"^(\s*)(?:/\*|\*/|\*|<!--|--|%|;)(.*)$", r"\1#\2", 0.7),
    (r"(\S+)\s*\?\s*(.+?)\s*:\s*([^:]+)$", r"\2 if \1 else \3", 0.7),
    (r"\bprint\s+(?!\()(.*)$", r"print(\1)", 1.0),
    (r"\bexec\s+(?!\()(.*)$", r"exec(\1)", 0.8),
    (r"\braise\s+(\w+)\s*,\s*(.+)$", r"raise \1(\2)", 1.0),
    (r"\bexcept\s+([\w.]+)\s*,\s*(\w+)\s*:", r"except \1 as \2:", 1.0),
    (r"\bexcept\s+([\w.]+)\s*,\s*([\w.]+)\s*:", r"except (\1, \2):", 0.8),
    (r"`([^`]*)`", r"repr(\1)", 0.7),
    (r"\b0+(\d+)\b", r"\1", 0.7),
    (r"\b0(\d+)\b", r"0o\1", 0.5),
    (r"\bnot\s*=", "!=", 0.9),
    (r"\bis\s+(?:equal|equals)\s+(?:to\s+)?", "== ", 0.9),
    (r"(?<=\w)->(?=\w)", ".", 0.9),
    (r"(?<=\w)::(?=\w)", ".", 0.9),
    (r"^(\s*def\s+\w+)\s*:", r"\1():", 1.0),
    (r"^(\s*def\s+\w+)\s+([^(:]+?)\)?\s*:", r"\1(\2):", 0.9),
    (r"^(\s*def\s+\w+\(.*\))\s*=\s*>?\s*$", r"\1:", 0.9),
    (r"^(\s*)(\w+\s*\([^()]*\)\s*(?:->\s*[\w\[\], .]+)?:)\s*$", r"\1def \2", 0.8),
    (r"^(\s*)def(?=[A-Za-z_]\w*\()", r"\1def ", 0.9),
    # A keyword without the space after it: `ifx`.
    (r"\b(if|while|elif|for|return|not|in|and|or)(?=[A-Z_a-z]*\b)(?=\w)(?!\b)", r"\1 ", 0.3),
    (r"\b(\d+)([A-Za-z_]\w*)", r"\1 * \2", 0.6),
    (r"\b(\d+)([A-Za-z_]\w*)", r"\1 \2", 0.5),
    (r"\b\d+([A-Za-z_]\w*)", r"\1", 0.7),
    (r"(?<=\d)[oO](?=\d|\b)", "0", 0.7),
    # It changes only spaces. That helps where `\s` matches a character that Python rejects, such as U+2003.
    (r"^(\s*)lambda\s+(\w+)\s*:", r"\1lambda \2: ", 0.2),
    (r"\blambda\s+(\w+)\s*=>\s*", r"lambda \1: ", 0.9),
    (r"\(?\b(\w+)\)?\s*=>\s*", r"lambda \1: ", 0.6),
)  # fmt: skip
"""`(pattern, replacement, weight)` for syntax of other languages, and of older versions of Python.

All weights in this module are chosen by judgement and not measured.
"""
LOOK_ALIKES: dict[int, str] = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u00b4\u2032\uff07`", "'"),
        **dict(zip("\uff08\uff09\uff0c\uff1a\uff1b\uff1d\u3001", "(),:;=,", strict=True)),
        **dict(zip("\u3010\u3011\uff5b\uff5d\uff0b", "[]{}+", strict=True)),
        **dict(zip("\u2212\u2013\u2014\u00d7\u00f7", "---*/", strict=True)),
        **dict(zip("\u2264\u2265\u2260\u2026", ("<=", ">=", "!=", "..."), strict=True)),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
    }
)
"""Characters of word processors, other keyboards and web pages -> the code that they resemble."""


def rewrite_foreign_syntax(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Replace syntax of other languages, and of older Pythons."""
    yield from rewrite_look_alikes(lines, stop)
    for number in nearby_lines(lines, stop.line - 1):
        line = lines[number]
        for pattern, replacement, weight in FOREIGN_SYNTAX:
            text = re.sub(pattern, replacement, line)
            if text != line:
                yield rewrite_line(number, text, text.strip()[:60], weight)
                yield from _rewrite_all_lines(lines, pattern, replacement, weight)
        code = strip_comment(line)
        # Several words that end neither like a block nor like a call may be prose.
        if len(code.split()) > 2 and not code.endswith((":", ")", "]")):
            text = f"{get_indent(line)}# {line.strip()}"
            yield rewrite_line(number, text, "becomes a comment", 0.12)


def rewrite_look_alikes(lines: list[str], stop: ParseStop, quotes: str = "") -> Iterator[LineRewrite]:
    """Replace characters of word processors, other keyboards and web pages, such as curly quotes.

    Args:
        quotes: Quotes of the language, which are not replaced: JavaScript uses the backtick.
    """
    table = {code: text for code, text in LOOK_ALIKES.items() if chr(code) not in quotes}
    changed = _changed_lines(lines, lambda line: line.translate(table))
    if changed:
        yield LineRewrite(lines=changed, note="characters that only look like those of code", weight=1.0)


def _changed_lines(lines: list[str], rewrite: Callable[[str], str]) -> dict[int, str]:
    """Return line number -> new content of the lines that a rewrite changes."""
    rewritten = {number: rewrite(line) for number, line in enumerate(lines)}
    return {number: text for number, text in rewritten.items() if text != lines[number]}


def _rewrite_all_lines(
    lines: list[str], pattern: str, replacement: str, weight: float
) -> Iterator[LineRewrite]:
    """Make the same replacement on every line: people repeat such mistakes."""
    changed = _changed_lines(lines, lambda line: re.sub(pattern, replacement, line))
    if 1 < len(changed) <= MAX_REWRITTEN_LINES:
        note = f"{len(changed)} lines as in {next(iter(changed.values())).strip()[:40]}"
        yield LineRewrite(lines=changed, note=note, weight=0.9 * weight)


def rewrite_keywords(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Correct a misspelt keyword; replace or add the keyword at the start of a block."""
    for number in nearby_lines(lines, stop.line - 1):
        line = lines[number]
        tokens = scan_line(line)
        for index, token in enumerate(tokens):
            if token.kind != "word" or keyword.iskeyword(token.text):
                continue
            keywords = (*BLOCK_KEYWORDS, *STATEMENT_KEYWORDS) if index == 0 else INNER_KEYWORDS
            for word in _similar_keywords(token.text, keywords):
                yield replace_token(lines, number, token, word, 0.9)
        if not tokens or tokens[0].kind != "word" or not strip_comment(line).endswith(":"):
            continue
        is_keyword = keyword.iskeyword(tokens[0].text)
        for word in ("if", "while", "for", "elif", "else", "def", "with", "return"):
            if word != tokens[0].text and len(tokens) > 2:  # more than a word and its colon
                yield replace_token(lines, number, tokens[0], word, 0.1 if is_keyword else 0.5)
        for word in () if is_keyword else ("if", "while", "elif", "def", "else:"):
            text = f"{get_indent(line)}{word} {line.strip()}"
            yield rewrite_line(number, text, f"{word} is missing", 0.3)


def _similar_keywords(word: str, keywords: Sequence[str]) -> list[str]:
    """Return the keywords that differ from a word only in case, or else the most similar ones."""
    same_letters = [text for text in keywords if text.lower() == word.lower()]
    # Of a short word, one wrong letter is already a large part.
    return same_letters or get_close_matches(word, keywords, 2, 0.5 if len(word) < 4 else 0.6)


def rewrite_colons(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Add a missing colon after the head of a block, or remove one that is not needed."""
    for number in nearby_lines(lines, stop.line - 1):
        line, code = lines[number], strip_comment(lines[number])
        tokens = scan_line(code)
        if not tokens:
            continue
        after_code = line[len(code) :]
        is_expected = stop.message.startswith("expected ':'")
        if tokens[0].text in BLOCK_KEYWORDS and not code.endswith(":"):
            yield rewrite_line(number, f"{code}:{after_code}", "a colon at its end", 1.0)
            if code[-1] in ";.,{=-)":  # typed instead of the colon, or superfluous
                yield rewrite_line(number, f"{code[:-1].rstrip()}:{after_code}", "a colon at its end", 0.8)
        if is_expected and number == stop.line - 1:
            yield rewrite_line(number, f"{line[: stop.column]}:{line[stop.column :]}", "a colon", 0.9)
        for token in tokens[1:] if tokens[0].text in BLOCK_KEYWORDS else ():
            before = code[: token.start].rstrip()
            if token.kind in ("word", "string") and not before.endswith((":", ".", ",", "=", "(", "[")):
                text = f"{before}: {code[token.start :]}{after_code}"
                weight = 0.3 if is_expected else 0.1
                yield rewrite_line(number, text, f"a colon before {token.text}", weight)
        if code.endswith(":") and tokens[0].text not in BLOCK_KEYWORDS:
            yield rewrite_line(number, f"{code[:-1]}{after_code}", "no colon at its end", 0.6)
        for token in tokens:
            if token.text in ("::", ";", ".") or (token.text == ":" and not code.endswith(":")):
                text = f"{code[: token.start]}:{code[token.end :]}{after_code}"
                yield rewrite_line(number, text, f"{token.text} becomes a colon", 0.2)


def rewrite_assignments(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Replace `=` where something is compared or computed."""
    for number in nearby_lines(lines, stop.line - 1):
        line = lines[number]
        tokens = scan_line(line)
        signs = [token for token in tokens if token.text == "="]
        if not signs:
            continue
        if tokens[0].text in BRANCH_KEYWORDS:
            for comparison, weight in (("==", 0.9), ("!=", 0.3), ("<=", 0.2), (">=", 0.2)):
                yield from _rewrite_all_lines(lines, SINGLE_EQUALS, rf"\1{comparison}", weight)
        is_condition = tokens[0].text in CONDITION_KEYWORDS
        starts = {sign.start for sign in signs}
        all_replaced = "".join("==" if column in starts else char for column, char in enumerate(line))
        yield rewrite_line(number, all_replaced, "= becomes ==", 0.9 if is_condition else 0.5)
        is_reported = "cannot assign" in stop.message or "Maybe you meant" in stop.message
        for index, sign in enumerate(signs):
            # The first of several may be an assignment: `a = b = 1` or `ok = a = 1`.
            is_likely = is_condition or (is_reported and (index > 0 or len(signs) == 1))
            for other, weight in EQUALS_ALTERNATIVES:
                yield replace_token(lines, number, sign, other, weight * (1.0 if is_likely else 0.4))


INSERTED_TOKENS = (
    (", ", 0.5), (")", 0.3), ("]", 0.3), ("(", 0.2), ("[", 0.2), (" in ", 0.4), (" + ", 0.3),
    (" = ", 0.3), (" and ", 0.3), (" or ", 0.25), (" == ", 0.25), (" - ", 0.25), (" * ", 0.25),
    (".", 0.3), (": ", 0.2), (" not ", 0.1), (" else ", 0.15), (" if ", 0.15), ("; ", 0.1),
    (" for ", 0.1), ("}", 0.2), (" as ", 0.1), (" < ", 0.1), (" > ", 0.1), (" % ", 0.1), (" // ", 0.1),
    (" 0 ", 0.1), (" None ", 0.1),
)  # fmt: skip
"""`(token, weight)` for tokens that may be missing. The weights are chosen by judgement."""
TOKEN_SWAPS = {
    ".": (",", ":"), ",": (".", ":", ";"), ";": (",", ":"), ":": (",", "=", "."), "=": ("==",),
    "{": ("(", "["), "}": (")", "]"), "(": ("[", "{"), ")": ("]", "}"), "[": ("(", "{"),
    "]": (")", "}"), "==": ("=",), "!": ("!=", "not "), "&": (" and ",), "|": (" or ",),
    "->": (".", ":", "="), ":=": ("=",), **dict.fromkeys(("?", "$", "@"), ("",)),
}  # fmt: skip
"""Token -> what may be meant instead."""


def rewrite_tokens(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Yield changes of the token where parsing stopped, and of its neighbours."""
    number = stop.line - 1
    if number >= len(lines):
        return
    line = lines[number]
    tokens = [token for token in scan_line(line) if token.kind != "comment"]
    stop_index = next((n for n, token in enumerate(tokens) if token.end > stop.column), len(tokens))
    for index in range(max(0, stop_index - 2), min(len(tokens), stop_index + 2)):
        token = tokens[index]
        nearness = 1.0 if index == stop_index else 0.6 if index == stop_index - 1 else 0.3
        before = line[: token.start].rstrip() if index else line[: token.start]
        text = f"{before}{line[token.end :]}"
        yield rewrite_line(number, text, f"{token.text} is deleted", 0.35 * nearness)
        for other in TOKEN_SWAPS.get(token.text, ()):
            note = f"{token.text} becomes {other.strip() or 'nothing'}"
            yield rewrite_span(lines, number, token.span, other, note, 0.5 * nearness)
    for token in tokens[1:] if "forgot a comma" in stop.message else ():
        if token.start > stop.column and (token.kind != "sign" or token.text in PAIRS):
            text = f"{line[: token.start].rstrip()}, {line[token.start :]}"
            yield rewrite_line(number, text, f"a comma before {token.text}", 0.8)
    for index, nearness in ((stop_index, 1.0), (stop_index - 1, 0.5)):
        # Without such a token, the insertion is at the end of the code.
        column = tokens[index].start if 0 <= index < len(tokens) else len(strip_comment(line))
        before = line[:column].rstrip() or line[:column]
        for inserted, weight in INSERTED_TOKENS:
            text = f"{before}{inserted}{line[column:].lstrip()}"
            yield rewrite_line(number, text, f"{inserted.strip()} is missing", weight * nearness)
    if number and lines[number - 1].strip():
        text = f"{lines[number - 1].rstrip()} \\"
        yield rewrite_line(number - 1, text, "continues on the next line", 0.2)
