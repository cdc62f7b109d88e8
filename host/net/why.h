/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_NET_WHY_H
#define ASB_NET_WHY_H

#include <curl/curl.h>

enum { WHY_LEN = CURL_ERROR_SIZE + 64 }; /* enough for what why_say writes, its NUL with it */

/*
 * Why a transfer failed, for a person: TEXT (its CURLOPT_ERRORBUFFER; "" when there is none, then what CODE means in general), without
 * an address that it quotes, which may have the password of a proxy in it. URL: what was asked for (NULL: in no case by a
 * proxy); when it found nobody and the environment names a proxy for it, the variable is told too, since the fault may be there.
 * Into RET, WHY_LEN bytes.
 */
void why_say(CURLcode code, const char *text, const char *url, char ret[WHY_LEN]);

#endif
