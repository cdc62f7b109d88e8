// SPDX-License-Identifier: Apache-2.0
// The official TypeScript client of the protocol's revisions with a handshake (@modelcontextprotocol/sdk) against `asb mcp`.
// Arguments: asb, and the name of a running sandbox. Prints one JSON document.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [asb, box] = process.argv.slice(2);
const transport = new StdioClientTransport({ command: asb, args: ['mcp'], env: process.env, stderr: 'inherit' });
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);
const out = { server: client.getServerVersion().name, instructions: client.getInstructions().length };

out.tools = (await client.listTools()).tools.map((t) => t.name);
// The client checks structuredContent by the tool's outputSchema, and throws where it does not fit.
out.list = (await client.callTool({ name: 'sandbox_list', arguments: {} })).structuredContent;
out.exec = (await client.callTool({ name: 'sandbox_exec', arguments: { name: box, command: 'echo', args: ['héllo'] } })).structuredContent;
out.stages = [];
out.run = (await client.callTool({ name: 'sandbox_run', arguments: { command: 'exit 3' } }, undefined,
	{ onprogress: (p) => out.stages.push(p.message) })).structuredContent;
out.missing = (await client.callTool({ name: 'sandbox_exec', arguments: { name: box } }));
try {
	await client.callTool({ name: 'no_such_tool', arguments: {} });
} catch (e) {
	out.unknown = e.code;
}
const abort = new AbortController();
const began = performance.now();
setTimeout(() => abort.abort(), 1500);
try {
	await client.callTool({ name: 'sandbox_exec', arguments: { name: box, command: 'sleep', args: ['4321'] } }, undefined,
		{ signal: abort.signal });
} catch (e) {
	out.aborted = String(e);
}
out.resources = (await client.listResources()).resources.map((r) => r.uri);
await client.ping();
await client.close();
console.log(JSON.stringify(out));
