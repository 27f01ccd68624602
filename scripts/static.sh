#!/usr/bin/env bash
# Builds `nvcaracal` as one static program, linked with musl, that runs on any Linux of this architecture,
# and tries it: no shared libraries, a workload on files against the serial oracle, and a check of
# the store that it leaves.
#
# Usage: scripts/static.sh [--profile PROFILE]      (dist, unless another one is named)
#
# Needs the compiler's musl target, which is installed with rustup if it is missing, and musl-gcc
# (Debian: musl-tools) for the assembly of one dependency. The allocator is that of musl, so that many
# threads that allocate wait for each other: a server with many clients is faster as the usual build.
# Exit codes: 0 built and tried, 1 a failure, 2 a wrong command line, 3 the target or musl-gcc is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

profile=dist
case "$#:${1:-}" in
    0:) ;;
    2:--profile) profile=$2 ;;
    *)
        echo "error: $* is no command line; see the head of scripts/static.sh" >&2
        exit 2
        ;;
esac

machine=$(uname -m)
target=$machine-unknown-linux-musl
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ] && ! rustup target add "$target"; then
    echo "the target $target is not installed, and rustup cannot install it" >&2
    exit 3
fi
if ! command -v musl-gcc >/dev/null; then
    echo 'there is no musl-gcc (Debian: musl-tools)' >&2
    exit 3
fi

# For the crate `cc`. The compiler links by itself, with the start files that it brings for this target:
# musl-gcc as the linker makes a program that asks for musl's loader, and ends by SIGSEGV without it.
export "CC_${target//-/_}=musl-gcc"
cargo build --profile "$profile" --locked --target "$target" -p nvcaracal-cli
folder=$profile
if [ "$profile" = dev ]; then folder=debug; fi
program=${CARGO_TARGET_DIR:-target}/$target/$folder/nvcaracal

if readelf --dynamic --program-headers --wide "$program" | grep -E 'NEEDED|INTERP'; then
    echo "$program needs the loader and the shared libraries above" >&2
    exit 1
fi
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"$program" --version
"$program" bench smallbank --customers 18000 --epoch-size 5000 --epochs 4 --verify --no-progress \
    --device "file:$room/bank"
"$program" check "$room/bank"
printf '%s\n' "$program is static"
