#!/usr/bin/env bash
# Checks everything that must hold for a release of the version in Cargo.toml, builds the program, and
# writes what is uploaded: archives, their SHA-256, and notes taken from CHANGELOG.md. It publishes and
# tags nothing: docs/releasing.md has the steps around it.
#
# Usage: scripts/release.sh [--out DIR] [--tag TAG] [--static] [--no-verify] [--skip-build PROGRAM]
#
#   --out DIR             where the files go (default: target/release-VERSION); must not be there yet
#   --tag TAG             fail unless this is the tag of the version
#   --static              a static program, too (scripts/static.sh)
#   --no-verify           crates are packed, but not built from their packages
#   --skip-build PROGRAM  pack this program instead of building one
#
# Needs git, python3, binutils and GNU tar; cargo-deny for the licences of dependencies. Every check is
# made whatever came of the one before. Exit codes: 0 all holds and the files are there, 1 a check failed
# and there are no files, 2 a wrong command line, 3 the files are there but something was not checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C CARGO_TERM_COLOR=never

wrong() {
    echo "error: $*; see the head of scripts/release.sh" >&2
    exit 2
}

version=$(sed -nE '/^\[workspace.package\]/,/^$/ s/^version = "(.*)"$/\1/p' Cargo.toml)
out=''
tag=v$version
given=''
wants_static=false
verifies=true
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=${2:?a directory}; shift 2 ;;
        --tag) tag=${2:?a tag}; shift 2 ;;
        --static) wants_static=true; shift ;;
        --no-verify) verifies=false; shift ;;
        --skip-build) given=${2:?a program}; shift 2 ;;
        *) wrong "$1 is no option" ;;
    esac
done
target=${CARGO_TARGET_DIR:-target}
out=${out:-$target/release-$version}
if [ -e "$out" ]; then wrong "$out is there already"; fi
if [ -n "$given" ] && [ ! -x "$given" ]; then wrong "$given is no program"; fi

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
failed=()
unchecked=()

# Runs a check: a title, then a command or a function of this file, which says why it fails.
check() {
    local title=$1 status=0
    shift
    printf '=== %s\n' "$title"
    set +e
    (
        set -euo pipefail
        "$@"
    )
    status=$?
    set -e
    if [ "$status" -ne 0 ]; then
        failed+=("$title")
        printf '=== %s: FAILED\n' "$title"
    fi
}

# --- What must hold -----------------------------------------------------------------------------

clean_tree() {
    local changes
    changes=$(git status --porcelain)
    if [ -n "$changes" ]; then
        printf '%s\n' "$changes"
        return 1
    fi
}

# The tag of the version is this commit, or not there yet.
tag_is_free() {
    local tagged
    if [ "$tag" != "v$version" ]; then
        echo "the tag $tag is not that of version $version"
        return 1
    fi
    tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}" || true)
    if [ -n "$tagged" ] && [ "$tagged" != "$(git rev-parse HEAD)" ]; then
        echo "v$version is the tag of $tagged, another commit"
        return 1
    fi
}

# The lines of CHANGELOG.md below a heading that matches, up to the next one.
section() {
    awk -v heading="$1" '/^## / { on = $0 ~ heading; next } on' CHANGELOG.md
}

changelog() {
    local dots=${version//./\\.} heading
    heading=$(grep -E "^## $dots - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md || true)
    if [ -z "$heading" ]; then
        echo "CHANGELOG.md has no line '## $version - YEAR-MONTH-DAY'"
        return 1
    fi
    if [[ ${heading##* - } > $(date -u +%F) ]]; then
        echo "the date of '$heading' is in the future"
        return 1
    fi
    if [ -z "$(section "^## $dots - " | tr -d '[:space:]')" ]; then
        echo "'$heading' has no text"
        return 1
    fi
    if section '^## Unreleased$' | grep -E '^[-#]'; then
        echo "the lines above are under Unreleased, and would be in no release"
        return 1
    fi
}

# The value of a constant: its name, then its file.
constant() {
    local value
    value=$(sed -nE "s/^(pub(\(super\))? )?const $1: u(16|32) = ([0-9]+);\$/\4/p" "$2")
    [[ $value =~ ^[0-9]+$ ]] || { echo "no constant $1 in $2" >&2; return 1; }
    printf '%s' "$value"
}

# docs/format.md has a row for this release, with the numbers of the code.
formats() {
    local image codec files rules calls row
    image=$(constant FORMAT_VERSION crates/storage/src/format/limits.rs)
    codec=$(constant CODEC_VERSION crates/storage/src/input_log/format.rs)
    files=$(constant VERSION crates/pmem/src/file/format.rs)
    rules=$(constant SEMANTICS_VERSION crates/engine/src/program/record.rs)
    calls=$(constant SEMANTICS crates/server/src/store/procedure.rs)
    row="| ${version%.*} | $image | $codec | $files | $rules | $calls |"
    echo "$row"
    grep -qxF "$row" docs/format.md || { echo 'docs/format.md does not have this row'; return 1; }
    for kind in closed killed; do
        if [ ! -f "crates/nvcaracal/tests/golden/store-$image-files-$files-$kind.txt" ]; then
            echo "no store of these formats, $kind, is kept: see CONTRIBUTING.md"
            return 1
        fi
    done
}

# Versions, requirements, licences, and which crates are published.
crates() {
    scripts/release_crates.py check "$version"
}

licences() {
    cargo deny --all-features check licenses bans sources
}

# Packs the published crates in order, each with those before it as if they were published.
packages() {
    local -a arguments=(--workspace --dry-run --locked)
    if [ "$verifies" = false ]; then arguments+=(--no-verify); fi
    scripts/release_crates.py names
    cargo publish "${arguments[@]}" 2>"$room/packages" || { cat "$room/packages"; return 1; }
    grep -E 'already exists' "$room/packages" && return 1
    grep -cE '^ +Uploading' "$room/packages" | sed 's/$/ crates would be uploaded/'
}

# --- What is uploaded ---------------------------------------------------------------------------

# A program says the version, and a workload on files has the answers of the serial oracle.
try_program() {
    local said
    said=$("$1" --version)
    if [ "$said" != "nvcaracal $version" ]; then
        echo "$1 says '$said', not 'nvcaracal $version'"
        return 1
    fi
    "$1" bench smallbank --customers 18000 --epoch-size 5000 --epochs 2 --verify --no-progress \
        --device "file:$room/bank" >"$room/said" 2>&1 || { cat "$room/said"; return 1; }
    "$1" check "$room/bank" >"$room/said" 2>&1 || { cat "$room/said"; return 1; }
    rm -rf "${room:?}/bank"
}

# The archive of a folder of the room, of the same bytes whenever it is made.
archive() {
    tar --create --directory "$room" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$(git log -1 --format=%ct)" "$1" | gzip -9n >"$out/$1.tar.gz"
}

# A program stripped, with what goes with it, and an archive of its debug information: the program,
# then its target.
pack() {
    local name=nvcaracal-$version-$2
    mkdir -p "$room/$name" "$room/$name-debug"
    objcopy --only-keep-debug "$1" "$room/$name-debug/nvcaracal.debug"
    # The link has the name of the file alone, so that a debugger finds it beside the program.
    objcopy --strip-all --add-gnu-debuglink="$room/$name-debug/nvcaracal.debug" "$1" \
        "$room/$name/nvcaracal"
    chmod 755 "$room/$name/nvcaracal"
    chmod 644 "$room/$name-debug/nvcaracal.debug"
    try_program "$room/$name/nvcaracal"
    cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$room/$name/"
    scripts/release_crates.py third-party >"$room/$name/LICENSES-THIRD-PARTY"
    archive "$name"
    archive "$name-debug"
}

# The newest version of glibc of which a program has symbols; nothing for a static one.
glibc_of() {
    readelf --dyn-syms --wide "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 | sed 's/_/ /' || true
}

# The section of the version. Links lead to the tree of the tag where the repository's address is known.
notes() {
    local repository
    repository=$(sed -nE '/^\[workspace.package\]/,/^$/ s/^repository = "(.*)"$/\1/p' Cargo.toml)
    if [ -n "$repository" ]; then
        section "^## ${version//./\\.} - " | sed -E "s#\]\(docs/#](${repository%/}/blob/v$version/docs/#g"
    else
        section "^## ${version//./\\.} - "
    fi
    printf '\n### Programs\n\nLinux on x86-64; the usual one needs %s or newer. SHA256SUMS has the sums.\n' "$1"
}

files() {
    local program=$given
    if [ -z "$program" ]; then
        cargo build --profile dist --locked -p nvcaracal-cli
        program=$target/dist/nvcaracal
    fi
    mkdir -p "$out"
    pack "$program" x86_64-unknown-linux-gnu
    if [ "$wants_static" = true ]; then
        scripts/static.sh
        pack "$target/x86_64-unknown-linux-musl/dist/nvcaracal" x86_64-unknown-linux-musl
    fi
    notes "$(glibc_of "$program")" >"$out/NOTES.md"
    (cd "$out" && sha256sum ./*.tar.gz | sed 's#\./##' >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
    ls -l "$out"
}

echo "version $version, commit $(git rev-parse HEAD)"
check 'the tree is clean' clean_tree
check 'the tag is free' tag_is_free
check 'CHANGELOG.md' changelog
check 'numbers of formats and semantics' formats
check 'versions, licences and which crates are published' crates
check 'rules of the house' scripts/tidy.sh
if cargo deny --version >/dev/null 2>&1; then
    check 'licences and sources of dependencies' licences
else
    unchecked+=('licences of dependencies: there is no cargo-deny (cargo install cargo-deny --locked)')
fi
check 'packages of the crates' packages
if [ "$verifies" = false ]; then unchecked+=('that crates build from their packages: --no-verify'); fi
if [ -n "$given" ]; then unchecked+=("that $given is this commit in profile dist: --skip-build"); fi
if [ "$(uname -sm)" != 'Linux x86_64' ]; then
    failed+=('files: they are made on Linux on x86-64')
fi
if [ "${#failed[@]}" -eq 0 ]; then check 'files' files; fi

if [ "${#unchecked[@]}" -gt 0 ]; then printf 'NOT CHECKED: %s\n' "${unchecked[@]}"; fi
if [ "${#failed[@]}" -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    rm -rf "$out"
    exit 1
fi
if [ "${#unchecked[@]}" -gt 0 ]; then exit 3; fi
echo "all holds: tag this commit v$version"
