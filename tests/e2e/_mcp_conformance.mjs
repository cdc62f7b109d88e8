// SPDX-License-Identifier: Apache-2.0
// Runs scenarios of the official conformance package, which only speaks HTTP, against `asb mcp`: a bridge carries messages between
// the two as they are, one server for each session. Arguments: asb, the package's program, scenarios.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const [asb, program, ...scenarios] = process.argv.slice(2);
const sessions = new Map();

async function session() {
	const stdio = new StdioClientTransport({ command: asb, args: ['mcp'], env: process.env, stderr: 'inherit' });
	const web = new StreamableHTTPServerTransport({
		sessionIdGenerator: () => randomUUID(),
		onsessioninitialized: (id) => sessions.set(id, web),
	});
	web.onmessage = (m) => stdio.send(m);
	stdio.onmessage = (m) => web.send(m).catch(() => {}); // a stream that nobody has opened
	web.onclose = () => stdio.close();
	await stdio.start();
	await web.start();
	return web;
}

const server = http.createServer(async (req, res) => {
	const web = sessions.get(req.headers['mcp-session-id']) ?? (await session());
	await web.handleRequest(req, res);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${server.address().port}/mcp`;
const results = {};
for (const name of scenarios) {
	const child = spawn(process.execPath, [program, 'server', '--url', url, '--scenario', name], { stdio: ['ignore', 'pipe', 'pipe'] });
	let text = '';
	child.stdout.on('data', (d) => (text += d));
	child.stderr.on('data', (d) => (text += d));
	const code = await new Promise((done) => child.on('close', done));
	results[name] = { code, text: text.slice(-1500) };
}
console.log(JSON.stringify(results));
process.exit(0);
