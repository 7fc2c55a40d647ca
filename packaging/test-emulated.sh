#!/usr/bin/env bash
# Carries a file between a terminal gateway of another architecture, emulated, and a hub of this one,
# on this machine's loopback interface, in both directions.
#
#   packaging/test-emulated.sh EMULATOR PROGRAM NATIVE
#   packaging/test-emulated.sh qemu-aarch64-static target/packages/stage/{arm64,amd64}/usr/bin/bentpipe
#
# apt install qemu-user-static curl python3
set -euo pipefail
emulator=${1:?EMULATOR} program=$(realpath "${2:?PROGRAM}") native=$(realpath "${3:?NATIVE}")
examples=$(realpath "$(dirname "$0")/debian")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

hub=$("$native" key generate hub-key)
terminal=$("$emulator" "$program" key generate terminal-key)
sed "s|/etc/bentpipe/key|$work/hub-key|; s|public_key = \"[^\"]*\"|public_key = \"$terminal\"|; s|7000|17000|" \
  "$examples/hub.toml" >hub.toml
sed "s|/etc/bentpipe/key|$work/terminal-key|; s|public_key = \"[^\"]*\"|public_key = \"$hub\"|; s|7000|17000|
     s|1080|11080|" "$examples/terminal.toml" >terminal.toml
cat >server.py <<'PYTHON'
import hashlib, http.server

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(hashlib.sha256(body).hexdigest().encode())

http.server.ThreadingHTTPServer(("127.0.0.1", 18080), Handler).serve_forever()
PYTHON
head -c 20000000 /dev/urandom >file
python3 server.py 2>server.log &
"$native" gateway --config hub.toml >hub.log 2>&1 &
"$emulator" "$program" gateway --config terminal.toml >terminal.log 2>&1 &
terminal=$!

url=http://127.0.0.1:18080/file
through=(curl -sS --fail --max-time 120 --retry 10 --retry-all-errors --retry-delay 1
  --socks5-hostname 127.0.0.1:11080)
sum=$(sha256sum <file | cut -d' ' -f1)
down=$("${through[@]}" "$url" | sha256sum | cut -d' ' -f1)
up=$("${through[@]}" -T file "$url")
echo "file $sum"
echo "down $down"
echo "up   $up"
[ "$down" = "$sum" ] && [ "$up" = "$sum" ] && kill -0 "$terminal" && echo "passed"
