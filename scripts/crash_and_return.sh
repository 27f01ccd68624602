#!/usr/bin/env bash
# Kills a benchmark with SIGKILL at random moments, resumes it each time, and shows that nothing that was
# acknowledged was lost and that every epoch comes out as in a run that was never killed (O-25). Each
# process maps the store at another address (O-45).
#
#   scripts/crash_and_return.sh [smallbank|tpcc|ycsb] [options] [-- options of `nvcaracal-lab bench`]
#
#   --kills N         how often to kill (default 20)
#   --epochs N        epochs of the stream (default 30)
#   --seed N          names the moments of the kills (default 1)
#   --binary FILE     the program (default target/release/nvcaracal-lab; the product's nvcaracal, too, which
#                     runs smallbank and ycsb through the library)
#   --directory DIR   where to work (default a new temporary one); removed after success
#   --plant WHAT      tests this script: after the second kill, edit the acknowledgement log so that it
#                     claims a lost epoch (`lost`) or another digest (`digest`); must end in failure
#
# After each kill `check` must find the store clean, and the epoch that it recovers to must not be older
# than the last acknowledged one. After every other kill `recover` replays the log, and `check` runs again;
# otherwise the resumed benchmark itself recovers. All digests are compared with the uninterrupted run's.
# Exit code 0: nothing was violated.
set -euo pipefail

workload=smallbank kills=20 epochs=30 seed=1 plant='' directory=''
binary=${CARGO_TARGET_DIR:-target}/release/nvcaracal-lab
while [ $# -gt 0 ]; do
    case $1 in
        smallbank | tpcc | ycsb) workload=$1; shift ;;
        --kills) kills=$2; shift 2 ;;
        --epochs) epochs=$2; shift 2 ;;
        --seed) seed=$2; shift 2 ;;
        --binary) binary=$2; shift 2 ;;
        --directory) directory=$2; shift 2 ;;
        --plant) plant=$2; shift 2 ;;
        --) shift; break ;;
        *) echo "error: unknown option $1; see the head of $0" >&2; exit 2 ;;
    esac
done
sizes=("$@")
if [ ${#sizes[@]} -eq 0 ]; then
    case $workload in
        smallbank) sizes=(--customers 50000 --epoch-size 20000) ;;
        tpcc) sizes=(--warehouses 1 --mix full --items 10000 --customers-per-district 300 --epoch-size 2000) ;;
        ycsb) sizes=(--rows 20000 --epoch-size 5000) ;;
    esac
fi
[ -x "$binary" ] || { echo "error: no program $binary; build it, or name it with --binary" >&2; exit 2; }

[ -n "$directory" ] || directory=$(mktemp -d "${TMPDIR:-/tmp}/nvcaracal-crash-XXXXXX")
mkdir -p "$directory"
store=$directory/store acks=$directory/acks log=$directory/output
reference=$directory/reference
RANDOM=$seed
violations=0

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Replaces the (sub)shell that calls it, so that a signal for it reaches the program.
exec_bench() { # exec_bench STORE ACKS [options]
    local to=$1 ack=$2
    shift 2
    exec "$binary" bench "$workload" "${sizes[@]}" --epochs "$epochs" --checkpoint-every 4 --no-progress \
        --device "file:$to" --ack-log "$ack" "$@"
}

bench() {
    (exec_bench "$@")
}

violation() {
    violations=$((violations + 1))
    echo "VIOLATION: $*"
}

# Epoch of the last whole line of the acknowledgement log; 0 if there is none.
acknowledged() {
    [ -s "$acks" ] || { echo 0; return; }
    # What follows the last line's end was never acknowledged.
    local whole
    whole=$(grep -c '' < <(head -c "$(wc -c < "$acks")" "$acks") || true)
    if [ -n "$(tail -c 1 "$acks")" ]; then whole=$((whole - 1)); fi
    [ "$whole" -gt 0 ] || { echo 0; return; }
    sed -n "${whole}p" "$acks" | cut -d' ' -f1
}

digest_of() { # digest_of FILE EPOCH
    sed -n "s/^$2 //p" "$1"
}

# Runs `check`; sets checkpoint, recovers_to, digest, clean.
check_store() {
    local text code=0
    text=$("$binary" check "$store" 2> "$directory/check") || code=$?
    checkpoint=$(sed -n 's/^checkpoint of epoch \([0-9]*\),.*/\1/p' <<< "$text")
    digest=$(sed -n 's/^checkpoint of .*digest //p' <<< "$text")
    recovers_to=$(sed -n 's/.*to replay, up to epoch //p' <<< "$text")
    recovers_to=${recovers_to:-${checkpoint:-0}}
    if [ $code -eq 0 ]; then
        clean=yes
    elif grep -q 'holds no database\|no store here' "$directory/check"; then
        clean=none
    else
        clean=NO
    fi
}

compare_digest() { # compare_digest EPOCH DIGEST WHAT
    [ "$1" = 0 ] && return
    local expected
    expected=$(digest_of "$reference.acks" "$1")
    [ "$2" = "$expected" ] || violation "$3 of epoch $1 is $2, uninterrupted it is $expected"
}

plant_violation() {
    case $plant in
        lost) echo "$((recovers_to + 5)) $(digest_of "$reference.acks" "$epochs")" >> "$acks" ;;
        digest) sed -i "\$s/.\$/$([ "$(tail -c 2 "$acks" | head -c 1)" = 0 ] && echo 1 || echo 0)/" "$acks" ;;
        *) echo "error: --plant is lost or digest" >&2; exit 2 ;;
    esac
}

# After a kill: is everything there that was acknowledged?
inspect_wreck() {
    check_store
    last=$(acknowledged)
    # There has to be something to edit.
    if [ "$kill_number" -ge 2 ] && [ -n "$plant" ] && [ "$recovers_to" -gt 0 ] && [ "$last" -gt 0 ]; then
        plant_violation
        plant=
        last=$(acknowledged)
    fi
    if [ "$clean" = none ] && [ "$last" -gt 0 ]; then
        violation "epoch $last was acknowledged, but there is no store"
    elif [ "$clean" = NO ]; then
        violation "check: $(cat "$directory/check")"
    elif [ "$recovers_to" -lt "$last" ]; then
        violation "epoch $last was acknowledged, the store recovers to epoch $recovers_to"
    fi
    [ "$clean" = yes ] && compare_digest "$checkpoint" "$digest" "the checkpoint's digest"
    if [ "$last" -gt 0 ]; then
        compare_digest "$last" "$(digest_of "$acks" "$last")" "the acknowledged digest"
    fi
    recovered=$recovers_to by=bench wreck=${checkpoint:--}
    if [ $((kill_number % 2)) -eq 0 ] && [ "$clean" = yes ]; then
        by=recover
        "$binary" recover "$store" > "$directory/recover" 2>&1 ||
            violation "recover: $(cat "$directory/recover")"
        check_store
        recovered=$checkpoint
        [ "$clean" = yes ] || violation "check after recover: $(cat "$directory/check")"
        [ "$recovered" = "$recovers_to" ] || violation "recover left epochs to replay"
        [ "$recovered" -ge "$last" ] || violation "epoch $last was acknowledged, recovered $recovered"
        compare_digest "$recovered" "$digest" "the recovered digest"
    fi
}

finish_round() {
    cmp -s "$acks" "$reference.acks" ||
        violation "the epochs' digests differ: $(diff "$acks" "$reference.acks" | head -4 | tr '\n' ' ')"
    check_store
    compare_digest "$checkpoint" "$digest" "the final digest"
    [ "$clean" = yes ] || violation "check at the end: $(cat "$directory/check")"
}

echo "uninterrupted run: bench $workload ${sizes[*]} --epochs $epochs"
started=$(now_ms)
bench "$reference" "$reference.acks" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
took=$(($(now_ms) - started))
sed -n 's/^state digest/  state digest/p' "$log"
echo "  took $took ms, $(wc -l < "$reference.acks") epochs acknowledged"
echo
format="%5s %9s %13s %11s %10s %8s %6s\n"
# shellcheck disable=SC2059
printf "$format" kill "after ms" acknowledged checkpoint recovered by check

kill_number=0
while [ "$kill_number" -lt "$kills" ]; do
    exec_bench "$store" "$acks" --resume > "$log" 2>&1 &
    process=$!
    moment=$((20 + (RANDOM * 32768 + RANDOM) % (took * 6 / 10 + 1)))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    if ! kill -KILL "$process" 2> /dev/null; then
        wait "$process" || { violation "a run failed: $(tail -n 3 "$log")"; break; }
        finish_round
        rm -rf "$store" "$acks"
        continue
    fi
    code=0
    { wait "$process"; } 2> /dev/null || code=$?
    if [ "$code" -ne 137 ]; then
        [ "$code" -eq 0 ] || { violation "a run failed: $(tail -n 3 "$log")"; break; }
        finish_round
        rm -rf "$store" "$acks"
        continue
    fi
    kill_number=$((kill_number + 1))
    inspect_wreck
    # shellcheck disable=SC2059
    printf "$format" "$kill_number" "$moment" "$last" "$wreck" "$recovered" "$by" "$clean"
    [ "$violations" -eq 0 ] || break
done

if [ "$violations" -eq 0 ]; then
    bench "$store" "$acks" --resume > "$log" 2>&1 || violation "the last run failed: $(tail -n 3 "$log")"
    finish_round
fi
echo
if [ "$violations" -gt 0 ]; then
    echo "$violations violations; everything is in $directory"
    exit 1
fi
echo "killed $kills times: no acknowledged epoch was lost, all digests are the uninterrupted run's"
rm -rf "$directory"
