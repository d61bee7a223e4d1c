'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { sorted } = require('../lib/names');

test('by family name', () => {
  assert.deepStrictEqual(sorted(['Ada King']), ['King, Ada']);
});
