// Heights of plants.
"use strict";

/** Return by how much a plant grew from its first height to its last. */
function growth(heights) {
  return heights.length ? heights[heights.length - 1] - heights[0] : 0;
}

module.exports = { growth };
