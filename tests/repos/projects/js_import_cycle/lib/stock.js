'use strict';

const { MOST } = require('./orders');

const STORE = { tea: 30, rope: 4 };
exports.inStock = (name, count) => (STORE[name] ?? 0) >= count;
exports.boxes = (name) => Math.ceil(STORE[name] / MOST);
