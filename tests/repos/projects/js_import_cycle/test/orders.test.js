'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { accepts } = require('../lib/orders');
const { boxes } = require('../lib/stock');

test('what is in stock', () => {
  assert.strictEqual(accepts('rope', 4), true);
});

test('boxes of ten', () => {
  assert.strictEqual(boxes('tea'), 3);
});
