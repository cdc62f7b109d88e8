# agentd: the agent of a sandbox. One static program that needs nothing else of ours in its image.
agentd_SRCS := $(wildcard agentd/*.c)
agentd_LIBS := -lmicrohttpd_ws -lmicrohttpd -lcjson -larchive -lbearssl

# The seccomp filters, compiled from agentd/seccomp/rules.h for both architectures by a program for the machine
# that builds. `build/gen/seccomp-gen doc` prints the lists of docs/security-model.md.
build/gen/seccomp-gen: agentd/seccomp/gen.c agentd/seccomp/rules.h lib/compiler.h config.mk build/deps.stamp
	@mkdir -p $(@D)
	$(call say,GEN-CC,$@)
	$(Q)build/deps/bin/$(NATIVE)-musl-cc $(CFLAGS_MUSL) -isystem build/deps/$(NATIVE)/include $(CFLAGS) $(LDFLAGS_MUSL) \
		-o $@ $< -Lbuild/deps/$(NATIVE)/lib -lseccomp
seccomp_H := $(foreach a,x86_64 aarch64,build/gen/seccomp_$(a).h)
$(seccomp_H): build/gen/seccomp_%.h: build/gen/seccomp-gen
	$(call say,GEN,$@)
	$(Q)$< $* >$@
# Whoever includes confine_int.h.
seccomp_USERS := $(patsubst %.c,%.o,$(shell grep -ls 'confine_int\.h' agentd/*.c tests/unit/*.c))
$(foreach v,x86_64 aarch64 asan,$(addprefix build/$(v)/obj/,$(seccomp_USERS))): $(seccomp_H)
