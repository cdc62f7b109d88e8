# The lifecycle hook server.
hooks_SRCS := $(wildcard hooks/*.c)
hooks_LIBS := -lmicrohttpd -lcjson -lbearssl
