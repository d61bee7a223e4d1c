import re


def unique_slugs(titles):
    slugs = []
    for title in titles:
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "page"
        name, number = slug, 1
        while name in slugs:
            number += 1
            name = f"{slug}-{number}"
        slugs.append(name)
    return slugs
