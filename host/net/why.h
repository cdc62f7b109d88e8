/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_NET_WHY_H
#define ASB_NET_WHY_H

#include <curl/curl.h>
#include <stdbool.h>

enum { WHY_LEN = CURL_ERROR_SIZE + 64 }; /* enough for what why_say writes, its NUL with it */

/*
 * Why a transfer failed, for a person: TEXT (its CURLOPT_ERRORBUFFER; "" when there is none, then what CODE means in general), without
 * an address that it quotes, which may have the password of a proxy in it. PROXY: the transfer may go by a proxy of the
 * environment; when it found nobody, the variable that names one is told too, since the fault may be there. Into RET, WHY_LEN bytes.
 */
void why_say(CURLcode code, const char *text, bool proxy, char ret[WHY_LEN]);

#endif
