# PID 1 of a VM, entry point of a container: lib and the C library, nothing else.
init_SRCS := $(wildcard init/*.c)
init_LIBS :=
