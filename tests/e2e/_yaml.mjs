// SPDX-License-Identifier: Apache-2.0
// Prints the YAML file of its argument as JSON.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

console.log(JSON.stringify(parse(readFileSync(process.argv[2], 'utf8'))));
