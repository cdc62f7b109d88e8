/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/xml.c */
/* An answer of S3, IAM or EC2, or of whoever stands there in its place. */
#include "fuzz/fuzz.h"
#include "host/aws/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *s = fuzz_text(p, n);
	cJSON *j = xml_parse(s, n, NULL);

	(void)xml_text(j, "Error/Code");
	(void)xml_text(j, "ListVersionsResult/Version/Key");
	cJSON_Delete(j);
	free(s);
	return 0;
}
