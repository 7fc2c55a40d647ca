#!/usr/bin/env bash
# The compiler, for cargo: `run.sh` calls it through this.
#
# What reads is instrumented, ours and others'. What it calls on the way (ciphers, hashes) is not,
# nor has it assertions on: a fuzzer learns nothing there, and would spend most of its time in it.
# COMPARES=0 leaves comparisons unwatched.
set -euo pipefail
flags=()
case "${CARGO_CRATE_NAME:-}:${CARGO_PKG_NAME:-}" in
  build_script_*) ;;
  *:bentpipe-fuzz|*:association|*:gateway|*:relay|*:rt|*:satlink|*:units|*:xstp|*:httparse|\
  *:netlink-packet-core|*:netlink-packet-route|*:toml|*:toml_*|*:serde_spanned|*:winnow)
    flags+=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4)
    flags+=(-Cllvm-args=-sanitizer-coverage-inline-8bit-counters)
    flags+=(-Cllvm-args=-sanitizer-coverage-pc-table)
    [ "${COMPARES:-1}" = 0 ] || flags+=(-Cllvm-args=-sanitizer-coverage-trace-compares)
    flags+=(-Cdebug-assertions -Coverflow-checks) ;;
esac
exec "$@" ${flags[@]+"${flags[@]}"}
