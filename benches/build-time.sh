#!/usr/bin/env bash
# How long the first release build takes with sources already fetched: the verifier alone and the whole.
# Builds from nothing in a target directory of its own and removes it: minutes, and 1.5 GB of disk.
# With a folder as argument, cargo's report of what each crate took is copied there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reports=${1:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo fetch --quiet --locked

build() {
  local name=$1
  shift
  # CPU seconds say what a quiet machine would take when this one is not.
  TIMEFORMAT="$name: %0R s, of CPU %0U s and in the kernel %0S s"
  time CARGO_TARGET_DIR="$folder/$name" \
    cargo build --quiet --timings --locked --release -p plimsoll-attest "$@"
  printf '  binary %d bytes\n' "$(stat -c %s "$folder/$name/release/plimsoll-attest")"
  if [ -n "$reports" ]; then cp "$folder/$name/cargo-timings/cargo-timing.html" "$reports/$name.html"; fi
}

printf '%d cores, %s, load %s\n' "$(nproc)" "$(rustc --version)" "$(cut -d' ' -f1-3 /proc/loadavg)"
build verifier --no-default-features
build whole
printf 'load afterwards %s\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
