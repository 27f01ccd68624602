#!/usr/bin/env bash
# Mutation testing: changes one expression after the other, and sees whether a test notices.
#
#   scripts/mutants.sh [options] [file ...]   default: what decides over what survives a crash
#
#   --shard I/N          only every Nth mutant, from the Ith, 0 to N-1
#   --sample N           at most N mutants of each file
#   --minutes M          stop after so many minutes, builds included (default: never)
#   --tests-seconds S    tests of so many seconds for a mutant at most, as they take without one
#                        (default 60)
#   --test-seconds S     leave out tests that take longer alone (default 30)
#   --lab-cases N        cases of the crash lab for each mutant (default 25; its test of how much
#                        it explores fails below 12)
#   --no-lab             no crash lab
#   --tests LIST         only tests of these packages, separated by commas; PACKAGE:PATTERN: only those
#                        whose names match the pattern
#   --own                only the tests of the mutant's own crate, which take least to build
#   --resume             go on: mutants of which something is known are not run again
#   --survivors          run those again that survived the last time
#   --list               print the mutants and do nothing
#   --output DIR         where results go (default target/mutants)
#
# Uses cargo-mutants, and installs it if it is missing, to find the mutants; runs them in an order
# that is random but the same every time, so what an unfinished run did is a random sample. Needs
# python3. A copy of the tree in DIR/tree has all mutants of all crates at once, chosen by an
# environment variable; what does not fit or does not compile is dropped and counted. It is built
# where CARGO_TARGET_DIR says, else in DIR/build. The tests are built once; each runs once alone
# without a mutant to see how long it takes and which functions it reaches. Both are kept for
# --resume, which begins at once if files and options are the same. For each mutant those
# tests run that reach its function, the nearest crate's first, until one fails or takes three times
# as long and 5 seconds of the processor, or 6 times that in waiting: a mutant may well wait for
# ever. On a machine whose processors have much else to do, "without end" may say just that.
#
# DIR/CRATE.jsonl says what became of each mutant, DIR/survivors.txt which ones nobody noticed. Exit
# codes: 0 all were noticed, 1 some survived, 2 a wrong command line, 3 the tests fail without a
# mutant or do not notice a known bad one.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v cargo-mutants >/dev/null; then
    echo 'cargo-mutants is missing: installing it'
    cargo install cargo-mutants --locked
fi
PYTHONDONTWRITEBYTECODE=1 exec nice -n 10 python3 scripts/mutants/main.py "$@"
