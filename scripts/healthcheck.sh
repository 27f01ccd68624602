#!/usr/bin/env bash
# Asks a server of this machine whether it speaks: the request for encryption with which PostgreSQL's
# protocol begins is answered by N. For the image's health check, where there is no psql.
#
# Usage: scripts/healthcheck.sh [PORT]      (default: 5433); exit code 0 if it answers within 3 seconds
set -euo pipefail

port=${1:-5433}
answer=''
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf '\0\0\0\10\4\322\26\57' >&3
IFS= read -r -n 1 -t 3 -u 3 answer || true
if [ "$answer" != N ]; then
    echo "port $port says '$answer', not N" >&2
    exit 1
fi
