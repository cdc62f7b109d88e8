# SPDX-License-Identifier: Apache-2.0
# One non-recursive make. Each folder lists its sources in module.mk; see HACKING.md.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# `make run` and `make check` install what is missing first, so they start over in a second make:
# only then do the tools that the rules below need exist.
include config.mk
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
# All cores where a target starts a second make, unless the caller has said how many.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
say = @printf '  %-8s %s\n' $(1) $(2)

# --- modules ---------------------------------------------------------------------------------
# NAME_SRCS and NAME_LIBS of each; a missing folder is no error.
lib_SRCS    := $(wildcard lib/*.c)
init_SRCS   := $(wildcard init/*.c)
agentd_SRCS := $(wildcard agentd/*.c)
hooks_SRCS  := $(wildcard hooks/*.c)
portd_SRCS  := $(wildcard portd/*.c)
host_SRCS   := $(wildcard host/*.c host/*/*.c host/*/*/*.c)
agentd_LIBS := -lmicrohttpd -lcjson -lseccomp
hooks_LIBS  := -lmicrohttpd -lcjson -lbearssl
portd_LIBS  := -lnghttp2
host_LIBS   := -lcurl -lbearssl -lnghttp2 -larchive -lzstd -lz -lmicrohttpd -lcjson -lyaml
bench_PROGS :=
-include $(wildcard */module.mk)

GUEST := asb-init agentd asb-hooks asb-portd
asb-init_MOD := init
agentd_MOD := agentd
asb-hooks_MOD := hooks
asb-portd_MOD := portd
asb_MOD := host

# A program without sources is left out, so the tree builds while it grows.
guest_have := $(strip $(foreach p,$(GUEST),$(if $($($(p)_MOD)_SRCS),$(p))))
host_have  := $(if $(host_SRCS),asb)

# --- top targets -----------------------------------------------------------------------------
.PHONY: all help setup deps guest host kernel image share run check bench fuzz lint format install dist
.PHONY: clean distclean check-fresh deps-update FORCE
all: guest host

help:
	@echo 'make run          set up everything, boot a microVM and say hello from it'
	@echo 'make check        set up everything and run all tests (T=pattern: only some)'
	@echo
	@echo 'make check-slow   what takes hours: every step of the commands fails once (WALK=name/kind,…)'
	@echo 'make setup        install missing Debian packages (root or sudo)'
	@echo 'make deps         static libraries for musl, both architectures (cached)'
	@echo 'make deps-update  lock newer versions of them'
	@echo 'make npm          official clients for the tests, which make check runs with (cached)'
	@echo 'make guest host   the programs, for $(ARCHS)'
	@echo 'make kernel       the guest kernel (cached; KERNEL=debian: the stock one)'
	@echo 'make image        kernel, base image and empty disk, ready in build/share/asb'
	@echo 'make lint         formatting, clang-tidy, cppcheck, banned functions, sizes'
	@echo 'make format       rewrite the C files as .clang-format says (F=files: only these)'
	@echo 'make man          write man/ from the command table'
	@echo 'make bench fuzz   measure; fuzz the parsers (FUZZ_TIME=seconds for each)'
	@echo 'make install      into DESTDIR/PREFIX ($(DESTDIR)$(PREFIX))'
	@echo 'make dist         a tar archive of the installed tree'
	@echo 'make check-fresh  make run and make check in a bare Debian 12 (root)'
	@echo 'make clean        remove build/ (the cache stays; distclean removes that too)'
	@echo
	@echo 'V=1 shows the commands. Slow results are kept in $$ASB_CACHE'
	@echo '(~/.cache/agent-sandbox-os) by the hash of what they were made from.'

setup:
	$(Q)scripts/setup run

# The two commands of the README. Each is a sequence: the second make sees what the first installed.
run:
	$(Q)scripts/setup run
	$(Q)+$(MAKE) $(JOBS) --no-print-directory all share
	build/bin/asb run -- python3 -c 'print("Hello from a microVM!")'

check:
	$(Q)scripts/setup run check
	$(Q)+$(MAKE) $(JOBS) --no-print-directory check-build
	$(Q)tests/run $(T)

# Walks that take hours: each step of each command fails once. WALK, WALK_LOG, WALK_SECONDS: tests/slow/fault.py.
.PHONY: check-slow
check-slow:
	$(Q)scripts/setup run check
	$(Q)+$(MAKE) $(JOBS) --no-print-directory all share
	$(Q)tests/run slow/$(T)

.PHONY: check-build
check-build: all share unit sanitized fuzz-replay npm

# --- slow things, kept in the cache ----------------------------------------------------------
DEPS_IN   := deps/build deps/sources.lock deps/sources.sha256 deps/musl.specs $(wildcard deps/patches/*)
KERNEL_IN := image/kernel/build image/kernel/fragment image/kernel/source.lock image/kernel/may-be-dropped
BASE_IN   := image/base/build image/base/packages image/base/customize
UPPER_IN  := image/upper/build

deps: build/deps.stamp build/expat.stamp
build/deps.stamp: FORCE
	$(Q)scripts/cached deps build/deps $(DEPS_IN)
# Objects depend on what they were compiled with, not on the libraries: a changed library costs a link. The time is that of the headers.
build/deps-headers.stamp: build/deps.stamp
	$(Q)h=$$(cd build/deps/ && find . -type f \( -name '*.h' -o -name '*-musl-cc' -o -name musl.specs \) | LC_ALL=C sort | \
		xargs sha256sum | sha256sum) && { [ "$$(cat $@ 2>/dev/null)" = "$$h" ] || \
		{ printf '%s\n' "$$h" >$@ && touch -r build/deps/$(NATIVE)/include/archive.h $@; }; }
# By itself, so that it costs nobody the others.
build/expat.stamp: build/deps.stamp FORCE
	$(Q)ASB_KEY="$$(cat build/deps.stamp)" scripts/cached expat build/expat deps/expat/build deps/expat/source.lock \
		deps/expat/source.sha256
build/kernel-mini.stamp: FORCE
	$(Q)scripts/cached kernel build/kernel-mini $(KERNEL_IN)
build/kernel-debian.stamp: FORCE
	$(Q)scripts/cached kernel-debian build/kernel-debian image/kernel/build-debian image/kernel/modules
build/base.stamp: FORCE
	$(Q)scripts/cached base build/base $(BASE_IN)
build/upper.stamp: FORCE
	$(Q)scripts/cached upper build/upper $(UPPER_IN)

# Official clients from the npm registry, for tests. Without npm or without a network these tests skip, and say so.
NPM_IN := deps/npm/build deps/npm/.npmrc deps/npm/package.json deps/npm/package-lock.json
.PHONY: npm
npm:
	$(Q)command -v npm >/dev/null || { echo '  NPM      npm is not installed: tests with official clients are skipped' >&2; exit 0; }; \
		scripts/cached npm build/npm $(NPM_IN) || \
		echo '  NPM      no packages: tests with official clients are skipped' >&2

deps-update:
	scripts/deps-update

# --- compile ---------------------------------------------------------------------------------
build/version.h: FORCE
	$(Q)scripts/version $@

define arch_rules
build/$(1)/obj/%.o: %.c config.mk build/deps-headers.stamp | build/version.h build/expat.stamp
	@mkdir -p $$(@D)
	$$(call say,CC,'$$< ($(1))')
	$$(Q)build/deps/bin/$(1)-musl-cc $$(CFLAGS_MUSL) $$(HARDEN_$(1)) -isystem build/deps/$(1)/include \
		-isystem build/expat/$(1)/include \
		$$(CFLAGS) -MMD -MP -c $$< -o $$@
build/$(1)/libasb.a: $(patsubst %.c,build/$(1)/obj/%.o,$(lib_SRCS))
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $(1)-linux-gnu-gcc-ar rcsD $$@ $$^
endef
$(foreach a,$(ARCHS),$(eval $(call arch_rules,$(a))))

# These are close to their limits. Everything of them lies within a MiB, so that an address takes one instruction; when it
# does not, the linker says that a relocation does not fit.
build/aarch64/obj/hooks/%.o build/aarch64/obj/agentd/%.o: HARDEN_aarch64 += -mcmodel=tiny

# $(call program,ARCH,NAME,SOURCES,LIBS): NAME, stripped, and NAME.debug beside it.
define program
build/$(1)/bin/$(2): $(patsubst %.c,build/$(1)/obj/%.o,$(3)) build/$(1)/libasb.a scripts/check-binary config.mk \
		build/deps.stamp build/expat.stamp
	@mkdir -p $$(@D)
	$$(call say,LD,'$(2) ($(1))')
	$$(Q)build/deps/bin/$(1)-musl-cc $$(LDFLAGS_MUSL) $$(LDFLAGS_$(1)) $$(LDFLAGS) -o $$@.full $$(filter %.o,$$^) \
		build/$(1)/libasb.a -Lbuild/deps/$(1)/lib -Lbuild/expat/$(1)/lib $(4)
	$$(Q)$(1)-linux-gnu-objcopy --only-keep-debug $$@.full $$@.debug
	$$(Q)$(1)-linux-gnu-objcopy --strip-all --add-gnu-debuglink=$$@.debug $$@.full $$@
	$$(Q)rm $$@.full
	$$(Q)scripts/check-binary $$@ $$(or $$(LIMIT_$(2)_$(1)),$$(LIMIT_$(2)))
endef
$(foreach a,$(ARCHS),$(foreach p,$(guest_have) $(host_have),\
	$(eval $(call program,$(a),$(p),$($($(p)_MOD)_SRCS),$($($(p)_MOD)_LIBS)))))

guest: $(foreach a,$(ARCHS),$(patsubst %,build/$(a)/bin/%,$(guest_have)))
host: $(foreach a,$(ARCHS),$(patsubst %,build/$(a)/bin/%,$(host_have))) $(patsubst %,build/bin/%,$(host_have))

# A copy, not a link: asb looks for ../share/asb from where it really is.
build/bin/asb: build/$(NATIVE)/bin/asb
	@mkdir -p $(@D)
	$(Q)cp $< $@.tmp && mv $@.tmp $@

# --- what a VM boots from --------------------------------------------------------------------
kernel: build/kernel-$(KERNEL).stamp
image: share

build/guest.cpio: $(patsubst %,build/x86_64/bin/%,$(guest_have)) scripts/mkinitrd build/kernel-$(KERNEL).stamp
	$(call say,CPIO,$@)
	$(Q)scripts/mkinitrd $@ build/x86_64/bin $(if $(filter debian,$(KERNEL)),build/kernel-debian/modules.cpio)

share: build/guest.cpio build/kernel-$(KERNEL).stamp build/base.stamp build/upper.stamp \
		$(foreach a,$(ARCHS),$(patsubst %,build/$(a)/bin/%,$(guest_have)))
	$(Q)scripts/share build $(KERNEL) $(ARCHS)

# --- tests -----------------------------------------------------------------------------------
# tests/unit/test_x.c becomes build/asan/tests/unit/test_x, linked with all of lib/ and with what a line
# of its own names:   /* LINK: agentd/exec.c host/state/state.c */   (libraries come along by themselves)
UNIT  := $(wildcard tests/unit/test_*.c)
FUZZ  := $(wildcard fuzz/*.c)
links := $(if $(UNIT)$(FUZZ),$(shell awk '/LINK:/ { on = 1; out = FILENAME; sub(/.*LINK:/, "") } \
	on { end = sub(/\*\/.*/, ""); for (i = 1; i <= NF; i++) if ($$i != "*") out = out "," $$i } \
	on && end { print out; on = 0 }' $(UNIT) $(FUZZ)))
link   = $(sort $(foreach l,$(filter $(1)$(comma)%,$(links)),\
	$(wildcard $(subst $(comma), ,$(patsubst $(1)$(comma)%,%,$(l))))))
comma := ,

build/asan/obj/%.o: %.c config.mk build/deps-headers.stamp | build/version.h
	@mkdir -p $(@D)
	$(call say,CC,'$< (sanitized)')
	$(Q)gcc $(CFLAGS_ASAN) $(if $(filter tests/% fuzz/%,$<),$(CFLAGS_TESTS)) $(CFLAGS) -MMD -MP -c $< -o $@
build/asan/libasb.a: $(patsubst %.c,build/asan/obj/%.o,$(lib_SRCS))
	$(Q)rm -f $@ && ar rcsD $@ $^
# $(call asan_program,FILE,OBJECTS)
define asan_program
$(1): $(2) build/asan/libasb.a build/deps.stamp
	@mkdir -p $$(@D)
	$$(call say,LD,'$(1:build/asan/%=%) (sanitized)')
	$$(Q)gcc $$(SAN) -o $$@ $$(filter %.o,$$^) build/asan/libasb.a $$(LIBS_ASAN) -lexpat
endef
asan_objs = $(patsubst %.c,build/asan/obj/%.o,$(1))
$(foreach t,$(UNIT),$(eval $(call asan_program,$(t:%.c=build/asan/%),$(call asan_objs,$(t) $(call link,$(t))))))
.PHONY: unit
unit: $(patsubst %.c,build/asan/%,$(UNIT))

# The programs once more, for the suites that tests/run runs against both (NAME@sanitized).
$(foreach p,$(guest_have),$(eval $(call asan_program,build/asan/bin/$(p),$(call asan_objs,$($($(p)_MOD)_SRCS)))))
# asb needs its own libcurl: Debian's speaks TLS by GnuTLS. The shipped objects do on x86_64, where musl's structures have glibc's
# layout (on aarch64 a mutex has not); of the functions that libcurl calls, strerror_r alone differs, and POSIX's has another name.
ifeq ($(NATIVE),x86_64)
asan_host := $(patsubst %,build/asan/bin/%,$(host_have))
endif
build/asan/libcurl.a: build/deps.stamp
	@mkdir -p $(@D)
	$(Q)objcopy --redefine-sym strerror_r=__xpg_strerror_r build/deps/$(NATIVE)/lib/libcurl.a $@
build/asan/bin/asb: $(call asan_objs,$(host_SRCS)) build/asan/libasb.a build/asan/libcurl.a
	@mkdir -p $(@D)
	$(call say,LD,'bin/asb (sanitized)')
	$(Q)gcc $(SAN) -o $@ $(filter %.o,$^) $(filter %.a,$^) build/deps/$(NATIVE)/lib/libbearssl.a \
		$(filter-out -lcurl% -lbearssl,$(LIBS_ASAN)) -lexpat
.PHONY: sanitized
sanitized: $(patsubst %,build/asan/bin/%,$(guest_have)) $(asan_host)

# Fuzz targets are the same with clang's libFuzzer: fuzz/x.c with its LINK line, corpus in fuzz/corpus/x.
FUZZ_TIME ?= 60
CFLAGS_FUZZ := $(STD) $(INCLUDES) -isystem build/deps/glibc/include -isystem /usr/include/cjson -O1 -g -w -DASB_TEST=1 \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
define fuzz_target
build/fuzz/$(1:fuzz/%.c=%): $(1) $(call link,$(1)) $(lib_SRCS) $(wildcard */*.h */*/*.h) | build/version.h $(seccomp_H)
	@mkdir -p $$(@D)
	$$(call say,FUZZ-LD,$$@)
	$$(Q)clang $$(CFLAGS_FUZZ) -o $$@ $$(filter %.c,$$^) $$(LIBS_ASAN) -lexpat
endef
$(foreach t,$(FUZZ),$(eval $(call fuzz_target,$(t))))
fuzz: $(FUZZ:fuzz/%.c=build/fuzz/%)
	$(Q)scripts/run-fuzz $(FUZZ_TIME) $^

# The same without libFuzzer, for tests/guest/fuzz_corpus.py: `make check` replays what is in fuzz/corpus.
$(foreach t,$(FUZZ),$(eval $(call asan_program,$(t:%.c=build/asan/%),\
	$(call asan_objs,$(t) tests/lib/replay.c $(call link,$(t))))))
.PHONY: fuzz-replay
fuzz-replay: $(patsubst %.c,build/asan/%,$(FUZZ))

# bench/module.mk: bench_PROGS := agent ..., bench_agent_SRCS := ..., bench_agent_LIBS := ..., and bench_RUN,
# the command that prints the table.
bench_RUN ?= bench/run
$(foreach p,$(bench_PROGS),$(eval $(call program,$(NATIVE),bench-$(p),$(bench_$(p)_SRCS),$(bench_$(p)_LIBS))))
bench: all share $(patsubst %,build/$(NATIVE)/bin/bench-%,$(bench_PROGS))
	$(Q)$(bench_RUN)

lint: build/version.h
	$(Q)scripts/setup run check
	$(Q)+$(MAKE) $(JOBS) --no-print-directory build/deps.stamp $(seccomp_H)
	$(Q)scripts/lint

format:
	$(Q)clang-format -i $(or $(F),$(shell git ls-files '*.c' '*.h'))

check-fresh:
	$(Q)scripts/check-fresh

# --- install ---------------------------------------------------------------------------------
install: all share
	$(Q)scripts/install build '$(DESTDIR)$(PREFIX)' $(ARCHS)

dist: all share
	$(Q)scripts/dist build $(ARCHS)

clean:
	rm -rf build
distclean: clean
	rm -rf "$${ASB_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/agent-sandbox-os}"

-include $(shell [ -d build ] && find build/asan/obj build/x86_64/obj build/aarch64/obj -name '*.d' 2>/dev/null)
