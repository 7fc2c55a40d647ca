#!/usr/bin/env bash
# Runs one fuzz target, guided by coverage, for a number of executions, and says what came of it.
#
#   fuzz/run.sh TARGET [RUNS] [FLAG of libFuzzer...]
#   fuzz/run.sh list
#
# RUNS is 50000000 unless told. Needs a nightly compiler, and not cargo-fuzz: the flags below are
# what instruments. SANITIZER=address adds AddressSanitizer, at a third of the speed; the decoders
# forbid unsafe code, so what a fuzzer can find in them are panics, overflows, and time or memory
# without bound, for which assertions and overflow checks are on. The corpus is kept in
# fuzz/corpus/TARGET, inputs that break something in fuzz/artifacts/TARGET.
set -euo pipefail
cd "$(dirname "$0")"

if [ "${1:-}" = list ] || [ $# -eq 0 ]; then
  sed -n 's/^name = "\(.*\)"/\1/p' Cargo.toml | grep -v '^bentpipe-fuzz$'
  exit 0
fi
target=$1
runs=${2:-50000000}
shift; [ $# -eq 0 ] || shift

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
# What is compared tells a fuzzer which words a decoder waits for. A script's steps have no such
# words, and watching its models compare takes half of the time.
case $target in
  association|association_noise|gateway_control|gateway_metrics|relay_datagrams|relay_hub|\
  relay_path_mtu|relay_pep|relay_streams|xstp_receiver|\
  xstp_sender|xstp_sessions_*) export COMPARES=0 CARGO_TARGET_DIR=target/scripts ;;
  *) export COMPARES=1 CARGO_TARGET_DIR=target ;;
esac

flags="--cfg fuzzing"
if [ -n "${SANITIZER:-}" ]; then flags+=" -Zsanitizer=$SANITIZER"; fi
RUSTFLAGS="$flags" RUSTC_WRAPPER="$PWD/instrument.sh" \
  cargo +nightly build -q --release --target "$host" --bin "$target"
[ -z "${BUILD_ONLY:-}" ] || exit 0

mkdir -p "corpus/$target" "artifacts/$target"
words=()
[ ! -f "dictionaries/$target.dict" ] || words=(-dict="dictionaries/$target.dict")
# The longest input: what a decoder takes at most, or what its script needs. (FLAGs come last and
# win.)
case $target in
  xstp_receiver|xstp_sender|relay_streams) length=1200 ;;
  xstp_sessions_*) length=600 ;;
  association|association_noise|relay_datagrams|relay_hub|relay_path_mtu) length=400 ;;
  gateway_control|gateway_metrics) length=400 ;;
  gateway_config_text|satlink_words) length=400 ;;
  association_datagram|gateway_packet|gateway_kernel_log) length=192 ;;
  *) length=128 ;;
esac
# What small pieces leave behind is kept for the next execution; large tables of zeros come fresh
# from the kernel, which is quicker than to clear them.
export MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=600000000
exec "$CARGO_TARGET_DIR/$host/release/$target" "corpus/$target" -artifact_prefix="artifacts/$target/" \
  -runs="$runs" -max_len="$length" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
  -verbosity=1 ${words[@]+"${words[@]}"} "$@"
