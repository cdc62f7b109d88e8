// SPDX-License-Identifier: Apache-2.0
// Log messages as the official clients of both eras get them from `asb mcp`. Prints one JSON document: what each was told by
// one call of sandbox_list, without a level, and at the level debug.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

const [asb] = process.argv.slice(2);
const server = { command: asb, args: ['mcp'], env: process.env, stderr: 'inherit' };
const list = { name: 'sandbox_list', arguments: {} };
const out = { v1: [], v2: [] };

const one = new Client({ name: 'test', version: '1' });
let got = [];
one.setNotificationHandler(LoggingMessageNotificationSchema, (n) => void got.push([n.params.level, n.params.logger]));
await one.connect(new StdioClientTransport(server));
await one.callTool(list);
out.v1.push(got);
got = [];
await one.setLoggingLevel('debug');
await one.callTool(list);
out.v1.push(got);
await one.close();

const two = new Client2({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
let got2 = [];
two.setNotificationHandler('notifications/message', (n) => void got2.push([n.params.level, n.params.logger]));
await two.connect(new Stdio2(server));
await two.callTool(list);
out.v2.push(got2);
got2 = [];
await two.callTool({ ...list, _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } });
out.v2.push(got2);
await two.close();
console.log(JSON.stringify(out));
