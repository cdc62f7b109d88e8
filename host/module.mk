# asb: everything a person types, and the supervisor of each local VM.
host_SRCS := $(wildcard host/*.c host/*/*.c)
host_LIBS := -lcurl -lbearssl -lmicrohttpd -lnghttp2 -lcjson -larchive -lzstd -lz -lyaml -lexpat

# The manual pages are the command table's: printed by asb, committed, compared by tests/e2e/cli.py.
.PHONY: man
man: build/bin/asb
	$(Q)build/bin/asb manifest --man >man/asb.1
	$(Q)build/bin/asb manifest | sed -n '/"commands"/,$$s/^      "name": "\(.*\)",$$/\1/p' | while read -r c; do \
		build/bin/asb manifest --man $$c >"man/asb-$$(echo "$$c" | tr ' ' -).1" || exit; \
	done
