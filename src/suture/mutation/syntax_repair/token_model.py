"""A language model of tokens that ranks changes of a source that does not parse.

The model is a noisy channel: a slip of the author has deleted, inserted or replaced one token of a correct
source. The likelihood of a change that undoes the slip is that of the resulting source, by an n-gram model of the
project's tokens, times the odds of that slip. The numbers in this module are chosen by judgement and not measured.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from suture.mutation import tuning
from suture.mutation.syntax_repair.source_lines import LineRewrite, ParseStop, Token, rewrite_line

LINE_END = "\n"
"""The end of a line is a token, because it may end a statement."""
WORD = re.compile(r"[^\W\d]\w*|[$#@]?[\w$]+")
SLASH_STARTS_REGEX = re.compile(r"[(,=:\[!&|?{};+\-*%<>~^]$|^(?:return|typeof|case|in|of|=>)$|^\n$")
"""Matches a token after which a slash begins a regular expression, and not a division."""
STRING = r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
"""A string in double or single quotes, in one line."""
TEMPLATE_PIECE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(?:`|\$\{)", re.DOTALL)
"""A piece of a template string, up to its end or to an expression in it."""
REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
"""A regular expression of JavaScript with its flags. A `/` in brackets does not end it."""


@dataclass(frozen=True, kw_only=True)
class Lexer:
    """Splits sources of one language into tokens.

    Attributes:
        reserved: The keywords and signs of the language.
    """

    reserved: frozenset[str]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of one token, with a group for each kind."""
        return _compile_pattern(self.reserved)

    def tokens(self, text: str) -> list[Token]:
        """Return all tokens but comments. The source need not parse: an unclosed string is a stray quote then."""
        tokens: list[Token] = []
        offset = row = line_start = 0
        # For each template string whose `${...}` is open: the number of braces that are open inside it.
        open_braces: list[int] = []
        while offset < len(text):
            kind, token = self._next(text, offset, tokens, open_braces)
            if kind == "word" and token in self.reserved:
                kind = "sign"
            if kind not in ("comment", "space"):
                tokens.append(Token(kind=kind, text=token, row=row, start=offset - line_start))
            if line_count := token.count("\n"):
                row, line_start = row + line_count, offset + token.rindex("\n") + 1
            offset += len(token)
        return tokens

    def _next(self, text: str, offset: int, tokens: list[Token], open_braces: list[int]) -> tuple[str, str]:
        """Return `(kind, text)` of the token at an offset, and update `open_braces`."""
        first = text[offset]
        if first == "`" or (first == "}" and open_braces and not open_braces[-1]):
            piece = TEMPLATE_PIECE.match(text, offset + 1)
            if piece is not None:
                if first == "}" and open_braces:
                    open_braces.pop()
                if piece[0].endswith("{"):
                    open_braces.append(0)
                return "string", first + piece[0]
        if first == "/" and (not tokens or SLASH_STARTS_REGEX.search(tokens[-1].text)):
            regex = REGEX.match(text, offset)
            if regex is not None:
                return "string", regex[0]
        match = self.pattern.match(text, offset)
        if match is None:
            return "space", first
        if open_braces:
            open_braces[-1] += (match[0] == "{") - (match[0] == "}")
        return match.lastgroup or "", match[0]


@lru_cache(maxsize=8)
def _compile_pattern(reserved: Collection[str]) -> re.Pattern[str]:
    """Return the pattern of `Lexer.pattern`. Longer signs come first, so that `=>` is not read as `=`."""
    signs = sorted((text for text in reserved if not WORD.fullmatch(text)), key=lambda s: (-len(s), s))
    either = "|".join(map(re.escape, signs))
    return re.compile(
        rf"""(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)|(?P<end>\n)|(?P<space>[^\S\n]+)"""
        rf"""|(?P<string>{STRING}|`(?:\\.|[^`\\])*`)"""
        rf"""|(?P<number>\d(?:[\w.]|(?<=[eE])[-+])*)|(?P<word>[@#]?[^\W\d$]\w*(?:\$\w*)*|\$[\w$]*)"""
        rf"""|(?P<sign>{either}|[^\s\w])"""
    )


CLOSING_SIGNS = (",", ";", ")", "]", ".")
"""Signs before which no space is written."""
OPENING_SIGNS = ("(", "[", "!", "~", "...", ".")
"""Signs after which no space is written."""
WORD_CHARACTER = re.compile(r"[\w$]")


class TokenModel:
    """A trigram model of token classes, which also counts the tokens themselves (see `token_class`)."""

    def __init__(self, sources: Sequence[Sequence[Token]]) -> None:
        # By the number of classes before a token (0 to 2): counts of these classes with and without its own.
        self._ngram_counts: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self._context_counts: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self._text_counts: Counter[str] = Counter()
        self._text_pair_counts: Counter[tuple[str, str]] = Counter()
        self._class_counts: Counter[str] = Counter()
        for tokens in sources:
            classes = [LINE_END, LINE_END, *map(token_class, tokens)]
            texts = [LINE_END, LINE_END, *(token.text for token in tokens)]
            for index in range(2, len(classes)):
                for size in range(3):
                    self._ngram_counts[size][tuple(classes[index - size : index + 1])] += 1
                    self._context_counts[size][tuple(classes[index - size : index])] += 1
                self._text_counts[texts[index]] += 1
                self._text_pair_counts[texts[index - 1], texts[index]] += 1
                self._class_counts[classes[index]] += 1

    def log_likelihood(self, tokens: Sequence[tuple[str, str]], start: int) -> float:
        """Return the log-likelihood of a sequence of tokens.

        Args:
            start: Index of the first token whose likelihood counts. Those before it are only its context.
        """
        return sum(math.log(self._probability(tokens, index)) for index in range(start, len(tokens)))

    def unigram_odds(self, token: Token) -> float:
        """Return how likely a token is without its context, with a floor for those that the sources lack."""
        total = sum(self._class_counts.values()) + 1
        return 0.7 * self._text_counts[token.text] / total + 0.3 / 200  # as if a language had 200 tokens

    def knows(self, text: str) -> bool:
        """Return whether a string appears as a token in the sources."""
        return self._text_counts[text] > 0

    def _probability(self, tokens: Sequence[tuple[str, str]], index: int) -> float:
        """Return how likely a token is after those before it.

        The n-gram counts are mixed by `NGRAM_WEIGHTS`, so that no token has probability 0. For names, numbers
        and strings, the probability of the class is multiplied by that of the spelling within the class, which is
        smoothed as if each spelling had 0.2 more occurrences and the class 10 more. Pairs of spellings count as well.
        """
        classes = [name for name, _ in tokens[max(0, index - 2) : index + 1]]
        probability = tuning.NGRAM_WEIGHTS[3] / 100  # as if there were 100 classes
        for size, weight in zip((2, 1, 0), tuning.NGRAM_WEIGHTS, strict=False):
            if len(classes) > size:
                ngram = tuple(classes[len(classes) - 1 - size :])
                if context_count := self._context_counts[size][ngram[:-1]]:
                    probability += weight * self._ngram_counts[size][ngram] / context_count
        name, text = tokens[index]
        if name == text:
            return probability
        probability *= (self._text_counts[text] + 0.2) / (self._class_counts[name] + 10)
        previous = tokens[index - 1][1] if index else LINE_END
        count = self._text_counts[previous]
        return 0.6 * probability + (0.4 * self._text_pair_counts[previous, text] / count if count else 0.0)


def token_class(token: Token) -> str:
    """Return the class of a token: its spelling for keywords and signs, else its kind."""
    return token.text if token.kind in ("sign", "end") else token.kind


def rewrite_by_token_model(
    lines: list[str], stop: ParseStop, lexer: Lexer, corpus: Sequence[Sequence[Token]]
) -> Iterator[LineRewrite]:
    """Yield rewrites that insert, delete or replace one token near the stop, the likeliest first.

    Args:
        corpus: The tokens of each other source of the project.
    """
    tokens = lexer.tokens("\n".join(lines))
    row, column = stop.line - 1, stop.column
    stop_index = next((n for n, t in enumerate(tokens) if (t.row, t.end) > (row, column)), len(tokens))
    # The line of the stop and the one before it are probably wrong, so that the model must not learn them.
    trusted = [token for token in tokens if not row - 1 <= token.row <= row]
    model = TokenModel([trusted, *corpus])
    nearby = [t for t in tokens if abs(t.row - row) <= tuning.CONTEXT_ROWS and t.kind in ("word", "number")]
    kinds = {token.text: token.kind for token in nearby}
    counts = Counter(token.text for token in nearby)
    names = {text: kinds[text] for text, _ in counts.most_common(tuning.MAX_CONTEXT_NAMES)}
    first = max(0, stop_index - tuning.TOKENS_BEFORE_STOP)
    last = min(len(tokens), stop_index + tuning.TOKENS_AFTER_STOP)
    # Index of a token -> factor on the weights of its changes. The last index stands for the end of the source.
    nearness = tuning.TOKEN_DISTANCE_FACTOR
    distance_factors = {index: nearness ** abs(stop_index - index) for index in range(first, last + 1)}
    for index, token in enumerate(tokens[:stop_index]):
        is_line_start = not index or tokens[index - 1].kind == "end"
        if is_line_start and row - tuning.LINE_STARTS_BEFORE_STOP <= token.row:
            distance_factors.setdefault(index, nearness**tuning.TOKENS_BEFORE_STOP)
    rewrites: list[LineRewrite] = []
    for index, factor in distance_factors.items():
        for log_odds, number, text, note in _changes_at_token(lines, tokens, index, model, lexer, names):
            weight = factor / (1 + math.exp(-log_odds / tuning.ODDS_SOFTNESS))
            rewrites.append(rewrite_line(number, text, note, weight))
    rewrites.sort(key=lambda rewrite: -rewrite.weight)
    yield from rewrites[: tuning.MAX_TOKEN_CHANGES]


def _changes_at_token(
    lines: list[str],
    tokens: Sequence[Token],
    index: int,
    model: TokenModel,
    lexer: Lexer,
    names: dict[str, str],
) -> Iterator[tuple[float, int, str, str]]:
    """Yield `(log odds, line number, new line, note)` for changes at one token."""
    first = max(0, index - 2)
    window = [(token_class(token), token.text) for token in tokens[first : index + 3]]
    before, after = window[: index - first], window[index - first :]
    old_likelihood = model.log_likelihood(window, len(before))
    token = tokens[index] if index < len(tokens) else None
    # Sorted, so that the order of equally likely changes does not depend on the hashes of strings.
    candidates = [(text, text) for text in sorted(lexer.reserved)]
    candidates += [(kind, text) for text, kind in names.items()]

    def log_odds(new: list[tuple[str, str]], slip_odds: float) -> float:
        likelihood = model.log_likelihood([*before, *new], len(before))
        return likelihood - old_likelihood + math.log(slip_odds)

    number, column = (token.row, token.start) if token is not None else (len(lines) - 1, len(lines[-1]))
    line = lines[number]
    if index and (token is None or token.kind == "end") and tokens[index - 1].row == number:
        column = tokens[index - 1].end  # before a comment
    for kind, text in candidates:
        new_line = _place_token(line, column, column, text)
        yield log_odds([(kind, text), *after], 1.0), number, new_line, f"{text} is missing"
    if token is None or token.kind == "end" or "\n" in token.text:
        return
    token_odds = model.unigram_odds(token)
    if token.kind == "sign" and token.text not in lexer.reserved:
        slip_odds = tuning.STRAY_TOKEN_ODDS
    elif token.text in [text for _, text in (*before[-1:], *after[1:2])]:
        slip_odds = tuning.DOUBLED_TOKEN_ODDS
    else:
        slip_odds = tuning.EXTRA_TOKEN_ODDS * token_odds
    new_line = _remove_token(line, token)
    yield log_odds(after[1:], slip_odds), number, new_line, f"{token.text} is superfluous"
    is_unknown_word = token.kind == "word" and not model.knows(token.text)
    keywords = similar_keywords(token.text, lexer.reserved) if is_unknown_word else []
    for kind, text in candidates:
        if text != token.text:
            is_misspelt = text in keywords
            slip_odds = tuning.MISSPELT_TOKEN_ODDS if is_misspelt else tuning.WRONG_TOKEN_ODDS * token_odds
            new_line = _place_token(line, token.start, token.end, text)
            note = f"{token.text} becomes {text}"
            yield log_odds([(kind, text), *after[1:]], slip_odds), number, new_line, note


def similar_keywords(word: str, keywords: Collection[str]) -> list[str]:
    """Return keywords that a word may be a slip for: those of the same letters, and those spelt much alike."""
    folded = word.lower()
    sorted_keywords = sorted(keywords)
    anagrams = [k for k in sorted_keywords if sorted(k.lower()) == sorted(folded) and len(k) > 1]
    similar = get_close_matches(folded, sorted_keywords, 3, tuning.MIN_KEYWORD_SIMILARITY)
    return list(dict.fromkeys([*anagrams, *(text for text in similar if _is_slip(folded, text))]))


def _is_slip(word: str, keyword: str) -> bool:
    """Return whether at most one letter differs, or a few in a long keyword."""
    common = sum(block.size for block in SequenceMatcher(None, word, keyword).get_matching_blocks())
    return max(len(word), len(keyword)) - common <= 1 + len(keyword) // 6


def _place_token(line: str, start: int, end: int, text: str) -> str:
    """Return a line with a token in place of a span, with spaces where it would join a neighbouring word."""
    before, following = line[:start], line[end:]
    if start == end and before.strip() and before.endswith(" "):
        before, following = before.rstrip(), following.lstrip()
        left = "" if text in CLOSING_SIGNS else " "
        right = "" if text in OPENING_SIGNS else " "
        return f"{before}{left}{text}{right}{following}"
    left = " " if WORD_CHARACTER.match(before[-1:]) and WORD_CHARACTER.match(text) else ""
    right = " " if WORD_CHARACTER.match(text[-1]) and WORD_CHARACTER.match(following) else ""
    return f"{before}{left}{text}{right}{following}"


def _remove_token(line: str, token: Token) -> str:
    """Return a line without a token; at most one of the spaces around it stays."""
    before, following = line[: token.start], line[token.end :]
    if not before.strip() or following[:1] != " ":
        return f"{before.rstrip() if before.strip() else before}{following}"
    before, following = before.rstrip(), following.lstrip()
    return f"{before}{'' if following[:1] in ',;)]' or before[-1:] in '([' else ' '}{following}"
