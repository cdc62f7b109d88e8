# Shared C: no main, no policy. httpd and chan bring their library along only into programs that use them.
lib_SRCS := $(wildcard lib/*.c)
