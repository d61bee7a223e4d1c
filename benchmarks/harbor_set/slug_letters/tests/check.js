const assert = require("node:assert");
const { slug } = require("/app/src/slug.js");

assert.strictEqual(slug("Café Olé"), "cafe-ole");
assert.strictEqual(slug("  Rock & Roll! "), "rock-roll");
assert.strictEqual(slug("Übung 3: Ñandú"), "ubung-3-nandu");
assert.strictEqual(slug("plain words"), "plain-words");
