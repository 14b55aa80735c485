#!/usr/bin/env bash
# Makes a sandbox image from Debian packages, without a registry and without an engine:
#   docs/images/build.sh sandbox|sandbox-python OUT.tar [CACHE_DIR]
# OUT.tar is a root file system for `docker import` or the engine's POST /images/create?fromSrc=-.
# Needs root, mmdebstrap, curl, a C compiler. Packages come from a fixed day of Debian's snapshot archive
# when it answers, else from the mirrors this machine uses; the image lists the versions it got in
# /usr/share/plimsoll/packages.txt. The same packages give the same bytes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../../src/runner" && pwd)

snapshot=${PLIMSOLL_IMAGE_SNAPSHOT:-20250520T000000Z}
suite=bookworm
export SOURCE_DATE_EPOCH=1747699200

image=${1:?usage: build.sh sandbox|sandbox-python OUT.tar [CACHE_DIR]}
out=${2:?usage: build.sh sandbox|sandbox-python OUT.tar [CACHE_DIR]}
cache=${3:-$(dirname "$out")}
case $image in
  sandbox) packages=nodejs ;;
  sandbox-python) packages=nodejs,python3-minimal,python3 ;;
  *) printf 'no image %s: sandbox or sandbox-python\n' "$image" >&2; exit 2 ;;
esac
say() { printf '%s\n' "$*" >&2; }

# Where packages come from, as lines of a sources.list.
sources() {
  local base="http://snapshot.debian.org/archive"
  if [ "$snapshot" != none ] &&
    curl -fsS -m 5 -o /dev/null "$base/debian/$snapshot/dists/$suite/InRelease" 2>/dev/null; then
    say "packages: the Debian snapshot of $snapshot"
    printf 'deb [check-valid-until=no] %s/debian/%s %s main\n' "$base" "$snapshot" "$suite"
    printf 'deb [check-valid-until=no] %s/debian-security/%s %s-security main\n' "$base" "$snapshot" "$suite"
    return
  fi
  say "packages: this machine's Debian mirrors (the snapshot archive does not answer)"
  # shellcheck disable=SC2016  # apt's own placeholders
  apt-get indextargets --format '$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
    awk -v s="$suite" '$1 == "Packages" && $4 == "main" && ($3 == s || $3 == s "-security" || $3 == s "-updates") { print "deb", $2, $3, "main" }' |
    sort -u
}

# The packages alone, kept in the cache: what takes a minute.
base() {
  local tar=$1 made options=() proxy
  proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy 2>/dev/null | head -n 1)
  [ -z "$proxy" ] || options+=("--aptopt=Acquire::http::Proxy \"$proxy\"")
  made=$(mktemp -d "$cache/making.XXXXXX")
  trap 'rm -rf "$made"' RETURN
  sources >"$made/sources.list"
  [ -s "$made/sources.list" ] && options+=("$suite" "$made/base.tar" "$made/sources.list") || options+=("$suite" "$made/base.tar")
  # Set-user-ID programs have no use where no privilege can be gained; without them there is less to try.
  # shellcheck disable=SC2016  # expanded by the hook's own shell
  mmdebstrap --quiet --mode=root --variant=essential --components=main --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --customize-hook='mkdir -p "$1/usr/share/plimsoll" && dpkg-query --admindir="$1/var/lib/dpkg" -W >"$1/usr/share/plimsoll/packages.txt"' \
    --customize-hook='find "$1" -xdev -perm /6000 -type f -exec chmod a-s {} +' \
    --customize-hook='rm -rf "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/var/lib/apt "$1"/var/cache/* "$1"/var/log/*' \
    "${options[@]}" >&2
  mv "$made/base.tar" "$tar"
}

mkdir -p "$cache"
key=$(sed '/^# Adds/,$d' "${BASH_SOURCE[0]}" | cat - <(printf '%s' "$image $snapshot") | sha256sum | cut -c1-16)
base=$cache/$image-$key.base.tar
[ -s "$base" ] || { say "building $image once (about a minute)"; base "$base"; }

# Adds what the project runner needs, in an order and with times that do not change.
layer=$(mktemp -d "$cache/layer.XXXXXX")
trap 'rm -rf "$layer"' EXIT
mkdir -p "$layer/usr/local/lib"
install -m 0444 "$source/runner.mjs" "$layer/runner.mjs"
cc -O2 -Wall -Wextra -Werror -shared -fPIC -Wl,--build-id=none -o "$layer/usr/local/lib/plimsoll-runner-guard.so" "$source/guard.c"
chmod 0444 "$layer/usr/local/lib/plimsoll-runner-guard.so"
mkdir "$layer/work"
chmod 1777 "$layer/work"
cp "$base" "$layer.tar"
tar --append --file "$layer.tar" --directory "$layer" --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime="@$SOURCE_DATE_EPOCH" ./runner.mjs ./usr/local/lib/plimsoll-runner-guard.so ./work
mv "$layer.tar" "$out"
