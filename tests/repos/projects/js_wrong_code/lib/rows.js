'use strict';

/** Split guests into rows of at most `width`. */
function rowsOf(guests, width) {
  const rows = [];
  for (let at = 0; at + width <= guests.length; at += width) {
    rows.push(guests.slice(at, at + width));
  }
  return rows;
}

module.exports = { rowsOf };
