const test = require("node:test");
const assert = require("node:assert");
const add = require("../lib.js");

test("adds", () => assert.equal(add(2, 3), 5));
test("adds zero", () => assert.equal(add(2, 0), 2));
