def pivot_sales(rows):
    products = list(dict.fromkeys(product for _, product, _ in rows))
    table = {}
    for region, product, amount in rows:
        line = table.setdefault(region, dict.fromkeys(products, 0))
        line[product] += amount
    return table
