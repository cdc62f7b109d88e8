/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_PROTO_H
#define ASB_PROTO_H

/* Names and limits that guest and host must agree on. */

#define PROTO_AGENT_PORT  8080
#define PROTO_HOOK_PORT	  9000
#define PROTO_HOOK_PREFIX "/aws/lambda-microvms/runtime/v1/"

/* virtio-serial ports of a local VM (virtio-ports "name"). */
#define PROTO_PORT_CHANNEL "asb.channel" /* HTTP/2 CONNECT streams, asb-portd's */
#define PROTO_PORT_BOOT	   "asb.boot"	 /* JSON lines from asb-init, write-only for the guest */

/* agentd's private socket: hooks and init talk to agentd here, workloads cannot (mode 0600, root). */
#define PROTO_AGENT_SOCKET "/run/agentd/agentd.sock"
#define PROTO_IDENTITY	   "/run/agentd/identity"

/* asb-init's socket in a local VM (0600): "power-off [<ms>]" begins the orderly end. Its presence is how others see that
 * this is such a VM. */
#define PROTO_INIT_SOCKET "/run/asb/init.sock"

/* Guest programs inside a local VM: where asb-init shows those of the initramfs, read-only. */
#define PROTO_BIN_DIR "/run/asb/bin"

/* Frames of GET /v1/execs/{id}/output: 8 bytes, {stream, 0, 0, 0, big-endian length}, then the bytes.
 * Docker Engine API, "Attach to a container", stream format. */
#define PROTO_FRAME_HEADER  8
#define PROTO_STREAM_STDOUT 1
#define PROTO_STREAM_STDERR 2
#define PROTO_STREAM_EVENT  3

#define PROTO_MAX_BODY	  (64UL << 20) /* compatible routes: largest request body */
#define PROTO_MAX_CAPTURE (64UL << 20) /* compatible exec: most bytes kept of each stream */

#endif
