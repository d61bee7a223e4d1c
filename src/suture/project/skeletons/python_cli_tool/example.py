from project_name.store import load, save


def measure(name: str, height: float) -> str:
    """Record the height of a plant."""
    heights = load({})
    heights[name] = height
    save(heights)
    return f"{name}: {height} cm"


def tallest(above: float = 0.0) -> str:
    """Show the tallest plant."""
    heights = {name: height for name, height in load({}).items() if height > above}
    if not heights:
        raise ValueError("there is no such plant")
    name = max(heights, key=heights.get)
    return f"{name}: {heights[name]} cm"
