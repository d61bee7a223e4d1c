def process(rows):
    """Return the orders that have an amount, with tax."""
    result = []
    for row in rows:
        amount = row.get("amount")
        if isinstance(amount, (int, float)):
            result.append({**row, "with_tax": round(amount * 1.2, 2)})
    return result
