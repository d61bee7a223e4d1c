def slugify(title):
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    return "-".join(words)


def initials(name):
    return "".join(part[0].upper() for part in name.split())


def count_vowels(text):
    return sum(c in "aeiou" for c in text.lower())


def truncate(text, width):
    if len(text) <= width:
        return text
    return text[: width - 3] + "..."


def caesar(text, shift):
    return "".join(chr((ord(c) - 97 + shift) % 26 + 97) if c.isalpha() else c for c in text)
