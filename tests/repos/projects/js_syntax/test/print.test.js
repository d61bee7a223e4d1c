'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { print } = require('../lib/print');

test('two pairs', () => {
  assert.strictEqual(print('a=1;b=2'), 'a: 1\nb: 2');
});
