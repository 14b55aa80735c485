#!/usr/bin/env bash
# Rebuilds quickjs.wasm from its sources and compares it with the one checked in.
#
#   rebuild.sh           build and compare; exit 0 when the bytes are identical, 1 when they differ
#   rebuild.sh --write   build and replace the artifact and its digest
#
# Needs the Debian packages of packages.txt (in exactly those versions), cargo, patch and coreutils.
set -euo pipefail
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=0

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
crate=rquickjs-sys
version=0.14.0
write=no
case "${1-}" in
'') ;;
--write) write=yes ;;
*)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

fail() {
    printf 'rebuild: %s\n' "$*" >&2
    exit 1
}

# 1. The tools.
while read -r package wanted; do
    have=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null || true)
    [ "$have" = "$wanted" ] || fail "package $package is '${have:-absent}', the artifact was built with $wanted"
done <"$here/packages.txt"

# 2. Our own inputs, and the archive of the engine's sources.
if [ "$write" = yes ]; then
    (cd "$here" && sha256sum -- *.c *.h *.js *.patch LICENSE.* packages.txt >inputs.sha256)
fi
(cd "$here" && sha256sum --check --quiet --strict inputs.sha256) || fail "an input differs from inputs.sha256"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/fetch/src"
printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n[workspace]\n' \
    "$crate" "$version" >"$work/fetch/Cargo.toml"
: >"$work/fetch/src/lib.rs"
cargo fetch --quiet --manifest-path "$work/fetch/Cargo.toml"
archive=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" -name "$crate-$version.crate" -print -quit)
[ -n "$archive" ] || fail "cargo fetched no archive of $crate $version"
read -r wanted _ <"$here/sources.sha256"
printf '%s  %s\n' "$wanted" "$archive" | sha256sum --check --quiet --strict || fail "$archive differs from sources.sha256"

# 3. A fresh tree: the engine's C files, patched, and the shim.
mkdir "$work/src"
tar -xzf "$archive" -C "$work" "$crate-$version/quickjs"
cp "$work/$crate-$version/quickjs/"*.[ch] "$work/src/"
cmp -s "$work/$crate-$version/quickjs/LICENSE" "$here/LICENSE.quickjs-ng" || fail "the engine's licence text changed"
patch --quiet --directory="$work/src" --strip=1 --fuzz=0 <"$here/stack-limit.patch"
cp "$here"/*.[ch] "$work/src/"
for script in numbers client; do
    printf 'static const char %s_js[] =\n' "$script"
    od -An -v -to1 "$here/$script.js" | sed 's/ /\\/g; s/^/"/; s/$/"/'
    printf ';\n'
done >"$work/src/scripts.h"

# 4. Compile and link. Order and paths are fixed, so nothing of this machine is in the bytes.
flags=(--target=wasm32-wasi -O2 -std=gnu11 -D_GNU_SOURCE -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_SIGNAL
    -DNDEBUG -mbulk-memory -msign-ext -mnontrapping-fptoint -ffile-prefix-map="$work/src"=.)
objects=()
for unit in quickjs libregexp libunicode dtoa shim output format fresh grant; do
    warn=-w
    case "$unit" in shim | output | format | fresh | grant) warn="-Wall -Wextra -Werror" ;; esac
    # shellcheck disable=SC2086
    (cd "$work/src" && clang-14 "${flags[@]}" $warn -c "$unit.c" -o "$unit.o") &
    objects+=("$unit.o")
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
done
while [ -n "$(jobs -rp)" ]; do wait -n; done
(cd "$work/src" && clang-14 --target=wasm32-wasi -mexec-model=reactor "${objects[@]}" -o plain.wasm -lm \
    -lwasi-emulated-process-clocks -lwasi-emulated-signal \
    -Wl,-z,stack-size=1048576 -Wl,--stack-first -Wl,--strip-all)

# 5. The snapshot of the ready context is the artifact.
CARGO_TARGET_DIR=${SNAPSHOT_TARGET_DIR:-$work/target} \
    cargo build --quiet --release --locked --manifest-path "$here/snapshot/Cargo.toml"
"${SNAPSHOT_TARGET_DIR:-$work/target}/release/plimsoll-quickjs-snapshot" "$work/src/plain.wasm" "$work/quickjs.wasm"

digest=$(sha256sum "$work/quickjs.wasm" | cut -d' ' -f1)
if [ "$write" = yes ]; then
    cp "$work/quickjs.wasm" "$here/quickjs.wasm"
    printf '%s  quickjs.wasm\n' "$digest" >"$here/quickjs.wasm.sha256"
    printf 'rebuild: wrote %s\n' "$digest"
else
    (cd "$here" && sha256sum --check --quiet --strict quickjs.wasm.sha256) || fail "the checked-in artifact is not the pinned one"
    cmp "$work/quickjs.wasm" "$here/quickjs.wasm" || fail "the rebuilt module is $digest"
    printf 'rebuild: identical, %s\n' "$digest"
fi
