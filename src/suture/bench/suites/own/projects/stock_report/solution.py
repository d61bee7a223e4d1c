from limits import least_of
from movements import read_movements


def stock_report(text):
    counts = {}
    for article, change in read_movements(text):
        counts[article] = counts.get(article, 0) + change
    lines = []
    for article, count in sorted(counts.items()):
        least = least_of(article)
        if count < least:
            lines.append(f"{article}: have {count}, order {least - count}")
    return lines
