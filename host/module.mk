# asb: everything a person types, and the supervisor of each local VM.
host_SRCS := $(wildcard host/*.c host/*/*.c)
host_LIBS := -lcurl -lbearssl -lnghttp2 -lcjson
