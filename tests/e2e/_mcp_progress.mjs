// SPDX-License-Identifier: Apache-2.0
// The official client calls a command that says nothing for longer than the client waits for an answer: progress keeps it waiting.
// Arguments: asb, and the name of a running sandbox.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [asb, box] = process.argv.slice(2);
const client = new Client({ name: 'test', version: '1' });
await client.connect(new StdioClientTransport({ command: asb, args: ['mcp'], env: process.env, stderr: 'inherit' }));
let told = 0;
const r = await client.callTool({ name: 'sandbox_exec', arguments: { name: box, command: 'sleep', args: ['20'] } }, undefined,
	{ onprogress: () => told++, timeout: 12000, resetTimeoutOnProgress: true });
await client.close();
console.log(JSON.stringify({ told, exit_code: r.structuredContent.data.exit_code }));
