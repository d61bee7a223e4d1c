'use strict';

const { rowsOf } = require('./rows');

/** A seating plan as text: one line a row, names joined by a comma. */
function planOf(guests, width) {
  return rowsOf(guests, width)
    .map((row, number) => `${number + 1}: ${row.join(', ')}`)
    .join('\n');
}

module.exports = { planOf };
