# ruff: noqa: E501 - a bug on a line
"""Pairs of related bugs of our own: the same kind of mistake in two functions that have nothing else in common.

Each side is a right function, a replacement that makes the bug, and a call that distinguishes them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """One bug.

    Attributes:
        right: The source of one correct function.
        old: The part that is replaced.
        new: The mistake.
        call: A call on which both versions differ.
    """

    right: str
    old: str
    new: str
    call: str

    @property
    def wrong(self) -> str:
        """Return the source with the mistake."""
        assert self.right.count(self.old) == 1, self.right
        return self.right.replace(self.old, self.new)


def _s(right: str, old: str, new: str, call: str) -> Side:
    return Side(right.strip("\n") + "\n", old, new, call)


PAIRS: dict[str, tuple[Side, Side]] = {
    "range ends early": (
        _s("def triangle(n):\n    return sum(range(1, n + 1))", "n + 1", "n", "triangle(4)"),
        _s(
            "def countdown(start):\n    return [day for day in range(1, start + 1)]",
            "start + 1",
            "start",
            "countdown(3)",
        ),
    ),
    "factor left out": (
        _s(
            "def cart_total(lines):\n    total = 0\n    for price, count in lines:\n        total += price * count\n    return total",
            "price * count",
            "price",
            "cart_total([(3, 2), (5, 1)])",
        ),
        _s(
            "def wages(shifts):\n    pay = 0\n    for hours, rate in shifts:\n        pay += rate * hours\n    return pay",
            "rate * hours",
            "rate",
            "wages([(8, 10), (2, 5)])",
        ),
    ),
    "threshold excludes its end": (
        _s("def is_adult(age):\n    return age >= 18", ">=", ">", "is_adult(18)"),
        _s(
            "def free_shipping(amount):\n    if amount >= 50:\n        return True\n    return False",
            ">=",
            ">",
            "free_shipping(50)",
        ),
    ),
    "smallest for largest": (
        _s("def peak(readings):\n    return max(readings)", "max", "min", "peak([3, 9, 4])"),
        _s(
            "def tallest(people):\n    return max(height for name, height in people)",
            "max",
            "min",
            "tallest([('a', 3), ('b', 7)])",
        ),
    ),
    "nothing returned": (
        _s(
            "def initials(name):\n    parts = name.split()\n    letters = ''.join(part[0] for part in parts)\n    return letters",
            "return letters",
            "letters",
            "initials('Ada Lovelace')",
        ),
        _s(
            "def flatten(rows):\n    flat = []\n    for row in rows:\n        flat.extend(row)\n    return flat",
            "return flat",
            "flat",
            "flatten([[1], [2]])",
        ),
    ),
    "missing key": (
        _s(
            "def stock_of(stock, item):\n    return stock.get(item, 0)",
            "stock.get(item, 0)",
            "stock[item]",
            "stock_of({'pen': 2}, 'cup')",
        ),
        _s(
            "def votes_for(ballot, person):\n    counted = dict(ballot)\n    return counted.get(person, 0)",
            "counted.get(person, 0)",
            "counted[person]",
            "votes_for({'x': 1}, 'y')",
        ),
    ),
    "text plus number": (
        _s("def label(number):\n    return 'No. ' + str(number)", "str(number)", "number", "label(4)"),
        _s(
            "def greeting(name, age):\n    return name + ' is ' + str(age)",
            "str(age)",
            "age",
            "greeting('Bo', 7)",
        ),
    ),
    "empty input": (
        _s(
            "def mean(values):\n    return sum(values) / len(values) if values else 0",
            " if values else 0",
            "",
            "mean([])",
        ),
        _s(
            "def hit_rate(hits, shots):\n    return hits / shots if shots else 0",
            " if shots else 0",
            "",
            "hit_rate(0, 0)",
        ),
    ),
    "whole division": (
        _s("def half(amount):\n    return amount / 2", "/", "//", "half(5)"),
        _s("def speed(metres, seconds):\n    return metres / seconds", "/", "//", "speed(7, 2)"),
    ),
    "or for and": (
        _s(
            "def in_range(x, low, high):\n    return x >= low and x <= high", "and", "or", "in_range(9, 1, 5)"
        ),
        _s(
            "def may_enter(has_key, is_member):\n    return has_key and is_member",
            " and ",
            " or ",
            "may_enter(True, False)",
        ),
    ),
    "negation left out": (
        _s(
            "def evens(numbers):\n    return [n for n in numbers if not n % 2]",
            "not n",
            "n",
            "evens([1, 2, 3, 4])",
        ),
        _s(
            "def open_tasks(tasks):\n    return [name for name, done in tasks if not done]",
            "not done",
            "done",
            "open_tasks([('a', True), ('b', False)])",
        ),
    ),
    "first for last": (
        _s(
            "def latest(versions):\n    ordered = sorted(versions)\n    return ordered[-1]",
            "[-1]",
            "[0]",
            "latest([2, 5, 3])",
        ),
        _s("def surname(full):\n    return full.split()[-1]", "[-1]", "[0]", "surname('Grace Hopper')"),
    ),
    "slice one short": (
        _s(
            "def top(scores, k):\n    ranked = sorted(scores, reverse=True)\n    return ranked[:k]",
            "[:k]",
            "[:k - 1]",
            "top([4, 9, 7], 2)",
        ),
        _s(
            "def preview(text, width):\n    return text[:width]",
            "[:width]",
            "[:width - 1]",
            "preview('hello', 3)",
        ),
    ),
    "order reversed": (
        _s(
            "def ranking(points):\n    return sorted(points, reverse=True)",
            "reverse=True",
            "reverse=False",
            "ranking([1, 3, 2])",
        ),
        _s(
            "def newest_first(dates):\n    days = list(dates)\n    days.sort(reverse=True)\n    return days",
            "reverse=True",
            "reverse=False",
            "newest_first([4, 8, 6])",
        ),
    ),
    "added for assigned": (
        _s(
            "def running(values):\n    total = 0\n    for value in values:\n        total += value\n    return total",
            "+=",
            "=",
            "running([1, 2, 3])",
        ),
        _s(
            "def word_lengths(words):\n    letters = 0\n    for word in words:\n        letters += len(word)\n    return letters",
            "+=",
            "=",
            "word_lengths(['ab', 'cde'])",
        ),
    ),
    "loop left too soon": (
        _s(
            "def positives(numbers):\n    kept = []\n    for n in numbers:\n        if n < 0:\n            continue\n        kept.append(n)\n    return kept",
            "continue",
            "break",
            "positives([1, -2, 3])",
        ),
        _s(
            "def read_rows(lines):\n    rows = []\n    for line in lines:\n        if line.startswith('#'):\n            continue\n        rows.append(line)\n    return rows",
            "continue",
            "break",
            "read_rows(['a', '#b', 'c'])",
        ),
    ),
    "index past the end": (
        _s(
            "def steps(values):\n    return [values[i + 1] - values[i] for i in range(len(values) - 1)]",
            "range(len(values) - 1)",
            "range(len(values))",
            "steps([1, 4, 9])",
        ),
        _s(
            "def is_sorted(items):\n    for i in range(len(items) - 1):\n        if items[i] > items[i + 1]:\n            return False\n    return True",
            "range(len(items) - 1)",
            "range(len(items))",
            "is_sorted([1, 2, 3])",
        ),
    ),
    "product begins with nothing": (
        _s(
            "def product(numbers):\n    result = 1\n    for n in numbers:\n        result *= n\n    return result",
            "result = 1",
            "result = 0",
            "product([2, 3])",
        ),
        _s(
            "def compound(rates):\n    growth = 1\n    for rate in rates:\n        growth *= 1 + rate\n    return growth",
            "growth = 1\n",
            "growth = 0\n",
            "compound([1, 1])",
        ),
    ),
    "blanks not stripped": (
        _s("def field(line):\n    return line.split('=')[1].strip()", ".strip()", "", "field('a = b ')"),
        _s(
            "def tags(text):\n    return [tag.strip() for tag in text.split(',')]",
            "tag.strip()",
            "tag",
            "tags('x, y')",
        ),
    ),
    "case not folded": (
        _s(
            "def same_word(a, b):\n    return a.lower() == b.lower()",
            "a.lower()",
            "a",
            "same_word('Cat', 'cat')",
        ),
        _s(
            "def find_user(users, name):\n    return [u for u in users if u.lower() == name.lower()]",
            "u.lower()",
            "u",
            "find_user(['Bob'], 'bob')",
        ),
    ),
    "other variable": (
        _s(
            "def area(width, height):\n    return width * height",
            "width * height",
            "width * width",
            "area(2, 5)",
        ),
        _s("def distance(x, y):\n    return (x * x + y * y) ** 0.5", "y * y", "x * x", "distance(3, 4)"),
    ),
    "arguments swapped": (
        _s(
            "def power_of(base, exponent):\n    return pow(base, exponent)",
            "pow(base, exponent)",
            "pow(exponent, base)",
            "power_of(2, 5)",
        ),
        _s(
            "def parts(text, sep):\n    return str.split(text, sep)",
            "split(text, sep)",
            "split(sep, text)",
            "parts('a-b', '-')",
        ),
    ),
    "sign turned": (
        _s(
            "def balance(start, spent):\n    return start - spent",
            "start - spent",
            "start + spent",
            "balance(9, 4)",
        ),
        _s(
            "def net(gross, tax):\n    after = gross - tax\n    return round(after, 2)",
            "gross - tax",
            "gross + tax",
            "net(100, 20)",
        ),
    ),
    "returns in the loop": (
        _s(
            "def all_true(flags):\n    for flag in flags:\n        if not flag:\n            return False\n    return True",
            "    return True",
            "        return True",
            "all_true([True, False])",
        ),
        _s(
            "def count_long(words):\n    n = 0\n    for word in words:\n        if len(word) > 3:\n            n += 1\n    return n",
            "    return n",
            "        return n",
            "count_long(['aaaa', 'bbbb'])",
        ),
    ),
    "zero taken for nothing": (
        _s(
            "def limit_of(limit):\n    return 10 if limit is None else limit",
            "limit is None",
            "not limit",
            "limit_of(0)",
        ),
        _s(
            "def discount(given):\n    if given is None:\n        return 5\n    return given",
            "given is None",
            "not given",
            "discount(0)",
        ),
    ),
    "recursion ends elsewhere": (
        _s(
            "def factorial(n):\n    if n <= 1:\n        return 1\n    return n * factorial(n - 1)",
            "n - 1",
            "n",
            "factorial(3)",
        ),
        _s(
            "def depth(n):\n    if n == 0:\n        return 0\n    return 1 + depth(n - 1)",
            "n - 1",
            "n",
            "depth(3)",
        ),
    ),
    "rest for quotient": (
        _s(
            "def digit_sum(n):\n    total = 0\n    for _ in str(n):\n        total += n % 10\n        n = n // 10\n    return total",
            "n % 10",
            "n // 10",
            "digit_sum(123)",
        ),
        _s("def is_leap(year):\n    return year % 4 == 0", "year % 4", "year // 4", "is_leap(2024)"),
    ),
    "numbers joined": (
        _s(
            "def csv_row(values):\n    return ','.join(str(v) for v in values)",
            "str(v)",
            "v",
            "csv_row([1, 2])",
        ),
        _s(
            "def version(parts):\n    return '.'.join(map(str, parts))",
            "map(str, parts)",
            "parts",
            "version((1, 2))",
        ),
    ),
    "count of a new key": (
        _s(
            "def letters(word):\n    seen = {}\n    for letter in word:\n        seen[letter] = seen.get(letter, 0) + 1\n    return seen",
            "seen.get(letter, 0)",
            "seen[letter]",
            "letters('aab')",
        ),
        _s(
            "def tally(events):\n    by_kind = {}\n    for kind in events:\n        by_kind[kind] = by_kind.get(kind, 0) + 1\n    return by_kind",
            "by_kind.get(kind, 0)",
            "by_kind[kind]",
            "tally(['x', 'y', 'x'])",
        ),
    ),
    "method not called": (
        _s("def shout(text):\n    return text.upper() + '!'", "upper()", "upper", "shout('hi')"),
        _s(
            "def keys_of(table):\n    return sorted(table.keys())",
            "keys()",
            "keys",
            "keys_of({'b': 1, 'a': 2})",
        ),
    ),
    "absolute value left out": (
        _s("def gap(a, b):\n    return abs(a - b)", "abs(a - b)", "a - b", "gap(3, 8)"),
        _s(
            "def error_of(measured, true):\n    return abs(measured - true)",
            "abs(measured - true)",
            "measured - true",
            "error_of(1, 4)",
        ),
    ),
    "nested for joined": (
        _s(
            "def collect(groups):\n    everyone = []\n    for group in groups:\n        everyone.extend(group)\n    return everyone",
            "extend",
            "append",
            "collect([[1, 2], [3]])",
        ),
        _s(
            "def merge(pages):\n    lines = []\n    for page in pages:\n        lines.extend(page)\n    return lines",
            "extend",
            "append",
            "merge([['a'], ['b']])",
        ),
    ),
    "bound not strict": (
        _s("def overlaps(a_end, b_start):\n    return b_start < a_end", "<", "<=", "overlaps(5, 5)"),
        _s(
            "def has_room(used, size):\n    if used < size:\n        return True\n    return False",
            "<",
            "<=",
            "has_room(3, 3)",
        ),
    ),
}
