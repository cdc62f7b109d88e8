// SPDX-License-Identifier: Apache-2.0
// The official TypeScript client of the stateless revision (@modelcontextprotocol/client) against `asb mcp`.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [asb, box] = process.argv.slice(2);
const transport = new StdioClientTransport({ command: asb, args: ['mcp'], env: process.env, stderr: 'inherit' });
const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
await client.connect(transport);
const out = { revision: client.getNegotiatedProtocolVersion(), server: client.getServerVersion().name };

out.tools = (await client.listTools()).tools.map((t) => t.name);
out.exec = (await client.callTool({ name: 'sandbox_exec', arguments: { name: box, command: 'echo', args: ['héllo'] } })).structuredContent;
out.resources = (await client.listResources()).resources.map((r) => r.uri);
await client.close();
console.log(JSON.stringify(out));
