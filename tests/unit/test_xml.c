/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/xml.c */
#include <string.h>

#include "host/aws/xml.h"
#include "lib/buf.h"
#include "tap.h"

static struct err why;

static cJSON *read_xml(const char *s)
{
	why = (struct err)ERR_INIT;
	return xml_parse(s, strlen(s), &why);
}

static void refused(const char *s, const char *message)
{
	AUTO_JSN *j = read_xml(s);

	ok(!j && strstr(why.msg, message), "refused: %.50s", s);
	if (!j && !strstr(why.msg, message))
		printf("# %s\n", why.msg);
}

static int count(void *arg, const cJSON *c)
{
	(void)c;
	return ++*(int *)arg == 3 ? 77 : 0;
}

static void reading(void)
{
	AUTO_JSN *j = read_xml(
		"<?xml version=\"1.0\"?>\n<A xmlns=\"http://x/\">\n <B>one</B>\n <B> two &amp;&lt;&#233; </B>\n <C/>\n"
		" <D><E><![CDATA[<x>]]></E></D></A>");
	int n = 0;

	ok(j, "a document");
	ok_str(xml_text(j, "A/B"), "one", "the first of a name");
	ok_str(xml_text(j, "A/C"), "", "an empty element");
	ok_str(xml_text(j, "A/D/E"), "<x>", "CDATA");
	ok(!xml_text(j, "A/D") && !xml_text(j, "A/X") && !xml_text(j, "A/B/Y"), "what is no text");
	ok_int(xml_each(xml_at(j, "A"), "B", count, &n), 0, "each of a name");
	ok_int(n, 2, "there are two");
	ok_str(cJSON_GetStringValue(xml_at(j, "A")->child->next), " two &<\xc3\xa9 ",
	       "text is unescaped");
	n = 2;
	ok_int(xml_each(xml_at(j, "A"), "B", count, &n), 77, "what stops is returned");
}

static void hostile(void)
{
	AUTO_BUF b;

	refused("", "no element");
	refused("<a>", "no element");
	refused("<a></b>", "mismatched tag");
	refused("<a/><b/>", "junk");
	refused("<html><br></html>", "mismatched");
	refused("<!DOCTYPE a [<!ENTITY l \"lol\"><!ENTITY l2 \"&l;&l;\">]><a>&l2;</a>",
		"document type");
	refused("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>", "document type");
	refused("<a>&x;</a>", "undefined entity");
	refused("<a>\xff</a>", "not well-formed");
	buf_init(&b, 8U << 20);
	for (int i = 0; i < 33; i++)
		ignore_result(buf_adds(&b, "<a>"));
	refused(b.p, "too much");
	buf_clear(&b);
	ignore_result(buf_adds(&b, "<a>"));
	for (int i = 0; i < 200001; i++)
		ignore_result(buf_adds(&b, "<b/>"));
	refused(b.p, "too much");
	buf_clear(&b);
	ignore_result(buf_adds(&b, "<a>"));
	for (int i = 0; i < 200000; i++)
		ignore_result(buf_adds(&b, "12345678"));
	refused(b.p, "too long");
	buf_clear(&b);
	ok_int(xml_escape(&b, "a<b>&\"\r"), 0, "escaped");
	ok_str(b.p, "a&lt;b&gt;&amp;\"&#13;", "for an element's text");
	buf_done(&b);
}

int main(void)
{
	reading();
	hostile();
	return tap_done();
}
