'use strict';

const { swap } = require('left-hand');

exports.sorted = (names) => names.map(swap).sort();
