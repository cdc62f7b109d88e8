// SPDX-License-Identifier: Apache-2.0
// Ajv's opinion: does each value fit its schema? Argument: a file of JSON lines [schema, value]. Prints what does not, and the count.
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
const checks = new Map();
const bad = [];
const lines = readFileSync(process.argv[2], 'utf8').trim().split('\n');
for (const line of lines) {
	const [schema, value] = JSON.parse(line);
	const key = JSON.stringify(schema);
	if (!checks.has(key)) checks.set(key, ajv.compile(schema));
	const check = checks.get(key);
	if (!check(value)) bad.push([check.errors, line.slice(0, 400)]);
}
console.log(JSON.stringify({ count: lines.length, schemas: checks.size, bad: bad.slice(0, 5) }));
