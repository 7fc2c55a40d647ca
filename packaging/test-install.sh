#!/usr/bin/env bash
# Installs a Debian package in a fresh Debian root that systemd boots, starts both gateways by their
# units from the example configurations, carries a file, upgrades, and removes everything.
#
#   packaging/test-install.sh NEW.deb [OLD.deb]      as root; apt install debootstrap systemd-container
#
# With OLD.deb the upgrade is from that package, otherwise NEW.deb is installed again. ROOT=DIR uses
# (and keeps) a root that is there already, with the packages below and without bentpipe.
set -euo pipefail

new=$(realpath "${1:?NEW.deb}")
old=$(realpath "${2:-$1}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${ROOT:-}" ]; then
  cp -a "$ROOT" "$work/root"
else
  debootstrap --variant=minbase --include=adduser,systemd,systemd-sysv,curl,busybox \
    "${SUITE:-bookworm}" "$work/root" >"$work/debootstrap.log"
fi
root=$work/root
cp "$new" "$root/new.deb"
cp "$old" "$root/old.deb"

cat >"$root/steps.sh" <<'STEPS'
set -eu
step() { echo "== $*"; }
expect() { [ "$2" = "$3" ] || { echo "$1: found '$2', expected '$3'"; exit 1; }; }
fetch() {
  curl -sS --fail --max-time 60 --socks5-hostname 127.0.0.1:1080 http://127.0.0.1:8080/file | sha256sum
}
pids() { for name in hub terminal; do systemctl show -P MainPID "bentpipe@$name"; done | tr '\n' ' '; }

step install
dpkg -i /old.deb
expect "/etc/bentpipe" "$(stat -c '%U:%G %a' /etc/bentpipe)" "root:bentpipe 750"
expect "running services" "$(systemctl list-units --no-legend 'bentpipe@*' | wc -l)" 0

step start
cd /etc/bentpipe
hub=$(bentpipe key generate hub-key)
terminal=$(bentpipe key generate terminal-key)
chgrp bentpipe hub-key terminal-key
chmod 640 hub-key terminal-key
sed -i "s|/key\"|/hub-key\"|; s|public_key = \"[^\"]*\"|public_key = \"$terminal\"|" hub.toml
sed -i "s|/key\"|/terminal-key\"|; s|public_key = \"[^\"]*\"|public_key = \"$hub\"|" terminal.toml
for name in hub terminal; do
  setpriv --reuid bentpipe --regid bentpipe --clear-groups bentpipe gateway --config $name.toml --check
done
systemctl enable --now bentpipe@hub bentpipe@terminal
mkdir -p /srv/files
head -c 20000000 /dev/urandom >/srv/files/file
busybox httpd -p 127.0.0.1:8080 -h /srv/files
sum=$(sha256sum </srv/files/file)
expect "checksum" "$(fetch)" "$sum"
before=$(pids)
echo "processes $before"

step upgrade
# It lasts about 10 s.
curl -sS --fail --max-time 120 --limit-rate 2M --socks5-hostname 127.0.0.1:1080 \
  http://127.0.0.1:8080/file >/long &
long=$!
sleep 2
dpkg -i /new.deb
kill -0 $long 2>/dev/null || { echo "the download was over before the upgrade"; exit 1; }
expect "hub" "$(systemctl is-active bentpipe@hub)" active
expect "terminal" "$(systemctl is-active bentpipe@terminal)" active
[ "$(pids)" != "$before" ] || { echo "the processes were not replaced"; exit 1; }
grep -q "$terminal" hub.toml || { echo "the upgrade replaced hub.toml"; exit 1; }
expect "checksum after the upgrade" "$(fetch)" "$sum"
wait $long || { echo "the upgrade lost a connection"; exit 1; }
expect "checksum of the download during the upgrade" "$(sha256sum </long)" "$sum"

step remove
dpkg -r bentpipe
expect "processes" "$(pgrep -c -x bentpipe || true)" 0
[ -e hub.toml ] && [ -e hub-key ] || { echo "removal deleted configurations"; exit 1; }

step purge
dpkg -P bentpipe
[ ! -e hub.toml ] && [ ! -e /var/lib/bentpipe ] || { echo "purge left files"; exit 1; }
[ -e hub-key ] || { echo "purge deleted a key"; exit 1; }
[ -z "$(find /etc/systemd/system -name 'bentpipe*')" ] || { echo "purge left units"; exit 1; }
step done
STEPS

cat >"$root/etc/systemd/system/steps.service" <<'UNIT'
[Unit]
After=basic.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'sh /steps.sh >/steps.log 2>&1 && touch /steps.passed || journalctl --no-pager -n 60 -u "bentpipe@*" >>/steps.log 2>&1'
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../steps.service "$root/etc/systemd/system/multi-user.target.wants/steps.service"

timeout "${LIMIT:-600}" systemd-nspawn -q -D "$root" --private-network --register=no --keep-unit \
  --machine="bentpipe-$$" --boot >"$work/boot.log" 2>&1 || true
cat "$root/steps.log" || tail -n 30 "$work/boot.log"
[ -e "$root/steps.passed" ] || { echo "failed"; exit 1; }
echo "passed"
