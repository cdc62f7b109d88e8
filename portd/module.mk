# asb-portd: carries the host's connections to ports of the guest over the virtio channel.
portd_SRCS := portd/main.c portd/portd.c portd/port.c
portd_LIBS := -lnghttp2
