'use strict';

const { pairsOf } = require('./parse');

exports.print = (text) => pairsOf(text).map(([name, value]) => `${name}: ${value}`).join('\n');
