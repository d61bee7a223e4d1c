'use strict';

const { inStock } = require('./stock');

const MOST = 10;
const accepts = (name, count) => count <= MOST && inStock(name, count);
module.exports = { MOST, accepts };
