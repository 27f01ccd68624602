# A PostgreSQL 15 of its own in a directory, for the scripts that compare with it: source this, then
# call postgresql_start DIR OPTIONS. Where its programs are is asked from pg_config or looked for where
# Debian has them ($postgresql_bin). As root it runs as user nobody, to whom DIR is given.
# shellcheck shell=bash

postgresql_bin=''
for postgresql_at in /usr/lib/postgresql/15/bin "$(pg_config --bindir 2>/dev/null || true)"; do
    if [ -x "$postgresql_at/initdb" ]; then
        postgresql_bin=$postgresql_at
        break
    fi
done
case $(if [ -n "$postgresql_bin" ]; then "$postgresql_bin/postgres" --version; fi) in
    *' 15.'*) ;;
    *)
        echo 'no PostgreSQL 15 is installed (Debian: postgresql-15)' >&2
        exit 1
        ;;
esac

# Runs a program of PostgreSQL in the directory, as the user that it runs as.
postgresql_run() {
    local directory=$1 program=$2
    local -a as=()
    shift 2
    if [ "$(id -u)" -eq 0 ]; then as=(setpriv --reuid=nobody --clear-groups); fi
    (cd "$directory" && "${as[@]}" "$postgresql_bin/$program" -D "$directory/data" "$@")
}

# Makes a cluster with user nvcaracal, and starts it with a socket in the directory.
postgresql_start() {
    local directory=$1
    if [ "$(id -u)" -eq 0 ]; then chown nobody "$directory"; fi
    postgresql_run "$directory" initdb -U nvcaracal -E UTF8 --locale=C >/dev/null 2>&1
    postgresql_run "$directory" pg_ctl -s -w start -l "$directory/log" \
        -o "-k $directory -c listen_addresses='' $2"
}

# Ends it, if it runs.
postgresql_stop() { postgresql_run "$1" pg_ctl -s -w stop -m immediate 2>/dev/null || true; }
