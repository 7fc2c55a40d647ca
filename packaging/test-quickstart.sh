#!/usr/bin/env bash
# Follows docs/guide/quickstart.md to the letter: its commands in fresh Debian roots that systemd boots, a hub and a
# site, and on a client, in network namespaces. Prints the seconds that each section took.
#
#   packaging/test-quickstart.sh NEW.deb      as root; apt install debootstrap systemd-container python3 openssl curl
#
#   client ── lan0 site ══ hub ── internet: the name server 9.9.9.9 and https://example.com/
#
# ROOT=DIR uses (a copy of) a root that is there already. What a person would type differently: TOKEN is the one that
# `site add` prints, hub.example stands in /etc/hosts of the site, and curl trusts the server's own certificate.
set -euo pipefail

deb=$(realpath "${1:?NEW.deb}")
guide=$(realpath "$(dirname "$0")/../docs/guide/quickstart.md")
work=$(mktemp -d)
id=$$
spaces=("c$id" "s$id" "h$id" "i$id")
started=()
finish() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done
  rm -rf "$work" "/etc/netns/c$id"
  rmdir /etc/netns 2>/dev/null || true
}
trap finish EXIT

# The commands of a section of the guide.
commands() {
  awk -v title="## $1" '/^## /{found=($0==title)} /^```/{inside=!inside&&found; next} found&&inside' "$guide"
}

# A wire between two namespaces: NAMESPACE INTERFACE ADDRESS, twice.
wire() {
  ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
  ip -n "$1" address add "$3" dev "$2" && ip -n "$1" link set "$2" up
  ip -n "$4" address add "$6" dev "$5" && ip -n "$4" link set "$5" up
}
for space in "${spaces[@]}"; do ip netns add "$space" && ip -n "$space" link set lo up; done
wire "c$id" eth0 10.1.0.7/24 "s$id" lan0 10.1.0.1/24
wire "s$id" sat 192.0.2.2/24 "h$id" sat 192.0.2.1/24
wire "h$id" wan 198.51.100.1/24 "i$id" wan 198.51.100.2/24
for address in 9.9.9.9 93.184.215.14; do ip -n "i$id" address add "$address/32" dev lo; done
ip -n "c$id" route add default via 10.1.0.1 # the guide replaces it
ip -n "s$id" route add default via 192.0.2.1
ip -n "h$id" route add default via 198.51.100.2

cd "$work"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=example.com \
  -addext subjectAltName=DNS:example.com 2>/dev/null
cat >internet.py <<'PYTHON'
import http.server, socket, ssl, struct, threading

def names():
    listener = socket.create_server(("9.9.9.9", 53))
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],)).start()

def answer(stream):
    while len(head := stream.recv(2, socket.MSG_WAITALL)) == 2:
        query = stream.recv(struct.unpack("!H", head)[0], socket.MSG_WAITALL)
        end = query.index(0, 12) + 5
        is_address = query[end - 4:end - 2] == b"\0\1"
        reply = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_address else b"\0\0") + bytes(4) + query[12:end]
        if is_address:
            reply += b"\xc0\x0c\0\1\0\1" + struct.pack("!IH", 300, 4) + socket.inet_aton("93.184.215.14")
        stream.sendall(struct.pack("!H", len(reply)) + reply)

threading.Thread(target=names, daemon=True).start()
server = http.server.ThreadingHTTPServer(("93.184.215.14", 443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("certificate.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PYTHON
ip netns exec "i$id" python3 internet.py 2>internet.log &
started+=($!)

if [ -z "${ROOT:-}" ]; then
  ROOT=$work/fresh
  debootstrap --variant=minbase --include=adduser,systemd,systemd-sysv,procps,iproute2 \
    "${SUITE:-bookworm}" "$ROOT" >debootstrap.log
fi

# Boots a copy of the root as NAME in NAMESPACE, where /root/steps.sh is run, and waits for its end.
boot() {
  local name=$1 root=$work/$1
  cp "$deb" "$root/root/"
  cat >"$root/etc/systemd/system/steps.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
WorkingDirectory=/root
ExecStart=/bin/sh /root/run.sh
[Install]
WantedBy=graphical.target
UNIT
  cat >"$root/root/run.sh" <<'RUN'
start=$(date +%s.%N)
sh -eu /root/steps.sh >/root/steps.log 2>&1 && touch /root/passed
echo "$start $(date +%s.%N)" >/root/times
touch /root/over
RUN
  mkdir -p "$root/etc/systemd/system/graphical.target.wants"
  ln -s ../steps.service "$root/etc/systemd/system/graphical.target.wants/steps.service"
  # The gateway forwards: its machine sets net.ipv4.ip_forward.
  SYSTEMD_NSPAWN_API_VFS_WRITABLE=network systemd-nspawn -q -D "$root" --network-namespace-path="/run/netns/$2" --register=no --keep-unit --capability=CAP_NET_ADMIN \
    --machine="$name-$id" --boot >"$work/$name.log" 2>&1 &
  started+=($!)
  for _ in $(seq 300); do
    [ ! -e "$root/root/over" ] || break
    sleep 0.2
  done
  echo "== $name"
  cat "$root/root/steps.log" || tail -n 30 "$work/$name.log"
  [ -e "$root/root/passed" ] || { echo "$name: failed"; exit 1; }
  awk -v name="$name" '{ printf "%s: %.1f s\n", name, $2 - $1 }' "$root/root/times"
}

cp -a "$ROOT" hub
commands "The hub" >hub/root/steps.sh
boot hub "h$id"

token=$(grep -o 'bp1\.[^ ]*' hub/root/steps.log | head -n 1)
cp -a "$ROOT" site
echo "192.0.2.1 hub.example" >>site/etc/hosts
commands "The site" | sed "s|TOKEN|$token|" >site/root/steps.sh
boot site "s$id"

echo "== client"
# As the guide says: the site is connected after a few seconds.
sleep 5
mkdir -p "/etc/netns/c$id"
touch "/etc/netns/c$id/resolv.conf"
commands "A client" >client.sh
begin=$(date +%s.%N)
CURL_CA_BUNDLE=$work/certificate.pem ip netns exec "c$id" sh -eu client.sh 2>&1 | tee client.log || true
awk -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN { printf "client: %.1f s\n", end - begin }'
grep -q "200 OK" client.log || {
  echo "client: failed"
  CURL_CA_BUNDLE=$work/certificate.pem ip netns exec "c$id" curl -svI -m 10 https://example.com/ || true
  tail -n 5 internet.log
  exit 1
}
echo "passed"
