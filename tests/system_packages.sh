#!/bin/sh
# Installs the Debian packages that some tests talk to. Only as root on a Debian; announced first.
set -eu
wanted=""
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || wanted="$wanted $2"; }
need chromium chromium
need ipmi_sim openipmi
need ipmitool ipmitool
need prometheus prometheus
for daemon in slurmctld slurmd slurmdbd slurmrestd; do need "$daemon" "$daemon"; done
need sinfo slurm-client
need munged munge
need faketime faketime
need mmdebstrap mmdebstrap
need mariadbd mariadb-server
for plugin in basic-plugins jwt-plugin mysql-plugin; do
  [ -e "/usr/share/doc/slurm-wlm-$plugin" ] || wanted="$wanted slurm-wlm-$plugin"
done
need gcc gcc
[ -e /usr/include/stdio.h ] || wanted="$wanted libc6-dev"
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "Not installed:$wanted. Tests that need them are skipped (as root: apt-get install$wanted)."
  exit 0
fi
echo "Installing the Debian packages that tests talk to:$wanted"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# policy-rc.d keeps the packages from starting services of their own
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"; chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
# shellcheck disable=SC2086 - a list of words
apt-get install -y -qq --no-install-recommends $wanted >/dev/null
