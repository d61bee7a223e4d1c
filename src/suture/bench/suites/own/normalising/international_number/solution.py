import re


def international_number(text, country):
    bare = re.sub(r"[\s\-./()]", "", text)
    if bare.startswith("00"):
        bare = "+" + bare[2:]
    elif bare.startswith("0"):
        bare = "+" + country + bare[1:]
    return bare if re.fullmatch(r"\+[1-9][0-9]{6,14}", bare) else None
