/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PROXY_INT_H
#define ASB_PROXY_INT_H

#include <curl/curl.h>

#include "host/net/curlio.h"
#include "host/net/tls.h"
#include "host/proxy/proxy.h"
#include "lib/buf.h"
#include "lib/httpd.h"
#include "lib/ring.h"

/*
 * What the files of the proxy share: proxy.c (servers, routes, tokens), exchange.c (one request from its head to its end), request.c (what
 * is sent), answer.c (what comes back), upgrade.c (WebSockets).
 */

#define PROXY_CLIENTS_MAX 200 /* connections of clients, of all ports together */
#define PROXY_UP_MAX	  (64U << 10)
#define PROXY_DOWN_MAX	  (256U << 10) /* a power of two */
#define PROXY_PIECE	  (64L << 10)  /* what libcurl hands over at most */
#define PROXY_HEAD_MAX	  (64U << 10)  /* of an answer, with informational ones before it */
#define PROXY_FIELDS_MAX  1000	       /* in it: libcurl looks for each by a walk over all */
#define PROXY_SECOND	  1000000000LL
#define PROXY_TOKEN_NS	  (90LL * PROXY_SECOND) /* until there are credentials */
#define PROXY_GONE_NS	  (10LL * PROXY_SECOND) /* for a client that has ended its direction */

struct proxy_port {
	struct proxy *proxy;
	struct port_spec spec;
	struct httpd *server;	    /* owned */
	struct backend_route route; /* owned */
};

struct proxy {
	struct proxy_config c;
	struct curlio *io; /* owned */
	struct tls *tls;
	struct proxy_port ports[BACKEND_PORTS_MAX - 1];
	unsigned len;
	struct proxy_port agent; /* for signs of life; no server */
	struct backend_ports all;
	struct exchange *exchanges;
	/* tokens */
	pid_t helper;		/* asks for a route; 0 = none */
	bool fresh, want_fresh; /* it asks for new credentials; somebody wants them after it */
	int64_t checked_ns;	/* CLOCK_BOOTTIME */
	int64_t renewed_ns;	/* loop_now(); 0 = never */
	unsigned generation;	/* counts the credentials */
	bool running;		/* proxy_told */
	/* signs of life */
	struct loop_timer alive;
	struct curlio_call ping; /* its handle is owned; NULL = none under way */
	struct curl_slist *ping_heads;
};

enum stage {
	STAGE_WAITING, /* for credentials, or for another attempt */
	STAGE_SENT,    /* no head of an answer yet */
	STAGE_HELD,    /* what may be the endpoint's own answer is collected */
	STAGE_ANSWER,  /* it goes to the client */
	STAGE_RAW,     /* after a 101 */
};

/* One request. Lives until httpd's on_end. */
struct exchange {
	struct proxy_port *port;
	struct httpd_req *r;
	struct exchange *next, *prev;
	struct curlio_call io; /* its handle is owned */
	struct curl_slist *heads;
	bool added; /* libcurl is at work */
	enum stage stage;
	struct loop_timer limit; /* of the stage */
	struct loop_timer gone;	 /* the client sends nothing more, and may have left */
	int64_t begun_ns;
	unsigned generation; /* of the credentials it was sent with */
	bool renewed;	     /* it was refused once, and sent again with others */
	bool retry;	     /* it waits for another attempt, not for credentials */
	bool fresh;	     /* it is sent on a connection of its own */

	/* to the sandbox */
	bool ws, has_body;
	bool asked;    /* the client's request has come whole */
	struct buf up; /* from UP_AT on: not sent yet */
	size_t up_at; /* what lies before it has been sent, and is kept while it is all there was */
	bool up_cut;  /* something has been dropped: it cannot be sent again */
	bool up_eof;  /* nothing comes after it */
	bool up_short; /* the client waits for room */
	bool dropped;  /* some of the client's body, which nobody wanted any more */
	bool send_paused;

	/* to the client */
	struct ring down;
	size_t head_bytes, fields; /* of all heads */
	bool in_head;		   /* the status line has come */
	size_t hints;		   /* fields of informational answers before this one */
	long status;
	bool head_done;
	bool recv_paused;
	bool replied;
	int64_t length;	       /* of the answer's body; -1 = it is not told */
	int64_t received;      /* of it */
	bool complete, broken; /* the answer has ended as it should; it was cut */

	/* WebSocket */
	struct loop_watch client; /* its socket is httpd's */
	bool handed;		  /* we have the socket */
};

static inline struct proxy *proxy_of(const struct exchange *x)
{
	return x->port->proxy;
}

/* proxy.c */
bool proxy_has_token(const struct proxy *p); /* one that is good for a while */
/* Asks for a route, FRESH for new credentials; exchanges that wait for it (STAGE_WAITING) are then sent or fail. False when nobody can be
 * started who asks, which standard error has been told. */
bool proxy_renew(struct proxy *p, bool fresh) MUST_CHECK;
/* The credentials were refused: asks for new ones. False when that was done a moment ago, or cannot be. */
bool proxy_renew_refused(struct proxy *p);
unsigned proxy_clients(const struct proxy *p);
void proxy_busy(struct proxy *p); /* there is an exchange: signs of life are sent from now on */

/* exchange.c */
void exchange_begin(struct proxy_port *port, struct httpd_req *r);
void exchange_send(struct exchange *x); /* or it fails */
/* Ends what libcurl does for X. */
void exchange_stop(struct exchange *x);
/* Answers with STATUS and a text, or resets the client when the answer has begun. */
void exchange_fail(struct exchange *x, int status, const char *fmt, ...) PRINTF(3, 4);
void exchange_no_token(struct exchange *x); /* and standard error says why */
void exchange_resume_send(struct exchange *x);
void exchange_resume_recv(struct exchange *x);
/* The request can be sent once more: all that was sent of it is still there. */
bool exchange_can_repeat(const struct exchange *x);
/* All of a success has come, and more of the request is still to be sent: the answer is to wait for it, within a limit that begins
 * here. answer_done tells the end. */
bool exchange_goes_on(struct exchange *x);
/* A plain answer from us. */
void proxy_say(struct httpd_req *r, int status, const char *fmt, ...) PRINTF(3, 4);

/* request.c */
bool request_is_websocket(struct httpd_req *r);
/* The values of all fields NAME of R, as one list (RFC 9110 §5.3), into OUT. */
int request_list(struct httpd_req *r, const char *name, struct buf *out) MUST_CHECK;
/* A field that ends here, in both directions: one of the connection, or the platform's own. CONNECTION: what fields of that name list. */
bool request_is_private(const struct exchange *x, const char *name, const char *connection);
/* Where the client has sent its request: "localhost:8080" */
int request_here(const struct exchange *x, struct buf *out) MUST_CHECK;
/* Where it goes: "host[:port]" */
const char *request_there(const struct exchange *x);
int request_set(struct exchange *x)
	MUST_CHECK; /* all of the handle but who gets the answer; 0 or -ENOMEM */

/* answer.c */
int answer_set(struct exchange *x) MUST_CHECK;
void answer_done(struct exchange *x, CURLcode code); /* libcurl has ended */
void answer_headers(struct exchange *x); /* those of the sandbox's answer go to the client */
bool answer_is_websocket(const struct exchange *x); /* the 101 says so */

/* upgrade.c */
int upgrade_begin(struct exchange *x) MUST_CHECK; /* at the head of a 101 */
void upgrade_turn(struct exchange *x);		  /* something can be moved */
void upgrade_cut(struct exchange *x);		  /* no more waiting */
void upgrade_done(struct exchange *x);		  /* before X is freed */

#endif
