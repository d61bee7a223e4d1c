"""Find the definitions in files of the languages that tree-sitter parses, and replace them with those of a snippet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.agents.replies.edit_problems import EditFault
from suture.agents.replies.text_edits import ELISION
from suture.mutation.tree_sitter.syntax_tree import get_text
from suture.project.languages import LANGUAGES, LanguageFacts
from suture.project.languages.reports import parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

NAMED_NODES = frozenset(
    {
        "function_declaration", "generator_function_declaration", "class_declaration", "method_definition",
        "abstract_class_declaration", "interface_declaration", "type_alias_declaration", "enum_declaration",
        "public_field_definition", "field_definition", "method_declaration", "type_spec", "type_alias",
        "const_spec", "var_spec", "variable_declarator", "internal_module", "module", "function_signature",
        "method_signature", "abstract_method_signature",
    }
)  # fmt: skip
"""Types of the nodes of a definition. A function, a method and a variable name themselves by their field `name`."""
DECLARATIONS = frozenset(
    {
        "lexical_declaration",
        "variable_declaration",
        "type_declaration",
        "const_declaration",
        "var_declaration",
    }
)
"""Types of the nodes around definitions, which may contain several of them."""
WRAPPERS = frozenset({"export_statement", "ambient_declaration", "expression_statement"})
CLASS_BODIES = frozenset({"class_body"})
IMPORTS = frozenset({"import_statement", "import_declaration"})
COMMENTS = frozenset({"comment"})


@dataclass(frozen=True, kw_only=True)
class TreeDefinition:
    """A definition.

    Attributes:
        name: Its name, of a method in Go with the receiver's type: `Clock.Show`.
        start: Index of its first line, with `export` or decorators.
        end: Index after its last line.
        comment_start: Index of the first line of the comment directly above it.
        members: The members of a class.
        has_own_lines: Whether it shares no line with anything else.
    """

    name: str
    start: int
    end: int
    comment_start: int
    members: tuple[TreeDefinition, ...] = ()
    has_own_lines: bool = True


@dataclass(frozen=True, kw_only=True)
class _Source:
    lines: list[str]
    definitions: tuple[TreeDefinition, ...]
    imports: tuple[tuple[int, int], ...]
    is_valid: bool


def find_facts(path: str) -> LanguageFacts | None:
    """Return the language of a file that tree-sitter parses."""
    for facts in LANGUAGES.values():
        if facts.grammars and path.endswith(facts.extensions):
            return facts
    return None


def has_tree_grammar(path: str) -> bool:
    """Return whether tree-sitter parses a file."""
    return find_facts(path) is not None


def find_tree_names(path: str, text: str) -> frozenset[str]:
    """Return the qualified names of all definitions at the top level of a file, and of the members of classes."""
    source = _read(path, text)
    names = {definition.name for definition in source.definitions}
    return frozenset(names | {f"{d.name}.{m.name}" for d in source.definitions for m in d.members})


def merge_tree_definitions(path: str, original: str, code: str, context: str) -> str:
    """Return a file with the definitions of a snippet in place of its own, and with new ones and imports added.

    Statements of the snippet that define nothing are dropped as examples of use.

    Raises:
        EditFault: The snippet defines nothing, cannot be parsed, or a definition has no unique place.
    """
    old, new = _read(path, original), _read(path, code)
    if not new.is_valid:
        return _merge_members_alone(path, old, code, context)
    if not new.definitions:
        raise EditFault("partial_file", quote=next((line.strip() for line in new.lines if line.strip()), ""))
    merge = _TreeMerge(old=old, new=new)
    merge.merge_definitions(old.definitions, new.definitions)
    merge.add_imports(path)
    return _checked(path, old, merge.apply())


def _merge_members_alone(path: str, old: _Source, code: str, context: str) -> str:
    """Merge methods that are given without their class."""
    wrapped = _read(path, f"class Snippet {{\n{code}\n}}\n")
    members = wrapped.definitions[0].members if wrapped.definitions else ()
    if not wrapped.is_valid or not members:
        raise EditFault(
            "syntax_error", quote=next((line.strip() for line in code.split("\n") if line.strip()), "")
        )
    classes = [definition for definition in old.definitions if definition.members]
    names = {member.name for member in members}
    owners = [owner for owner in classes if names & {member.name for member in owner.members}] or classes
    named = [owner for owner in owners if re.search(rf"(?<!\w){re.escape(owner.name)}(?!\w)", context)]
    chosen = named if len(owners) > 1 else owners
    if len(chosen) != 1:
        candidates = [f"{owner.name}.{name}" for owner in owners for name in sorted(names)]
        raise EditFault("ambiguous_definition" if owners else "no_place", candidates=candidates,
                        quote=members[0].name)  # fmt: skip
    merge = _TreeMerge(old=old, new=wrapped)
    merge.merge_definitions(chosen[0].members, members)
    return _checked(path, old, merge.apply())


def _checked(path: str, old: _Source, text: str) -> str:
    if old.is_valid and not _read(path, text).is_valid:
        raise EditFault("no_place")
    return text


class _TreeMerge:
    """Collects edits of the original's lines and applies them together."""

    def __init__(self, *, old: _Source, new: _Source) -> None:
        self._old = old
        self._new = new
        self._edits: list[tuple[int, int, list[str]]] = []

    def apply(self) -> str:
        """Return the original with all edits."""
        lines: list[str] = []
        done = 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            if start < done:
                raise EditFault("no_place")
            lines += [*self._old.lines[done:start], *new]
            done = end
        return "\n".join([*lines, *self._old.lines[done:]])

    def merge_definitions(self, olds: Sequence[TreeDefinition], news: Sequence[TreeDefinition]) -> None:
        """Replace the definitions of one scope, and insert the new ones before the first replaced one."""
        added: list[TreeDefinition] = []
        first: int | None = None
        for name in dict.fromkeys(definition.name for definition in news):
            new_group = [definition for definition in news if definition.name == name]
            old_group = [definition for definition in olds if definition.name == name]
            if not old_group:
                added += new_group
                continue
            if len(old_group) != len(new_group):
                raise EditFault("ambiguous_definition", quote=name, candidates=[name])
            for old, new in zip(old_group, new_group, strict=True):
                self._merge_definition(old, new)
                first = min(old.comment_start, old.start if first is None else first)
        self._insert(added, olds, first)

    def _merge_definition(self, old: TreeDefinition, new: TreeDefinition) -> None:
        old_members, new_members = ({member.name for member in d.members} for d in (old, new))
        if old_members - new_members and new_members:
            self.merge_definitions(old.members, new.members)
            return
        lines = self._new.lines[new.start : new.end]
        known = {line.strip() for line in self._old.lines}
        elided = next((line for line in lines if ELISION.match(line) and line.strip() not in known), None)
        if elided is not None:
            raise EditFault("elided", quote=elided.strip())
        if not (old.has_own_lines and new.has_own_lines):
            raise EditFault("no_place", quote=new.name)
        start = old.start
        if new.comment_start < new.start:
            lines = self._new.lines[new.comment_start : new.end]
            start = old.comment_start
        lines = self._move(lines, self._new.lines[new.start], self._old.lines[old.start])
        prefix = re.match(r"\s*(export (?:default )?)", self._old.lines[old.start])
        offset = new.start - new.comment_start
        if prefix and not lines[offset].lstrip().startswith("export ") if offset < len(lines) else False:
            margin = len(lines[offset]) - len(lines[offset].lstrip())
            lines[offset] = f"{lines[offset][:margin]}{prefix[1] if prefix else ''}{lines[offset][margin:]}"
        self._edits.append((start, old.end, lines))

    def _move(self, lines: Sequence[str], first: str, model: str) -> list[str]:
        """Return lines with the indentation of a line of the original in place of that of their first one."""
        own, wanted = (line[: len(line) - len(line.lstrip())] for line in (first, model))
        if own == wanted:
            return list(lines)
        return [wanted + line.removeprefix(own) if line.strip() else line for line in lines]

    def _insert(
        self, added: Sequence[TreeDefinition], olds: Sequence[TreeDefinition], first: int | None
    ) -> None:
        required = [d for d in added if "require(" in self._new.lines[d.start]]
        for definition in required:
            line = max([end for _, end in self._old.imports] + [
                d.end for d in self._old.definitions if "require(" in self._old.lines[d.start]] + [0])  # fmt: skip
            self._edits.append((line, line, self._new.lines[definition.start : definition.end]))
        others = [definition for definition in added if definition not in required]
        if not others:
            return
        is_member = bool(olds) and olds[0] not in self._old.definitions
        model = self._old.lines[olds[0].start] if is_member else ""
        exports = [d.comment_start for d in self._old.definitions if d.name.startswith("module.exports")]
        if first is None and not is_member:
            first = min(exports, default=None)
        source: list[str] = []
        for definition in others:
            lines = self._new.lines[definition.comment_start : definition.end]
            source += [*self._move(lines, self._new.lines[definition.start], model), ""]
        if first is not None:
            self._edits.append((first, first, source))
            return
        end = olds[-1].end if is_member else len(self._old.lines) - (not self._old.lines[-1])
        self._edits.append((end, end, ["", *source[:-1]]))

    def add_imports(self, path: str) -> None:
        """Add the imports of the snippet that the file lacks."""
        missing = ["\n".join(self._new.lines[start:end]) for start, end in self._new.imports]
        old_texts = ["\n".join(self._old.lines[start:end]) for start, end in self._old.imports]
        line = max((end for _, end in self._old.imports), default=None)
        if path.endswith(".go"):
            known = set(re.findall(r'"([^"]+)"', "\n".join(old_texts)))
            specs = re.findall(
                r'^\s*(?:import\s+)?\(?\s*((?:[\w.]+\s+)?"([^"]+)")', "\n".join(missing), re.MULTILINE
            )
            wanted = [f"import {spec}" for spec, module in specs if module not in known]
            if line is None:
                line = next(
                    (n + 1 for n, text in enumerate(self._old.lines) if text.startswith("package ")), 0
                )
            if wanted:
                self._edits.append((line, line, wanted))
            return
        for text in missing:
            if text in old_texts:
                continue
            source = re.search(r"from\s*(['\"].*?['\"])|import\s*(['\"].*?['\"])", text)
            same = [
                number
                for number, old in enumerate(old_texts)
                if source and (source[1] or source[2]).strip("'\"") in re.findall(r"['\"](.*?)['\"]", old)
            ]
            if len(same) == 1 and _imported_words(old_texts[same[0]]) <= _imported_words(text):
                start, end = self._old.imports[same[0]]
                self._edits.append((start, end, text.split("\n")))
            elif not same or not _imported_words(text) <= set().union(
                *(_imported_words(old_texts[n]) for n in same)
            ):
                if same and _imported_words(text) & set().union(
                    *(_imported_words(old_texts[n]) for n in same)
                ):
                    raise EditFault("no_place", quote=text.partition("\n")[0])
                self._edits.append((line or 0, line or 0, text.split("\n")))


def _imported_words(text: str) -> set[str]:
    clause = re.split(r"\bfrom\b", text)[0]
    return set(re.findall(r"[\w$*]+", clause)) - {"import", "type", "as"}


def _read(path: str, text: str) -> _Source:
    facts = find_facts(path)
    if facts is None:
        return _Source(lines=text.split("\n"), definitions=(), imports=(), is_valid=False)
    root = parse_tree(text, path, facts.grammars)
    definitions, imports = _scan(root.children)
    return _Source(
        lines=text.split("\n"),
        definitions=definitions,
        imports=imports,
        is_valid=not root.has_error,
    )


def _scan(nodes: Sequence[Node]) -> tuple[tuple[TreeDefinition, ...], tuple[tuple[int, int], ...]]:
    """Return the definitions, and the lines of the imports."""
    definitions: list[TreeDefinition] = []
    imports: list[tuple[int, int]] = []
    comment_start: int | None = None
    above = -1  # the last line of the comment or decorator before a node
    named = [node for node in nodes if node.is_named]
    for index, node in enumerate(named):
        first, last = node.start_point[0], node.end_point[0]
        if node.type in COMMENTS or node.type == "decorator":
            comment_start = first if comment_start is None or above + 1 < first else comment_start
            above = last
            continue
        start = comment_start if comment_start is not None and above + 1 == first else first
        comment_start = None
        before = named[index - 1].end_point[0] if index else -1
        after = named[index + 1].start_point[0] if index + 1 < len(named) else last + 1
        if node.type in IMPORTS:
            imports.append((first, last + 1))
        elif name := ",".join(_names(node)):
            definitions.append(
                TreeDefinition(
                    name=name,
                    start=first,
                    end=last + 1,
                    comment_start=start,
                    members=_members(node),
                    has_own_lines=before < first and last < after,
                )
            )
    return tuple(definitions), tuple(imports)


def _names(node: Node) -> Iterator[str]:
    """Yield the names that a node defines."""
    if node.type == "method_declaration":  # of Go
        receiver = re.search(
            r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\])?\s*\)$", get_text(node.child_by_field_name("receiver"))
        )
        yield f"{receiver[1] if receiver else ''}.{get_text(node.child_by_field_name('name'))}"
    elif node.type in NAMED_NODES:
        name = node.child_by_field_name("name") or node.child_by_field_name("property")
        roles = [child.type for child in node.children if child.type in ("get", "set", "static")]
        yield " ".join([*roles, get_text(name)])
    elif node.type in DECLARATIONS or node.type in WRAPPERS or node.type.endswith("_spec_list"):
        for child in node.named_children:
            yield from _names(child)
    elif node.type == "assignment_expression":
        left = get_text(node.child_by_field_name("left"))
        if re.fullmatch(r"[\w$.]+", left):
            yield left


def _members(node: Node) -> tuple[TreeDefinition, ...]:
    if node.type in WRAPPERS:
        return next((found for child in node.named_children if (found := _members(child))), ())
    body = node.child_by_field_name("body")
    return _scan(body.children)[0] if body is not None and body.type in CLASS_BODIES else ()
