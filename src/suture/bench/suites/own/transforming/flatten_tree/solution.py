def flatten_tree(tree, separator="."):
    flat = {}

    def walk(value, path):
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(inner, [*path, key])
        elif isinstance(value, list) and value:
            for position, inner in enumerate(value):
                walk(inner, [*path, str(position)])
        elif path:
            flat[separator.join(path)] = value

    walk(tree, [])
    return flat
