#!/usr/bin/env bash
# Memory of a terminal gateway and a hub with CLIENTS clients, each with eight connections that have
# carried 1 MB down and stay open: resident size, as the kernel counts it, with its peak.
#
#   packaging/test-memory.sh PROGRAM [CLIENTS]       on this machine's loopback interface
set -euo pipefail
program=$(realpath "${1:?PROGRAM}") clients=${2:-50}
examples=$(realpath "$(dirname "$0")/debian")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

hub=$("$program" key generate hub-key)
terminal=$("$program" key generate terminal-key)
sed "s|/etc/bentpipe/key|$work/hub-key|; s|public_key = \"[^\"]*\"|public_key = \"$terminal\"|; s|7000|17000|" \
  "$examples/hub.toml" >hub.toml
sed "s|/etc/bentpipe/key|$work/terminal-key|; s|public_key = \"[^\"]*\"|public_key = \"$hub\"|; s|7000|17000|
     s|1080|11080|" "$examples/terminal.toml" >terminal.toml
"$program" gateway --config hub.toml >hub.log 2>&1 &
hub=$!
"$program" gateway --config terminal.toml >terminal.log 2>&1 &
terminal=$!
sleep 3

show() {
  for name in terminal hub; do
    awk -v name="$name" -v when="$1" '/VmRSS|VmHWM/ { line = line " " $1 " " $2 / 1024 " MiB" }
      END { print when ", " name ":" line }' "/proc/${!name}/status"
  done
}
show "without clients"
cat >load.py <<'PYTHON'
import asyncio, socket, sys

BODY = bytes(1_000_000)

async def serve(reader, writer):
    await reader.readexactly(1)
    writer.write(BODY)
    await writer.drain()
    await reader.read()

async def connect():
    reader, writer = await asyncio.open_connection("127.0.0.1", 11080)
    writer.write(b"\5\1\0\5\1\0\1\x7f\0\0\1" + (18081).to_bytes(2, "big") + b"x")
    await reader.readexactly(12 + len(BODY))
    return writer

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 18081, backlog=500)
    kept = await asyncio.gather(*(connect() for _ in range(8 * int(sys.argv[1]))))
    print(len(kept), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
PYTHON
python3 load.py "$clients" >carried &
for _ in $(seq 120); do
  [ ! -s carried ] || break
  sleep 1
done
show "$(cat carried) connections open"
sleep 10
show "and 10 s later"
