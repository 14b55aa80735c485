#!/usr/bin/env bash
# Runs every check and test of this tree. Needs Debian 12 with Rust, Python 3 and root (or the Debian
# packages below already installed); installs everything else it needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() { printf '\n== %s\n' "$*"; }

step "tools"
missing=()
for tool in curl:curl man:man-db groff:groff cc:gcc python3:python3 zsh:zsh fish:fish strace:strace systemd-analyze:systemd; do
  command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
done
# A browser for the receipt's page and a font to draw it with; a linter for shell. Node.js comes from Debian only where there
# is none: beside another one its npm cannot be installed.
for tool in chromium:chromium shellcheck:shellcheck node:nodejs npm:npm; do
  command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
done
[ -d /usr/share/fonts/truetype/dejavu ] || missing+=(fonts-dejavu-core)
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny@0.20.2
venv=target/venv
if ! "$venv/bin/python" -c '' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null || {
    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    python3 -m venv "$venv"
  }
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/interop/requirements.txt
mkdir -p target/npm
cp tests/npm/package.json target/npm/
npm install --silent --no-package-lock --no-fund --no-audit --prefix target/npm

step "format, lints, licences"
cargo fmt --all --check
cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
cargo deny --log-level error check bans licenses sources
scripts/check-tree.sh

step "evidence crates build and test on their own"
scripts/check-evidence-crates.sh

step "unit, property, vector and mutation tests"
cargo test --locked --workspace

step "every flipped bit of a bundle, every byte of an append"
# Too slow without optimisation: the debug run above samples them.
cargo test --locked --release -p plimsoll-attestation

step "the verifier alone"
cargo test --locked -p plimsoll-attest --no-default-features

step "an engine for the container tests"
engine=$(scripts/engine.sh prepare)
eval "$engine"
trap 'scripts/engine.sh stop' EXIT

step "the official Python client, gRPC, curl, the command line, containers"
cargo build --locked -p plimsoll-attest
"$venv/bin/python" -m pytest -q tests

step "benches still run"
cargo bench --locked -p plimsoll-bench -- --quick
PLIMSOLL_ATTEST=$PWD/target/debug/plimsoll-attest "$venv/bin/python" benches/containers.py --quick

step "fuzz targets, each for a few seconds"
# The same inputs every time: a verdict on this tree must not depend on luck. A search for new ones is scripts/fuzz.sh alone.
SEED=22 RUNS_EACH=${RUNS_EACH:-20000} SECONDS_EACH=${SECONDS_EACH:-20} scripts/fuzz.sh

printf '\nall checks and tests passed\n'
