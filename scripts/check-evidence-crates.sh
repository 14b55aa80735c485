#!/usr/bin/env bash
# The evidence crates depend on no network, runtime or daemon crate, and build and test alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
crates=(plimsoll-wire plimsoll-record plimsoll-attestation plimsoll-bom plimsoll-receipt)
forbidden='^(tokio|hyper|h2|http|connectrpc|tower|wasmtime|rustls|tokio-rustls|plimsoll-(daemon|client|harness|quickjs))$'
for crate in "${crates[@]}"; do
  names=$(cargo tree --locked -p "$crate" -e normal --prefix none --format '{p}' | cut -d' ' -f1 | sort -u)
  if found=$(grep -E "$forbidden" <<<"$names"); then
    printf '%s depends on: %s\n' "$crate" "$found" >&2
    exit 1
  fi
done
cargo test --locked "${crates[@]/#/--package=}"
