#!/usr/bin/env bash
# Builds the packages of HEAD in two clones in different folders, and compares every octet.
#
#   packaging/test-reproducible.sh [amd64 | arm64 | armv7]...
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for copy in one another/folder; do
  git clone -q "$repository" "$work/$copy"
  (cd "$work/$copy" && cargo run -q --locked -p xtask -- packages "$@" --out "$work/out/${copy%%/*}")
done
diff "$work/out/one/SHA256SUMS" "$work/out/another/SHA256SUMS"
echo "the same octets: $(wc -l <"$work/out/one/SHA256SUMS") packages"
