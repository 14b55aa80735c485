#!/usr/bin/env bash
# Runs every fuzz target, seeded from the vectors, and stops at the first finding.
#   SECONDS_EACH  time for each target; default 60
#   RUNS_EACH     inputs for each target at most; default no limit
#   SEED          of the mutations; default a new one each time. With it a run gives the inputs of the last one again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
python3 fuzz/seed.py
# No sanitizer: the code under test has no unsafe; what is hunted are panics, hangs, memory and wrong verdicts.
export RUSTC_BOOTSTRAP=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for target in $(cargo fuzz list --fuzz-dir fuzz); do
  printf '== fuzz %s: ' "$target"
  if ! cargo fuzz run --fuzz-dir fuzz --sanitizer none "$target" -- \
    -max_total_time="${SECONDS_EACH:-60}" -runs="${RUNS_EACH:--1}" -seed="${SEED:-0}" -timeout=10 -rss_limit_mb=1024 >"$log" 2>&1; then
    printf 'a finding\n'
    tail -n 60 "$log" >&2
    exit 1
  fi
  grep -E '^Done ' "$log"
done
