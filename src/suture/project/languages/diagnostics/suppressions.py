"""Find what silences a tool in place of a repair: comments that switch rules off, and directives of a build.

Find the files that the configuration of linters and type checkers names: bases, plugins, rules and local hooks.

A change that may write them decides what the tools report.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from suture.project.languages.diagnostics.annotations import count_assertions
from suture.project.tuning import MAX_SCANNED_FILE_CHARS

SUPPRESSION = re.compile(
    r"(?i:#\s*(?:flake8\s*:\s*)?noqa\b|#\s*ruff\s*:(?!\s*enable\b)"
    r"|#\s*type:\s*ignore\b|#\s*mypy\s*:|#\s*pyright\s*:|#\s*(?:pyre-ignore|pyre-fixme|nosec|nosemgrep)\b"
    r"|#.*?\bpylint\s*:\s*(?:disable|skip)|#\s*pytype\s*:\s*(?:disable|skip)"
    r"|#\s*(?:fmt|yapf|autopep8)\s*:\s*(?:off|skip|disable)|#\s*isort\s*:\s*(?:skip|off)"
    r"|#\s*(?:shellcheck|yamllint)\s+disable\b|#\s*hadolint\s+ignore\b|\b(?:stylelint|markdownlint)-disable"
    r"|@ts-(?:ignore|nocheck|expect-error)\b|//\s*nolint(?:nextline|begin)?\b)"
    r"|@(?:\w+\.)?no_type_check\b|\bnot\s+(?:\w+\.)?TYPE_CHECKING\b"
    r"|\beslint-disable\b|\beslint-env\b|/[*/]\s*eslint\s+[\w@\"'/-]+\s*:|/[*/]\s*globals?\s|/\*\s*exported\s"
    r"|\bprettier-ignore\b|\bbiome-ignore\b|//\s*#nosec\b|//\s*lint:(?:file-)?ignore\b"
    r"|^//go:build\b|^//\s*\+build\b|\bCode generated .*DO NOT EDIT\b|//go:linkname\b|^\s*import\s+\"C\""
    r"|^[ \t]*_ = \w+(?:\.\w+)*;?[ \t]*$|^var _ = "
    r"|#\s*pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored\b|#\s*pragma\s+warning\s*\(\s*disable\b"
    r"|\bNOLINT\w*|\bNOSONAR\b|\bCHECKSTYLE:\s*OFF\b|@Suppress\w*Warnings\b"
    r"|#\s*!?\s*\[\s*(?:cfg_attr\b.*)?(?:allow|expect)\s*\(|#\s*!?\s*\[\s*rustfmt::skip|#\s*!?\s*\[\s*cfg\s*\(",
    re.MULTILINE,
)
"""Matches what keeps a tool from reporting what it finds, in the languages of the table of tools."""
NEXT_LINE = re.compile(
    r"#\s*\[|@(?i:ts-(?:ignore|expect))|next-?line|(?:prettier|biome|lint:)-?ignore|@\S*no_type"
)
"""Matches a suppression that applies to the code after it, if there is none before it on its line."""
CONDITION = re.compile(r"\bcfg\b|build\b")
"""Matches a condition of a build. A condition with fewer words may apply to as much code."""


class Suppression(NamedTuple):
    """A place where a rule is switched off.

    Attributes:
        kind: The comment or directive, without the rules that it names.
        rules: The rest of the comment or attribute, which names the rules. Without it, all rules are off.
        code: The letters of the code to which it applies; empty for a whole file or section.
    """

    kind: str
    rules: str
    code: str


WIDENINGS: Mapping[str, re.Pattern[str]] = {
    "Any": re.compile(r"\bAny\b(?!\s*(?:,|\)|$))|(?:->|:|\[|\||,)\s*(?:\w+\.)?Any\b"),
    "cast": re.compile(r"\bcast\s*\("),
    "getattr": re.compile(r"\bgetattr\s*\("),
    "object": re.compile(r"(?:->|:)\s*object\b"),
    "TYPE_CHECKING": re.compile(
        r"^([ \t]*)if (?:\w+\.)?TYPE_CHECKING:.*\n(?:(?:\1[ \t].*)?\n)*\1(?:else|elif)\b", re.M
    ),
    # Also the types of JSDoc, in which `*` is any value.
    "any": re.compile(r"(?::|<|\||&|,|=>?|\bas)\s*any\b|@\w+\s*\{[^}\n]*(?:\bany\b|\*)"),
    "unknown": re.compile(r"\bas\s+unknown\b|:\s*unknown\b"),
    "never": re.compile(r"\bas\s+never\b|<never>\s*[\w(]"),
    "Function": re.compile(r":\s*Function\b|\bas\s+Function\b"),
}
"""Name of a way to widen or to assert a type -> its pattern."""
PYTHON_WIDENINGS = ("Any", "cast", "getattr", "object", "TYPE_CHECKING")
SCRIPT_WIDENINGS = ("any", "unknown", "never", "Function")


def find_new_suppressions(before: str, after: str) -> tuple[str, ...]:
    """Return the suppressions that a change of a file adds, widens or moves to other code, each as it is written.

    A suppression may name fewer rules than before, as after ruff's own fix of RUF100, and its code may change.
    """
    old, new = Counter(_find_suppressions(before)), Counter(_find_suppressions(after))
    removed = list((old - new).elements())
    # Code that a tool could report before the change.
    reportable = {_letters(line) for line in before.splitlines()} - {found.code for found in old}
    added: list[str] = []
    for found in (new - old).elements():
        replaced = [one for one in removed if _covers(one, found)]
        if not replaced or (found.code and found.code in reportable):
            added.append(found.kind + found.rules)
        else:
            removed.remove(min(replaced, key=lambda one: (one.rules != found.rules, one.code != found.code)))
    return tuple(sorted(added))


def find_new_widenings(path: str, before: str, after: str) -> tuple[str, ...]:
    """Return the ways in which a change of a Python, JavaScript or TypeScript file newly widens or asserts types."""
    kinds = PYTHON_WIDENINGS if path.endswith((".py", ".pyi")) else SCRIPT_WIDENINGS
    widened = [
        kind for kind in kinds if len(WIDENINGS[kind].findall(after)) > len(WIDENINGS[kind].findall(before))
    ]
    asserts = count_assertions(path, after) > count_assertions(path, before)
    return (*widened, "!") if asserts else tuple(widened)


def _find_suppressions(text: str) -> Iterator[Suppression]:
    first_in_line: dict[int, int] = {}
    for match in SUPPRESSION.finditer(text):
        kind = match.group()
        line_start = text.rfind("\n", 0, match.start()) + 1
        end = text.find(_find_end_mark(text, line_start, match), match.end())
        end = len(text) if end < 0 else end
        first = first_in_line.setdefault(line_start, match.start())
        code = _letters(text[line_start:first])
        if not code and NEXT_LINE.search(text[match.start() : end]):
            rest = text[end:].partition("\n")
            code = _letters(rest[0]) or _letters(rest[2].lstrip().partition("\n")[0])
        rules = " ".join(text[match.end() : end].split())
        yield Suppression(kind=" ".join(kind.split()), rules=rules, code=code)


def _find_end_mark(text: str, line_start: int, match: re.Match[str]) -> str:
    """Return what ends the attribute or comment, which may have several lines."""
    if re.match(r"#\s*!?\s*\[", match.group()):
        return "]"
    in_line_comment = match.group()[0] == "#" or "//" in text[line_start : match.end()]
    is_block = not in_line_comment and text.rfind("/*", 0, match.end()) > text.rfind("*/", 0, match.end())
    return "*/" if is_block else "\n"


def _covers(old: Suppression, new: Suppression) -> bool:
    """Return whether a suppression switches off at least what another one does."""
    if old.kind != new.kind or old.rules == new.rules:
        return old.kind == new.kind
    old_rules, new_rules = (set(re.findall(r"[\w@/:-]*\w", one.rules)) for one in (old, new))
    is_narrower = not old_rules or (bool(new_rules) and new_rules <= old_rules)
    return is_narrower and not CONDITION.search(old.kind)


def _letters(code: str) -> str:
    """Return code without its layout and quotes, which a formatter changes."""
    return re.sub(r"\W+", "", code)


HOOKS = ".pre-commit-config.yaml"
OPTION = re.compile(
    r"(?P<name>-c|-p|--config|--config-file|--rcfile|--project|--rulesdir|--ignore-path|--append-config)(?:=(?P<value>.+))?"
)
"""Matches an option of a tool whose value is a file or folder of its configuration."""
REFERENCES = (
    # `extends` of tsconfig and ESLint, `extend` of ruff, `plugins` of mypy, Prettier and TypeScript.
    re.compile(
        r"\b(?:extends?|(?:load-|js)?plugins?)[\"']?\s*[:=]\s*(\[[^\]]*\]|[^\n]*(?:\n\s*-\s[^\n]*)*)", re.I
    ),
    re.compile(r"^plugins\s*=([^\n\[]*(?:\n[ \t]+[^\n]*)*)", re.MULTILINE),
    re.compile(r"^\[flake8:local-plugins\]([^\[]*)", re.MULTILINE),
    re.compile(r"\b(?:from|import|require|resolve)\b\s*\(?\s*([\"'][.][^\"'\n]*[\"'])"),
)
"""Match what names other files in a configuration."""
ENDINGS = (
    "", ".json", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".toml", "/index.js", "/index.ts", "/index.mjs",
    "/index.cjs", "/__init__.py", "/tsconfig.json", "/package.json",
)  # fmt: skip


def find_configuration_files(
    tools: Iterable[Sequence[str]], configuration: Iterable[str], files: Mapping[str, bytes]
) -> tuple[str, ...]:
    """Return the project's files that the options or the configuration of some tools name, and those name in turn.

    Args:
        tools: The argument vectors of the tools.
        configuration: The files of the project that configure tools by their name.
        files: The project's files, path -> content.
    """
    waiting = [path for argv in tools for path in _find_option_files(argv, files)]
    found = dict.fromkeys(waiting)
    waiting += configuration
    while waiting:
        path = waiting.pop()
        named = [name for name in _find_references(path, files) if name not in found]
        found |= dict.fromkeys(named)
        waiting += named
    return tuple(found)


def find_hook_commands(files: Mapping[str, bytes]) -> Iterator[tuple[str, ...]]:
    """Yield the argument vectors of the local hooks of pre-commit."""
    import yaml

    try:
        settings = yaml.safe_load(files.get(HOOKS, b""))
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for repository in _get_list(settings, "repos"):
        for hook in _get_list(repository, "hooks"):
            entry = hook.get("entry") if isinstance(hook, dict) else None
            if isinstance(entry, str):
                try:
                    yield (*shlex.split(entry), *map(str, _get_list(hook, "args")))
                except ValueError:
                    yield (*entry.split(),)


def _get_list(table: Any, key: str) -> list[Any]:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, list) else []


def _find_option_files(argv: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    folder = dict(pairwise(argv)).get("-C", "") if argv[:1] == ("env",) else ""
    for word, following in pairwise((*argv, "")):
        if option := OPTION.fullmatch(word):
            path = posixpath.normpath(posixpath.join(folder, option["value"] or following))
            yield from (name for name in files if name == path or name.startswith(f"{path}/"))


def _find_references(path: str, files: Mapping[str, bytes]) -> Iterator[str]:
    text = files[path][:MAX_SCANNED_FILE_CHARS].decode("utf-8", "replace")
    values = [match[1] for pattern in REFERENCES for match in pattern.finditer(text)]
    for word in dict.fromkeys(word for value in values for word in re.split(r"[\s\"',\[\]{}()=;]+", value)):
        # A plugin may be a module, and `module:name` something in it.
        module = word.partition(":")[0]
        names = dict.fromkeys((word, module, module.replace(".", "/"))) if word.strip("./") else ()
        for folder in dict.fromkeys((posixpath.dirname(path), "", "src")):
            for name in (posixpath.normpath(posixpath.join(folder, name)) for name in names):
                yield from (name + ending for ending in ENDINGS if name + ending in files)
