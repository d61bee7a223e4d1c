// Return the last part of a web address for a title.
function slug(title) {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9 ]/g, "")
    .replace(/ /g, "-");
}

module.exports = { slug };
