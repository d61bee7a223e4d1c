// Heights of plants.

/** Return by how much a plant grew from its first height to its last. */
export function growth(heights: number[]): number {
  return heights.length ? heights[heights.length - 1] - heights[0] : 0;
}
