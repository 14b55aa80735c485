#!/usr/bin/env bash
# A Docker Engine for the tests.
#   eval "$(scripts/engine.sh prepare)"   an engine with both test images and runtimes; prints its settings
#   scripts/engine.sh stop                ends what prepare started; nothing else
# An engine that answers and knows runsc is used as it is. Otherwise one of our own is started, on a private
# socket, with its own data and state below one temporary directory. Needs root for that, and Debian 12.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${PLIMSOLL_IMAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll-attest/images}
images=(sandbox sandbox-python)

say() { printf '%s\n' "$*" >&2; }
fail() { say "engine: $*"; exit 1; }

# One call of the Engine API: socket, method, path, further options of curl.
api() {
  local socket=$1 method=$2 path=$3
  shift 3
  curl -fsS --unix-socket "$socket" -X "$method" "$@" "http://engine/v1.41$path"
}

install_missing() {
  local missing=() tool
  for tool in dockerd:docker.io runc:runc runsc:runsc mmdebstrap:mmdebstrap curl:curl cc:gcc node:nodejs; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "engine: installing ${missing[*]}"
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# The socket of an engine that answers and has runsc with what these tests need, or nothing.
reachable() {
  local socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
  socket=${socket#unix://}
  case $socket in /*) ;; *) return 1 ;; esac
  [ -S "$socket" ] || return 1
  local info
  info=$(api "$socket" GET /info -m 10 2>/dev/null) || return 1
  case $info in *'"runsc":'*) printf '%s' "$socket" ;; *) return 1 ;; esac
}

start_own() {
  [ "$(id -u)" = 0 ] || fail "no engine answers and starting one needs root"
  local dir=$1 runsc
  runsc=$(command -v runsc)
  # An old gVisor on a recent kernel runs with ptrace and without its network stack; --host-uds lets a guest
  # connect to the socket a grant mounts. runsc-closed is the mistake of leaving that out.
  cat >"$dir/daemon.json" <<JSON
{
  "runtimes": {
    "runsc": {"path": "$runsc", "runtimeArgs": ["--network=none", "--platform=ptrace", "--host-uds=open"]},
    "runsc-closed": {"path": "$runsc", "runtimeArgs": ["--network=none", "--platform=ptrace"]}
  }
}
JSON
  PATH=$PATH:/usr/sbin:/sbin setsid dockerd --config-file "$dir/daemon.json" --host "unix://$dir/engine.sock" \
    --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/dockerd.pid" \
    --bridge none --iptables=false --ip-forward=false --ip-masq=false --userland-proxy=false \
    </dev/null >"$dir/dockerd.log" 2>&1 &
  local pid=$! tries
  for ((tries = 0; tries < 300; tries++)); do
    if api "$dir/engine.sock" GET /_ping -o /dev/null -m 5 2>/dev/null; then return 0; fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  tail -n 20 "$dir/dockerd.log" >&2
  stop_own "$dir"
  fail "dockerd did not start"
}

# Imports an image unless the engine has it from the same parts.
provide() {
  local socket=$1 image=$2 made parts had
  parts=$(cat docs/images/build.sh src/runner/runner.mjs src/runner/guard.c | sha256sum | cut -c1-32)
  had=$(api "$socket" GET "/images/plimsoll/$image:latest/json" 2>/dev/null) || had=""
  case $had in *"$parts"*) return 0 ;; esac
  made=$(mktemp -d "$cache/import.XXXXXX")
  # shellcheck disable=SC2064  # this directory, now
  trap "rm -rf '$made'" EXIT
  docs/images/build.sh "$image" "$made/root.tar" "$cache"
  api "$socket" POST "/images/create?fromSrc=-&repo=plimsoll/$image&tag=latest&changes=LABEL%20io.plimsoll.parts%3D$parts" \
    -T "$made/root.tar" -H 'Content-Type: application/x-tar' -o "$made/answer"
  if grep -q '"error"' "$made/answer"; then cat "$made/answer" >&2; fail "$image was not imported"; fi
  say "engine: plimsoll/$image imported"
}

prepare() {
  local socket dir=""
  install_missing
  mkdir -p "$cache"
  if ! socket=$(reachable); then
    dir=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll-engine-XXXXXX")
    start_own "$dir"
    socket=$dir/engine.sock
    say "engine: dockerd on $socket"
  fi
  local image
  for image in "${images[@]}"; do
    if ! (provide "$socket" "$image"); then
      [ -z "$dir" ] || stop_own "$dir"
      fail "no image $image"
    fi
  done
  printf 'export DOCKER_HOST=unix://%s\n' "$socket"
  printf 'export PLIMSOLL_ENGINE_DIR=%s\n' "$dir"
}

# The process whose id is in a file, if it is one of this engine's.
own_process() {
  local dir=$1 file=$2 pid
  pid=$(cat "$file" 2>/dev/null) || return 1
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$dir" && printf '%s' "$pid"
}

end_process() {
  local pid=$1 tries
  kill "$pid" 2>/dev/null || return 0
  for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null || true
}

stop_own() {
  local dir=$1 pid file id
  for id in $(api "$dir/engine.sock" GET '/containers/json?all=1' -m 10 2>/dev/null | grep -o '"Id":"[0-9a-f]*"' | cut -d'"' -f4); do
    api "$dir/engine.sock" DELETE "/containers/$id?force=1&v=1" -o /dev/null -m 20 2>/dev/null || true
  done
  for file in "$dir/dockerd.pid" "$dir/exec/containerd/containerd.pid"; do
    if pid=$(own_process "$dir" "$file"); then end_process "$pid"; fi
  done
  # What an engine that was killed left behind: its shims name its directory.
  for pid in $(pgrep -f -- "-address $dir/exec/" || true); do kill -9 "$pid" 2>/dev/null || true; done
  awk -v d="$dir/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r mount; do
    umount -l "$mount" 2>/dev/null || true
  done
  rm -rf --one-file-system "$dir"
}

case ${1:-} in
  prepare) prepare ;;
  stop)
    dir=${2:-${PLIMSOLL_ENGINE_DIR:-}}
    [ -n "$dir" ] || exit 0
    case $dir in */plimsoll-engine-??????) stop_own "$dir" ;; *) fail "$dir is no directory of this script" ;; esac
    ;;
  *) say "usage: scripts/engine.sh prepare | stop [DIRECTORY]"; exit 2 ;;
esac
