'use strict';

exports.pairsOf = (text) => text.split(';').map((part) => part.split('=');
