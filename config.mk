# SPDX-License-Identifier: Apache-2.0
# What can be set from outside: make VAR=value.

# Architectures of the shipped programs; NATIVE is the one that build/bin/asb is for.
ARCHS  ?= x86_64 aarch64
NATIVE := $(shell uname -m)

# mini: our own kernel (image/kernel/fragment); debian: the stock cloud kernel with an initramfs of modules.
KERNEL ?= mini

# Warnings are errors unless WERROR=0.
WERROR ?= 1

PREFIX  ?= /usr/local
DESTDIR ?=

# Fixed time of everything in images (2026-01-01): two builds of the same inputs give the same bytes.
SOURCE_DATE_EPOCH := 1767225600
export SOURCE_DATE_EPOCH

# Most bytes of a stripped program (1 KB = 1000 bytes). The link fails above.
LIMIT_asb-init  := 120000
LIMIT_agentd    := 400000
LIMIT_asb-hooks := 200000
LIMIT_asb-portd := 200000
LIMIT_asb       := 2500000

# --- flags: the language, every warning we use, and hardening
STD  := -std=c17 -pedantic -D_GNU_SOURCE
WARN := -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wformat=2 -Wvla -Wundef -Wcast-qual \
	-Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Wnull-dereference -Wswitch-enum \
	-Wimplicit-fallthrough -Wdouble-promotion -fno-common
WARN_GCC := -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wframe-larger-than=8192
ifneq ($(WERROR),0)
WARN += -Werror
endif
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero
HARDEN_x86_64  := -fcf-protection=full
HARDEN_aarch64 := -mbranch-protection=standard
INCLUDES := -I. -Ibuild

CFLAGS_MUSL := $(STD) $(WARN) $(WARN_GCC) $(HARDEN) $(INCLUDES) -Os -g -ffunction-sections -fdata-sections \
	-fno-asynchronous-unwind-tables -fno-unwind-tables
LDFLAGS_MUSL := -static-pie -Wl,--gc-sections,-z,now,-z,noexecstack,--build-id=sha1
# musl's start code for static programs does not make RELRO read-only, so on aarch64, where the segment is
# padded to 64 KiB pages, it would only cost 25 KB.
LDFLAGS_x86_64  := -Wl,-z,relro
LDFLAGS_aarch64 := -Wl,-z,norelro
# Unit tests: glibc, address and undefined-behaviour sanitizers, the same warnings.
SAN         := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_ASAN := $(STD) $(WARN) $(WARN_GCC) $(INCLUDES) -isystem build/deps/glibc/include -isystem /usr/include/cjson -Itests/lib -O1 -g $(SAN) \
	-DASB_TEST=1
# gcc's analysis is unreliable under the sanitizers (false null-dereference and frame-size reports).
CFLAGS_ASAN += -Wno-null-dereference -Wno-frame-larger-than
# Test tables are full of string literals and small numbers.
CFLAGS_TESTS := -Wno-unused-function -Wno-write-strings -Wno-discarded-qualifiers -Wno-conversion -Wno-sign-conversion
LIBS_ASAN   := -Lbuild/deps/glibc/lib -Wl,--as-needed -lmicrohttpd_ws -lmicrohttpd -lnghttp2 -lcurl-gnutls \
	-lbearssl -larchive -lzstd -lz -lyaml -lcjson -lseccomp -lm
