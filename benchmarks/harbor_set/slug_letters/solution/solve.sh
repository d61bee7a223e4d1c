#!/bin/bash
cat > /app/src/slug.js <<'PROGRAM'
// Return the last part of a web address for a title.
function slug(title) {
  return title
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

module.exports = { slug };
PROGRAM
