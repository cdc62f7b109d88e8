/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_LIMITS_H
#define AGENTD_LIMITS_H

/* Every cap and deadline of agentd, in one place. */

#define LIMIT_SECOND_NS 1000000000LL
#define LIMIT_MS_NS	1000000LL

/* Connections: further ones wait in the listener's backlog. */
#define LIMIT_CONNS    512
/* Seconds without progress of a client, and of one that follows output, who may be in a pager. */
#define LIMIT_IDLE_S   60
#define LIMIT_FOLLOW_S 300

/* Terminals over WebSocket: bytes of one message and of what waits to be sent, silence until a ping. */
#define LIMIT_WS_MESSAGE (64UL << 10)
#define LIMIT_WS_QUEUE	 (64UL << 10)
#define LIMIT_WS_PING_NS (15 * LIMIT_SECOND_NS)

/* What /v1/metrics and /v1/ports look at: interfaces, ports, bytes of a table of sockets, how long it works to find the owners of ports;
 * and the shortest time that a percentage of CPU time is taken over. */
#define LIMIT_INTERFACES 32
#define LIMIT_PORTS	 512
#define LIMIT_PORTS_READ (512UL << 10)
#define LIMIT_SCAN_NS	 (50 * LIMIT_MS_NS)
#define LIMIT_SAMPLE_NS	 (100 * LIMIT_MS_NS)

/* Commands: running, or ended and not forgotten. */
#define LIMIT_EXECS	 256
#define LIMIT_ID	 64	      /* characters of an id */
#define LIMIT_SPEC_BODY	 (4UL << 20)  /* body of PUT /v1/execs/{id} */
#define LIMIT_SMALL_BODY (64UL << 10) /* of requests that hold a path or a signal */
#define LIMIT_ARGV	 65536	      /* words */
#define LIMIT_ENV	 4096	      /* variables */
#define LIMIT_PASSWD	 (1UL << 20)  /* bytes of /etc/passwd and of /etc/group that are read */
#define LIMIT_REAP	 256	      /* children reaped in one turn of the loop */

#define LIMIT_FORGET_S 86400 /* how long one that has ended can ask to be kept */

/* Output that waits for a reader: bytes of each command (a power of two), of all together (above
 * it logs stop growing), and changes between stdout and stderr that are remembered. */
#define LIMIT_LOG	  (1UL << 20)
#define LIMIT_LOG_TOTAL	  (64UL << 20)
#define LIMIT_LOG_RUNS	  8192
/* Of all compatible commands together, beside PROTO_MAX_CAPTURE for each stream. */
#define LIMIT_CAPTURE_SUM (256UL << 20)
/* Bytes of one read(2) from a child, and how many before another descriptor gets its turn. */
#define LIMIT_READ	  (64UL << 10)
#define LIMIT_READ_ROUNDS 4
/* Size of a child's pipe that has been full, and when one is left to fill: after reads of less than that which follow another within
 * the burst time, until there is so much, or for the rest at most. */
#define LIMIT_PIPE	  (256 << 10)
#define LIMIT_REST_BELOW  (64UL << 10)
#define LIMIT_REST_FILL	  (96L << 10)
#define LIMIT_REST_NS	  LIMIT_MS_NS
#define LIMIT_BURST_NS	  (5 * LIMIT_MS_NS)

/* How long a child may stand because the log is full of bytes that nobody has fetched: from the
 * start or since the last follower left; and with a follower that takes nothing. */
#define LIMIT_ATTACH_NS (10 * LIMIT_SECOND_NS)
#define LIMIT_STALL_NS	(LIMIT_FOLLOW_S * LIMIT_SECOND_NS)

/* After the leader's end, while background children hold the pipes: without a byte, and at most. */
#define LIMIT_QUIET_NS	(100 * LIMIT_MS_NS)
#define LIMIT_LINGER_NS (500 * LIMIT_MS_NS)
/* Pause between two reads of what nobody will see. */
#define LIMIT_SPILL_NS	(10 * LIMIT_MS_NS)

/* Worker processes at once; time without progress until one is killed; the line that begins its answer; its own
 * limits: address space, CPU seconds, descriptors. */
#define LIMIT_WORKERS	      8
#define LIMIT_WORKER_NS	      (60 * LIMIT_SECOND_NS)
#define LIMIT_WORKER_TERM_NS  (2 * LIMIT_SECOND_NS) /* to tidy up, then it is killed */
#define LIMIT_WORKER_HEAD     (64UL << 10)
#define LIMIT_WORKER_ALIVE_NS LIMIT_SECOND_NS
#define LIMIT_WORKER_MEMORY   (256UL << 20)
#define LIMIT_WORKER_CPU_S    3600
#define LIMIT_WORKER_FILES    640

/* How often the running time is looked at while commands have a time limit, and how late a look can be
 * before the guest is taken to have stood still. */
#define LIMIT_PULSE_NS	    LIMIT_SECOND_NS
#define LIMIT_PULSE_LATE_NS (2 * LIMIT_SECOND_NS)

/* Seccomp filters whose denials agentd answers (each is a descriptor; later ones are answered by the kernel), and how
 * many answers one of them gets in which time. */
#define LIMIT_LISTENERS 2048
#define LIMIT_DENIALS	256
#define LIMIT_DENIAL_NS (50 * LIMIT_MS_NS)

/* Longest silence of an output stream. */
#define LIMIT_ALIVE_NS	    (15 * LIMIT_SECOND_NS)
/* A compatible command is answered that long after its kill at the latest. */
#define LIMIT_KILL_NS	    (2 * LIMIT_SECOND_NS)
/* SIGTERM: for requests that are being answered, then for the killed trees. */
#define LIMIT_DRAIN_NS	    (3 * LIMIT_SECOND_NS)
#define LIMIT_STOP_NS	    (2 * LIMIT_SECOND_NS)
/* Watches: clients; directories of each; bytes of the paths of all; events that wait for its reader; entries read in
 * one turn of the loop; how long the first half of a rename waits for the second. */
#define LIMIT_WATCHERS	    32
#define LIMIT_WATCH_DIRS    16384
#define LIMIT_WATCH_BYTES   (4UL << 20)
#define LIMIT_WATCH_BUF	    (256UL << 10)
#define LIMIT_WATCH_STEP    256
#define LIMIT_WATCH_PAIR_NS (20 * LIMIT_MS_NS)
/* Entries of one listing: when nothing is said, and at most. */
#define LIMIT_LIST	    10000
#define LIMIT_LIST_MOST	    1000000
/* Bytes of a file that are read before its answer begins: see routes_files.c. */
#define LIMIT_FILE_HEAD	    (16UL << 10)
/* Bytes of a file written in one turn of the loop. */
#define LIMIT_WRITE_CHUNK   (1UL << 20)

#endif
