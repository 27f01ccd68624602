# Installs programs of other languages in fixed versions, and starts the server for them: source this.
# Each function installs into a directory that it is given, and does nothing if what it was told is
# there; it fails if the registry does not have it.
# shellcheck shell=bash

maven_plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

# Answers whether a directory has exactly these packages, which `mark_installed` said.
is_installed() {
    local directory=$1
    shift
    [ "$(cat "$directory/packages" 2>/dev/null)" = "$*" ]
}

mark_installed() {
    local directory=$1
    shift
    echo "$*" >"$directory/packages"
}

# Makes an environment of Python in the directory, with packages.
install_python() {
    if is_installed "$@"; then return; fi
    local directory=$1
    rm -rf "$directory"
    python3 -m venv "$directory" && "$directory/bin/pip" install -q "${@:2}" && mark_installed "$@"
}

# Installs packages of npm below `node_modules` in the directory.
install_npm() {
    if is_installed "$@"; then return; fi
    local directory=$1
    rm -rf "$directory"
    mkdir -p "$directory"
    (cd "$directory" && npm install --silent --no-audit --no-fund -E --prefix . "${@:2}") \
        && mark_installed "$@"
}

# Copies artifacts of Maven, as GROUP:NAME:VERSION, and all that they need into the directory.
install_maven() {
    if is_installed "$@"; then return; fi
    local directory=$1 artifact group name version
    rm -rf "$directory"
    mkdir -p "$directory"
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>nvcaracal</groupId>'
        echo '<artifactId>tests</artifactId><version>1</version><dependencies>'
        for artifact in "${@:2}"; do
            IFS=: read -r group name version <<<"$artifact"
            echo "<dependency><groupId>$group</groupId><artifactId>$name</artifactId>"
            echo "<version>$version</version></dependency>"
        done
        echo '</dependencies></project>'
    } >"$directory/pom.xml"
    java -version && mvn -q -B -f "$directory/pom.xml" "$maven_plugin:copy-dependencies" \
        -DoutputDirectory="$directory" && mark_installed "$@"
}

# Builds a program of Go from its directory, with the versions of its go.mod.
build_go() { (cd "$2" && go build -o "$1" .); }

# Prints a port that is free now.
free_port() {
    python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Starts `nvcaracal serve` on a store at a free port: the program, the store, a file for what it says.
# Its process is then $server, its port $port.
serve_start() {
    : >"$3"
    "$1" serve "$2" --listen 127.0.0.1:0 --json >"$3" &
    server=$!
    until grep -q '"addresses"' "$3"; do
        kill -0 "$server" || return 1
        sleep 0.1
    done
    # shellcheck disable=SC2034  # for who sources this
    port=$(sed -nE 's/.*"127\.0\.0\.1:([0-9]+)".*/\1/p' "$3")
}
