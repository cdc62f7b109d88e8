/* SPDX-License-Identifier: Apache-2.0 */
#include "ws_peer.h"

/* Inputs, and the code that ends them. Each is sent whole, byte by byte, and cut at every place. */

struct input {
	const char *name;
	unsigned
		code; /* of the close frame sent back; 0: it stays open; 1: a close frame without a code */
	int messages;
	void (*make)(struct bytes *b);
};

static void m_text(struct bytes *b)
{
	frame(b, TEXT, S("h\xc3\xa4llo"));
}
static void m_empty(struct bytes *b)
{
	frame(b, TEXT, S(""));
	frame(b, BINARY, S(""));
}
static void m_empty_fragments(struct bytes *b)
{
	frame(b, 0x02, S(""));
	for (int i = 0; i < 20; i++)
		frame(b, 0x00, S(""));
	frame(b, 0x80, S(""));
}
static void m_biggest(struct bytes *b)
{
	frame(b, BINARY, FILL(MAX));
}
static void m_biggest_fragments(struct bytes *b)
{
	frame(b, 0x02, FILL(MAX - 1));
	frame(b, 0x80, FILL(1));
}
static void m_pongs(struct bytes *b)
{
	frame(b, PONG, S("unasked"));
	frame(b, PONG, FILL(125));
}
static void m_close_longest(struct bytes *b)
{
	char p[125] = "\x03\xe9";

	memset(p + 2, 'x', 123);
	frame(b, CLOSE, p, sizeof(p));
}
static void m_close_bare(struct bytes *b)
{
	frame(b, CLOSE, S(""));
}
static void m_close_own(struct bytes *b)
{
	frame(b, CLOSE, S("\x0f\xa1"));
}
static void m_close_after_text(struct bytes *b)
{
	frame(b, TEXT, S("last"));
	frame(b, CLOSE, S("\x03\xe8"));
	frame(b, TEXT, S("too late"));
}
static void m_unmasked(struct bytes *b)
{
	frame_n(b, TEXT, false, 2, S("hi"));
}
static void m_unmasked_empty(struct bytes *b)
{
	frame_n(b, TEXT, false, 0, S(""));
}
static void m_unmasked_close(struct bytes *b)
{
	frame_n(b, CLOSE, false, 2, S("\x03\xe8"));
}
static void m_rsv1(struct bytes *b)
{
	frame(b, 0xc1, S("x"));
}
static void m_rsv3_close(struct bytes *b)
{
	frame(b, 0x98, S("\x03\xe8"));
}
static void m_opcode3(struct bytes *b)
{
	frame(b, 0x83, S("x"));
}
static void m_opcode_f(struct bytes *b)
{
	frame(b, 0x8f, S("x"));
}
static void m_lone_continuation(struct bytes *b)
{
	frame(b, 0x80, S("x"));
}
static void m_text_in_fragments(struct bytes *b)
{
	frame(b, 0x01, S("a"));
	frame(b, TEXT, S("b"));
}
static void m_ping_fragmented(struct bytes *b)
{
	frame(b, 0x09, S("a"));
}
static void m_close_fragmented(struct bytes *b)
{
	frame(b, 0x08, S("\x03\xe8"));
}
static void m_ping_long(struct bytes *b)
{
	frame(b, PING, FILL(126));
}
static void m_close_long(struct bytes *b)
{
	frame(b, CLOSE, FILL(126));
}
static void m_close_one(struct bytes *b)
{
	frame(b, CLOSE, S("\x03"));
}
static void m_close_999(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe7"));
}
static void m_close_1005(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xed"));
}
static void m_close_1006(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xee"));
}
static void m_close_65535(struct bytes *b)
{
	frame(b, CLOSE, S("\xff\xff"));
}
static void m_close_bad_text(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe8 \xc3("));
}
static void m_close_cut_text(struct bytes *b)
{
	frame(b, CLOSE, S("\x03\xe8 \xe2\x82"));
}
static void m_too_big(struct bytes *b)
{
	frame(b, BINARY, FILL(MAX + 1));
}
static void m_too_big_fragments(struct bytes *b)
{
	frame(b, 0x02, FILL(MAX));
	frame(b, 0x80, FILL(1));
}
static void m_huge(struct bytes *b)
{
	frame_n(b, BINARY, true, 0x7fffffffffffffff, S("x"));
}
static void m_huge_sign(struct bytes *b)
{
	frame_n(b, BINARY, true, 0xffffffffffffffff, S("x"));
}
static void m_not_minimal(struct bytes *b)
{
	memcpy(b->p, "\x81\xfe\x00\x05", 4);
	memset(b->p + 4, 0, 9);
	b->n = 13;
}
static void m_not_minimal64(struct bytes *b)
{
	memcpy(b->p, "\x81\xff\0\0\0\0\0\0\0\x05", 10);
	memset(b->p + 10, 0, 9);
	b->n = 19;
}
static void m_latin1(struct bytes *b)
{
	frame(b, TEXT, S("caf\xe9!"));
}
static void m_surrogate(struct bytes *b)
{
	frame(b, TEXT, S("\xed\xa0\x80"));
}
static void m_overlong(struct bytes *b)
{
	frame(b, TEXT, S("\xc0\xaf"));
}
static void m_cut_text(struct bytes *b)
{
	frame(b, TEXT, S("x\xe2\x82"));
}
static void m_cut_fragments(struct bytes *b)
{
	frame(b, 0x01, S("x\xe2"));
	frame(b, 0x80, S("\x82"));
}
static void m_bad_fragments(struct bytes *b)
{
	frame(b, 0x01, S("x\xe2"));
	frame(b, 0x80, S("("));
}

static const struct input inputs[] = {
	{ "text", 0, 1, m_text },
	{ "empty messages", 0, 2, m_empty },
	{ "fragments, a ping between, a character cut in three", 0, 1, m_fragments },
	{ "empty fragments", 0, 1, m_empty_fragments },
	{ "biggest message", 0, 1, m_biggest },
	{ "biggest message in fragments", 0, 1, m_biggest_fragments },
	{ "pongs nobody asked for", 0, 0, m_pongs },
	{ "close", 1000, 0, m_close },
	{ "close with the longest reason", 1001, 0, m_close_longest },
	{ "close without a code", 1, 0, m_close_bare },
	{ "close with a code of its own", 4001, 0, m_close_own },
	{ "data behind a close", 1000, 1, m_close_after_text },
	{ "not masked", 1002, 0, m_unmasked },
	{ "not masked and empty", 1002, 0, m_unmasked_empty },
	{ "close that is not masked", 1002, 0, m_unmasked_close },
	{ "reserved bit", 1002, 0, m_rsv1 },
	{ "reserved bit in a close", 1002, 0, m_rsv3_close },
	{ "opcode 3", 1002, 0, m_opcode3 },
	{ "opcode 15", 1002, 0, m_opcode_f },
	{ "continuation of nothing", 1002, 0, m_lone_continuation },
	{ "text amid fragments", 1002, 0, m_text_in_fragments },
	{ "ping in fragments", 1002, 0, m_ping_fragmented },
	{ "close in fragments", 1002, 0, m_close_fragmented },
	{ "ping too long", 1002, 0, m_ping_long },
	{ "close too long", 1002, 0, m_close_long },
	{ "close with half a code", 1002, 0, m_close_one },
	{ "close 999", 1002, 0, m_close_999 },
	{ "close 1005", 1002, 0, m_close_1005 },
	{ "close 1006", 1002, 0, m_close_1006 },
	{ "close 65535", 1002, 0, m_close_65535 },
	{ "close reason not UTF-8", 1007, 0, m_close_bad_text },
	{ "close reason cut in a character", 1007, 0, m_close_cut_text },
	{ "message too big", 1009, 0, m_too_big },
	{ "fragments too big", 1009, 0, m_too_big_fragments },
	{ "length 2^63-1", 1009, 0, m_huge },
	{ "length 2^64-1", 1002, 0, m_huge_sign },
	{ "length not minimal", 1002, 0, m_not_minimal },
	{ "length not minimal, 64 bits", 1002, 0, m_not_minimal64 },
	{ "text in Latin-1", 1007, 0, m_latin1 },
	{ "text with a surrogate", 1007, 0, m_surrogate },
	{ "text with an overlong form", 1007, 0, m_overlong },
	{ "text that ends in a character", 1007, 0, m_cut_text },
	{ "fragments that end in a character", 1007, 0, m_cut_fragments },
	{ "fragments that break a character", 1007, 0, m_bad_fragments },
};

/* Sends B cut at CUT (0: byte by byte) and returns whether all came out as I says. */
static bool plays(const struct input *in, const struct bytes *b, size_t cut)
{
	bool good;

	begin(NULL, 0);
	got_len = 0;
	got_eof = false;
	if (cut == 0)
		for (size_t i = 0; i < b->n; i++)
			push(b->p + i, 1);
	push(b->p, cut);
	push(b->p + cut, cut ? b->n - cut : 0);
	for (int i = 0; i < 3; i++)
		turn(0);
	pull();
	good = sent_close() == in->code && messages == in->messages;
	if (!good)
		printf("# cut %zu: close %u, %d messages\n", cut, sent_close(), messages);
	if (in->code == 0) {
		good = good && !closes && ws.state == WS_OPEN;
	} else {
		good = good && got_eof; /* our half is closed behind the close frame */
		(void)shutdown(peer, SHUT_WR);
		run(1000);
		good = good && closes == 1 && close_code == (in->code == 1 ? WS_NO_CODE : in->code);
	}
	end();
	return good;
}

static void test_inputs(void)
{
	static struct bytes b;

	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		bool good = true;

		b.n = 0;
		inputs[i].make(&b);
		good = plays(&inputs[i], &b, b.n) && good;
		good = plays(&inputs[i], &b, 0) && good;
		for (size_t cut = 1; cut < b.n && good; cut++)
			if (cut < 200 || cut > b.n - 20)
				good = plays(&inputs[i], &b, cut);
		ok(good, "%s: %u", inputs[i].name, inputs[i].code);
	}
}

int main(void)
{
	peer = -1;
	memset(zeros, 'z', sizeof(zeros));
	if (loop_init(&loop) < 0)
		return 1;
	test_inputs();
	loop_done(&loop);
	return tap_done();
}
