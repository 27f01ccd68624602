#!/usr/bin/env bash
# Runs applications, each in the version that is written here, on a PostgreSQL 15 of its own
# (postgresql.sh) and on `nvcaracal serve`: the same scenario of crates/server/tests/applications (or of
# tests/clients), which tells each of its steps. Prints a line for each: name, version, steps that
# passed there of how many, steps that passed here, and the first one that failed here.
#
# Usage: scripts/applications.sh [--binary PROGRAM] [--markdown] [--keep DIR] [NAME ...]
#
#   --binary PROGRAM   the program `nvcaracal` (default: target/debug/nvcaracal)
#   --markdown         prints the lines of the table in docs/sql.md
#   --keep DIR         leaves what the scenarios said there, as NAME.postgresql and NAME.nvcaracal
#   NAME               default: all of `names` below
#
# Packages are installed below `applications` in the target directory, never elsewhere. Each scenario
# begins with an empty database. Exit codes: 0 every step passed that passes on PostgreSQL, 1 one did
# not, 2 a wrong command line, 3 an application could not be installed (said as SKIPPED) and all else
# is well, 4 a scenario fails on PostgreSQL.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

names=(asyncpg sqlalchemy alembic django sequelize typeorm drizzle knex kysely node-pg-migrate
    prisma mikro-orm flyway liquibase hibernate jooq gorm pgx golang-migrate dbt airflow
    procrastinate pg-boss graphile-worker peewee tortoise)
jdbc=org.postgresql:postgresql:42.7.8
# Seconds after which a scenario that does not end has failed.
patience=300

target=${CARGO_TARGET_DIR:-target}
binary=$target/debug/nvcaracal
is_markdown=false
keep=''
chosen=()
while [ $# -gt 0 ]; do
    case $1 in
        --binary | --keep)
            [ $# -gt 1 ] || { echo "error: $1 needs a value" >&2 && exit 2; }
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        --markdown) is_markdown=true ;;
        *)
            if [[ " ${names[*]} " != *" $1 "* ]]; then
                echo "error: no application is called $1; see scripts/applications.sh" >&2 && exit 2
            fi
            chosen+=("$1")
            ;;
    esac
    shift
done
if [ "${#chosen[@]}" -eq 0 ]; then chosen=("${names[@]}"); fi
if [ ! -x "$binary" ]; then echo "error: there is no $binary" >&2 && exit 2; fi

. scripts/installers.sh
. scripts/postgresql.sh
mkdir -p "$target/applications"
installed=$(cd "$target/applications" && pwd)
tests=$PWD/crates/server/tests
room=$(mktemp -d)
if [ -z "$keep" ]; then keep=$room; fi
mkdir -p "$keep"
server=''
stop_server() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
    server=''
}
end() {
    stop_server
    postgresql_stop "$room/postgresql"
    rm -rf "$room"
}
trap end EXIT

# Says what an application is called, its kind, its packages and the version that counts: `title`,
# `kind`, `packages` and `version`.
describe() {
    kind=npm
    case $1 in
        asyncpg) title=asyncpg kind=python packages=(asyncpg==0.32.0) ;;
        sqlalchemy)
            title=SQLAlchemy kind=client
            packages=(sqlalchemy==2.1.9 alembic==1.20.1 'psycopg[binary]==3.3.9')
            ;;
        alembic)
            title=Alembic kind=client
            packages=(alembic==1.20.1 sqlalchemy==2.1.9 'psycopg[binary]==3.3.9')
            ;;
        django) title=Django kind=client packages=(django==5.2.19 'psycopg[binary]==3.3.9') ;;
        sequelize) title=Sequelize packages=(sequelize@6.37.8 pg@8.23.1) ;;
        typeorm) title=TypeORM packages=(typeorm@1.1.1 pg@8.23.1 reflect-metadata@0.2.2) ;;
        drizzle)
            title='Drizzle, drizzle-kit'
            packages=(drizzle-kit@0.31.11 drizzle-orm@0.45.2 pg@8.23.1)
            ;;
        knex) title=Knex packages=(knex@3.3.0 pg@8.23.1) ;;
        kysely) title=Kysely packages=(kysely@0.29.9 pg@8.23.1) ;;
        node-pg-migrate) title=node-pg-migrate packages=(node-pg-migrate@9.0.0 pg@8.23.1) ;;
        prisma)
            title='Prisma, its client'
            packages=(prisma@7.10.0 @prisma/client@7.10.0 @prisma/adapter-pg@7.10.0 pg@8.23.1)
            ;;
        mikro-orm)
            title=MikroORM
            packages=(@mikro-orm/core@6.6.16 @mikro-orm/postgresql@6.6.16
                @mikro-orm/migrations@6.6.16 @mikro-orm/knex@6.6.16)
            ;;
        flyway)
            title=Flyway kind=java
            packages=(org.flywaydb:flyway-core:13.12.0
                org.flywaydb:flyway-database-postgresql:13.12.0 "$jdbc")
            ;;
        liquibase) title=Liquibase kind=java packages=(org.liquibase:liquibase-core:4.33.0 "$jdbc") ;;
        hibernate)
            title=Hibernate kind=java
            packages=(org.hibernate.orm:hibernate-core:7.4.15.Final
                com.fasterxml.jackson.core:jackson-databind:2.19.2 "$jdbc")
            ;;
        jooq)
            title=jOOQ kind=java
            packages=(org.jooq:jooq:3.19.39 org.jooq:jooq-codegen:3.19.39 "$jdbc")
            ;;
        gorm) title=GORM kind=go packages=(gorm.io/gorm) ;;
        pgx) title=pgx kind=go packages=(github.com/jackc/pgx/v5) ;;
        golang-migrate)
            title=golang-migrate kind=go packages=(github.com/golang-migrate/migrate/v4)
            ;;
        dbt) title=dbt-postgres kind=python packages=(dbt-postgres==1.9.0 dbt-core==1.10.13) ;;
        airflow)
            title='Airflow, `db migrate`' kind=python
            packages=(apache-airflow==3.3.2 psycopg2-binary==2.9.13 asyncpg==0.32.0)
            ;;
        procrastinate)
            title=procrastinate kind=python
            packages=(procrastinate==3.10.0 'psycopg[binary,pool]==3.3.9')
            ;;
        pg-boss) title=pg-boss packages=(pg-boss@12.38.0) ;;
        graphile-worker) title=graphile-worker packages=(graphile-worker@0.18.0) ;;
        peewee) title=Peewee kind=python packages=(peewee==4.5.3 psycopg2-binary==2.9.13) ;;
        tortoise)
            title='Tortoise, aerich' kind=python
            packages=(tortoise-orm==1.1.9 aerich==0.10.1 asyncpg==0.32.0)
            ;;
    esac
    version=${packages[0]##*[=@:]}
    version=${version#=}
}

# Where the scenario of an application is.
scenario_of() {
    if [ -d "$tests/applications/$1" ]; then echo "$tests/applications/$1"; else echo "$tests/clients/$1"; fi
}

# Writes Prisma's client of the schema. The program of its migrations, which comes from no registry, is
# not needed for that, but asked for.
generate_prisma() {
    cp "$2/schema.prisma" "$1" && (cd "$1" && PRISMA_SCHEMA_ENGINE_BINARY=/bin/true \
        node_modules/.bin/prisma generate)
}

# Installs an application and builds its scenario.
install_application() {
    local name=$1 at=$installed/$1 from
    from=$(scenario_of "$name")
    case $kind in
        python | client) install_python "$at" "${packages[@]}" ;;
        npm)
            install_npm "$at" "${packages[@]}" || return
            if [ "$name" = prisma ]; then generate_prisma "$at" "$from"; fi
            ;;
        java)
            install_maven "$at" "${packages[@]}" \
                && javac -d "$at/classes" -cp "$at/*" "$tests/applications/Steps.java" "$from"/*.java
            ;;
        go) build_go "$at" "$from" ;;
    esac
}

# Runs the scenario of an application on the server at $port.
run_scenario() {
    local name=$1 at=$installed/$1 from
    from=$(scenario_of "$name")
    export PGHOST=127.0.0.1 PGPORT=$port PGUSER=nvcaracal PGDATABASE=nvcaracal
    export ROOM=$room/scenario
    rm -rf "$ROOM"
    mkdir "$ROOM"
    case $kind in
        python)
            PYTHONPATH=$tests/applications PATH=$at/bin:$PATH timeout "$patience" \
                "$at/bin/python" "$from/scenario.py"
            ;;
        client)
            timeout "$patience" "$at/bin/python" "$tests/applications/unittests.py" \
                "$tests/clients/${name}_test.py" "$port"
            ;;
        npm)
            NODE_PATH=$at/node_modules:$tests/applications PATH=$at/node_modules/.bin:$PATH \
                timeout "$patience" node --disable-warning=ExperimentalWarning "$from/scenario.js"
            ;;
        java) timeout "$patience" java -cp "$at/classes:$at/*:$from" Scenario ;;
        go) timeout "$patience" "$at" "$port" ;;
    esac
}

# Runs the scenario on one of both with an empty database, and leaves what it says in a file.
run_on() {
    local where=$1 name=$2 said=$keep/$2.$1
    if [ "$where" = postgresql ]; then
        port=$postgresql_port
        local -a at=(-h "$room/postgresql" -p "$port" -U nvcaracal)
        "$postgresql_bin/dropdb" "${at[@]}" --if-exists --force nvcaracal 2>/dev/null
        "$postgresql_bin/createdb" "${at[@]}" nvcaracal
    else
        serve_start "$binary" "$room/store" "$room/said" 2>"$room/told"
    fi
    # A scenario that ends in the middle has told less steps.
    (run_scenario "$name") >"$said" 2>"$said.err" </dev/null || true
    stop_server
    rm -rf "$room/store"
}

# Counts steps that passed, and all: pgx's program says `ok: NAME`.
passed() { grep -cE '^ok:? ' "$1" || true; }
told() { grep -cE '^(ok:?|failed) ' "$1" || true; }

chmod 711 "$room"
mkdir "$room/postgresql"
postgresql_port=$(free_port)
postgresql_start "$room/postgresql" \
    "-c listen_addresses=127.0.0.1 -c port=$postgresql_port -c fsync=off"

failed=() skipped=() broken=()
line='%-22s %-12s %9s %6s  %s\n'
if [ "$is_markdown" = true ]; then
    line='| %s | %s | %s | %s | %s |\n'
    printf '| application | version | PostgreSQL 15 | here | first difference |\n|---|---|---|---|---|\n'
fi
for name in "${chosen[@]}"; do
    describe "$name"
    if ! install_application "$name" >"$keep/$name.installed" 2>&1; then
        # shellcheck disable=SC2059  # one of two lines
        printf "$line" "$title" "$version" - - 'SKIPPED: it cannot be installed'
        skipped+=("$name")
        continue
    fi
    if [ "$kind" = go ]; then
        version=$(sed -nE "s,^(require)?[[:space:]]*${packages[0]} v([^ ]+).*,\2,p" \
            "$(scenario_of "$name")/go.mod")
    fi
    run_on postgresql "$name"
    run_on nvcaracal "$name"
    there=$(passed "$keep/$name.postgresql") all=$(told "$keep/$name.postgresql")
    here=$(passed "$keep/$name.nvcaracal")
    first=$(grep -m 1 '^failed ' "$keep/$name.nvcaracal" | cut -c 8- || true)
    if [ "$there" -gt "$here" ]; then
        failed+=("$name")
        if [ -z "$first" ]; then first="ended early: $(grep -v '^ *$' "$keep/$name.nvcaracal.err" | tail -n 1)"; fi
    fi
    # shellcheck disable=SC2059  # one of two lines
    printf "$line" "$title" "$version" "$there" "$here" "$(cut -c 1-120 <<<"$first")"
    if [ "$there" -eq 0 ] || [ "$there" -lt "$all" ]; then
        broken+=("$name")
        echo "error: $name fails on PostgreSQL: $(grep -m 1 '^failed ' "$keep/$name.postgresql" \
            || tail -n 1 "$keep/$name.postgresql.err")" >&2
    fi
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "FAILED: ${failed[*]}" >&2
    exit 1
fi
if [ "${#broken[@]}" -gt 0 ]; then exit 4; fi
if [ "${#skipped[@]}" -gt 0 ]; then exit 3; fi
