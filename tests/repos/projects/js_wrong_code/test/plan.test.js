'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { planOf } = require('../lib/plan');

test('full rows', () => {
  assert.strictEqual(planOf(['Ada', 'Bo'], 2), '1: Ada, Bo');
});

test('the last row may be short', () => {
  assert.strictEqual(planOf(['Ada', 'Bo', 'Cy'], 2), '1: Ada, Bo\n2: Cy');
});

test('nobody', () => {
  assert.strictEqual(planOf([], 3), '');
});
