#!/usr/bin/env bash
# Runs a pull request's tests in a sandbox and writes a receipt, on any CI system.
#
# Facts come from the environment, never from the command line, so that a stranger's text meets no shell:
#   RECEIPT_REPOSITORY       https URL of the repository
#   RECEIPT_PR               number of the pull or merge request
#   RECEIPT_HEAD             full commit ID of its head
#   RECEIPT_BASE             full commit ID of the base branch
#   RECEIPT_BASE_REF         name of the base branch
#   RECEIPT_HEAD_REPOSITORY  https URL of the repository the head comes from (default: RECEIPT_REPOSITORY)
# On GitHub Actions none of them is needed: the event file has them.
#
# The sandbox is a daemon that already runs, or one that this script starts with docker and gVisor:
#   PLIMSOLL_DAEMON_URL      base URL of a daemon; PLIMSOLL_CALLER_TOKEN is its token
#   GUEST_IMAGE              otherwise: the guest image, name@sha256:…
#   DOCKER_RUNTIME           its runtime (default: runsc)
#
# Optional: RECEIPT_SOFTWARE (oci-manifest:…, the only image manifest accepted), RECEIPT_FLOOR (default: kernel),
# RECEIPT_OUT (default: plimsoll-receipt), RECEIPT_REPO (the clone, default: .), PLIMSOLL_ATTEST (the binary).
#
# Exit: 0 passed; 5 the tests did not pass, with a receipt; 4 nothing ran; 3 it may have run and there is no receipt;
# 1 refused; 2 a setting is missing.
set -euo pipefail

attest=${PLIMSOLL_ATTEST:-plimsoll-attest}
arguments=(--repo "${RECEIPT_REPO:-.}" --floor "${RECEIPT_FLOOR:-kernel}" --out "${RECEIPT_OUT:-plimsoll-receipt}")

need() {
  if [ -z "${!1:-}" ]; then
    printf '%s is not set: %s\n' "$1" "$2" >&2
    exit 2
  fi
}

if [ -z "${GITHUB_EVENT_PATH:-}" ]; then
  need RECEIPT_REPOSITORY "https URL of the repository"
  need RECEIPT_PR "number of the pull request"
  need RECEIPT_HEAD "commit ID of its head"
  need RECEIPT_BASE "commit ID of the base branch"
  need RECEIPT_BASE_REF "name of the base branch"
  arguments+=("--repository=$RECEIPT_REPOSITORY" "--pr=$RECEIPT_PR" "--head=$RECEIPT_HEAD" "--base=$RECEIPT_BASE"
    "--base-ref=$RECEIPT_BASE_REF" "--head-repository=${RECEIPT_HEAD_REPOSITORY:-$RECEIPT_REPOSITORY}")
fi
if [ -n "${RECEIPT_SOFTWARE:-}" ]; then
  arguments+=("--software=exact:$RECEIPT_SOFTWARE")
fi

if [ -n "${PLIMSOLL_DAEMON_URL:-}" ]; then
  exec "$attest" pr-receipt run --daemon "$PLIMSOLL_DAEMON_URL" "${arguments[@]}"
fi

need GUEST_IMAGE "the guest image as name@sha256:…, or PLIMSOLL_DAEMON_URL for a daemon that runs"
address=${PLIMSOLL_ADDR:-127.0.0.1:8746}
log=$(mktemp)
token=$(openssl rand -hex 32)
PLIMSOLL_TOKEN=$token PLIMSOLL_ADDR=$address PLIMSOLL_METRICS_ADDR=off \
  SANDBOX_PROVIDER=docker SANDBOX_DOCKER_RUNTIME=${DOCKER_RUNTIME-runsc} SANDBOX_REQUIRE_PINNED_IMAGES=true \
  SANDBOX_DOCKER_IMAGE=$GUEST_IMAGE SANDBOX_DOCKER_PROJECT_IMAGE=$GUEST_IMAGE \
  "$attest" daemon >"$log" 2>&1 &
daemon=$!
# shellcheck disable=SC2317,SC2329 # called by the trap
stop() {
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
  rm -f -- "$log"
}
trap stop EXIT

ready=
for _ in $(seq 120); do
  if curl --fail --silent --output /dev/null "http://$address/readyz"; then
    ready=yes
    break
  fi
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.5
done
if [ -z "$ready" ]; then
  printf 'the daemon did not become ready; nothing ran. Its log:\n' >&2
  # No line of it may read as a command to the CI system.
  sed 's/^/| /; s/::/:\\:/g; s/##\[/##\\[/g' "$log" >&2
  exit 4
fi
code=0
PLIMSOLL_CALLER_TOKEN=$token "$attest" pr-receipt run --daemon "http://$address" "${arguments[@]}" || code=$?
exit "$code"
