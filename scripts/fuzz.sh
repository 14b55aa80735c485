#!/usr/bin/env bash
# Runs every fuzz target for SECONDS_EACH seconds (default 60), seeded from the vectors. Stops at the first finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
python3 fuzz/seed.py
# No sanitizer: the code under test has no unsafe; what is hunted are panics, hangs, memory and wrong verdicts.
export RUSTC_BOOTSTRAP=1
for target in $(cargo fuzz list --fuzz-dir fuzz); do
  printf '== fuzz %s\n' "$target"
  cargo fuzz run --fuzz-dir fuzz --sanitizer none "$target" -- \
    -max_total_time="${SECONDS_EACH:-60}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 2>&1 |
    grep -E 'DONE|stat::|panicked|ERROR|SUMMARY|artifact' || true
  [ "${PIPESTATUS[0]}" -eq 0 ]
done
