# agentd: the agent of a sandbox. One static program that needs nothing else of ours in its image.
agentd_SRCS := $(wildcard agentd/*.c)
agentd_LIBS := -lmicrohttpd_ws -lmicrohttpd -lcjson -larchive -lz
