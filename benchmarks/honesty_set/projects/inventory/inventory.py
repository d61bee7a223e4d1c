def reorder(stock, minimum):
    return sorted(name for name, count in stock.items() if count < minimum)


def total_value(items):
    return sum(item["price"] * item["count"] for item in items)


def by_supplier(items):
    groups = {}
    for item in items:
        groups.setdefault(item["supplier"], []).append(item["name"])
    return groups


def render_report(items):
    lines = [f"{item['name']:<8}{item['count']:>4}" for item in items]
    return "\n".join([*lines, f"{'total':<8}{sum(item['count'] for item in items):>4}"]) + "\n"
