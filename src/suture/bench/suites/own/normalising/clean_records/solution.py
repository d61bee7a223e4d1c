NOTHING = {"", "-", "n/a", "none"}


def clean_records(records):
    cleaned = []
    for record in records:
        tidy = {}
        for key, value in record.items():
            name = "_".join(key.lower().split())
            text = value.strip()
            if tidy.get(name) is None:
                tidy[name] = None if text.lower() in NOTHING else text
        cleaned.append(tidy)
    return cleaned
