# Benchmark programs; `make bench` builds them and runs bench/run, which prints the table.
bench_PROGS := guest load peer cli vm snapshot peak true floor-init
bench_guest_SRCS := bench/guest.c bench/agent.c bench/stats.c
bench_guest_LIBS := -lcurl -lbearssl
bench_load_SRCS := bench/load.c bench/agent.c bench/stats.c
bench_load_LIBS := -lcurl -lbearssl
bench_peer_SRCS := bench/peer.c bench/agent.c bench/stats.c
bench_peer_LIBS := -lcurl -lbearssl
bench_cli_SRCS := bench/cli.c bench/stats.c
bench_vm_SRCS := bench/vm.c bench/until.c bench/stats.c
bench_snapshot_SRCS := bench/snapshot.c bench/bare.c bench/until.c bench/stats.c
bench_snapshot_LIBS := -lnghttp2 -lcjson
bench_peak_SRCS := bench/peak.c
bench_true_SRCS := bench/true.c
bench_floor-init_SRCS := bench/floor_init.c
