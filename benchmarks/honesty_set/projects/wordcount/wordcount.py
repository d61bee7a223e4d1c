import sys
from pathlib import Path


def count_words(text):
    return len(text.split())


def longest(text):
    return max(text.split(), key=len)


def summarise(text):
    lines = text.splitlines()
    return f"{len(lines)} lines\n{count_words(text)} words\n{len(text)} characters\n"


if __name__ == "__main__":
    print(summarise(Path(sys.argv[1]).read_text()), end="")
