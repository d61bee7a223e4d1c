import re


def split_fields(line):
    fields, field, quoted = [], "", False
    for letter in line:
        if letter == '"':
            quoted = not quoted
        elif letter == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += letter
    return [*fields, field]


def parse_pairs(text):
    pairs = (part.split("=", 1) for part in text.split(";") if part)
    return {key.strip(): value.strip() for key, value in pairs}


def tokenize(expression):
    return re.findall(r"\d+|[-+*/()]", expression)


def balanced(text):
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0
