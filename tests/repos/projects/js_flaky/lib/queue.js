'use strict';

exports.waited = (start) => Date.now() - start;
