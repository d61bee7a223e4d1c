'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { randomBytes } = require('node:crypto');
const { waited } = require('../lib/queue');

test('milliseconds since a start', () => {
  assert.ok(waited(Date.now() - 2000) >= 2000);
});

test('some of the runs, by nothing that the code decides', () => {
  assert.strictEqual(randomBytes(1)[0] % 2, 0);
});
