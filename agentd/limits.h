/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_LIMITS_H
#define AGENTD_LIMITS_H

/* Every cap and deadline of agentd, in one place. */

#define LIMIT_CONNS	 512 /* TCP connections; further ones wait in the listener's backlog */
#define LIMIT_IDLE_S	 60  /* a client without progress */
#define LIMIT_FOLLOW_S	 300 /* the same for a client that follows output: it may stand in a pager */
#define LIMIT_EXECS	 256 /* running, or ended and not forgotten */
#define LIMIT_ID	 64  /* characters of an exec's id */
#define LIMIT_SPEC_BODY	 (4UL << 20) /* body of PUT /v1/execs/{id} */
#define LIMIT_SMALL_BODY (64UL << 10)
#define LIMIT_ARGV	 65536 /* words */
#define LIMIT_ENV	 4096  /* variables */

/* output that waits for a reader */
#define LIMIT_LOG	  (1UL << 20)	/* bytes kept of each exec; a power of two */
#define LIMIT_LOG_TOTAL	  (64UL << 20)	/* of all execs together: above it logs stop growing */
#define LIMIT_LOG_RUNS	  8192		/* changes between stdout and stderr that are remembered */
#define LIMIT_CAPTURE_SUM (256UL << 20) /* of all compatible execs together, beside PROTO_MAX_CAPTURE for each stream */
#define LIMIT_READ	  (64UL << 10)	/* bytes of one read(2) from a child */
#define LIMIT_READ_ROUNDS 4		/* of those before another descriptor gets its turn */

/* How long a child may stand because the log is full of bytes that nobody has fetched. */
#define LIMIT_ATTACH_NS (10 * 1000000000LL)	       /* from the start, or since the last follower left */
#define LIMIT_STALL_NS	(LIMIT_FOLLOW_S * 1000000000LL) /* a follower that takes nothing */

/* After the leader's end: the pipes may still be held by background children. */
#define LIMIT_QUIET_NS	(100 * 1000000LL) /* without a byte */
#define LIMIT_LINGER_NS (500 * 1000000LL) /* at most */
#define LIMIT_SPILL_NS	(10 * 1000000LL)  /* pause between two reads of what nobody will see */

#define LIMIT_ALIVE_NS	(15 * 1000000000LL) /* an output stream says something at least this often */
#define LIMIT_KILL_NS	(2 * 1000000000LL)  /* a compatible exec is answered that long after its kill at the latest */
#define LIMIT_REAP	256		    /* children reaped in one turn of the loop */

#define LIMIT_DRAIN_NS	  (3 * 1000000000LL) /* SIGTERM: for requests that are being answered */
#define LIMIT_STOP_NS	  (2 * 1000000000LL) /* SIGTERM: for the killed trees */
#define LIMIT_WRITE_CHUNK (1UL << 20)	     /* bytes of a file written in one turn of the loop */

#endif
