"""Heights of plants."""


def growth(heights: list[float]) -> float:
    """Return by how much a plant grew from its first height to its last."""
    return heights[-1] - heights[0] if heights else 0.0
