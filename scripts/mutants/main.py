"""Mutation testing; see scripts/mutants.sh for the options."""

import argparse
import collections
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

import tests
from tree import Tree

# What the tests of a crate are: packages with options of `cargo test`, nearest first. The crash lab
# is the last of each.
UNIT, ALL = "--lib", ["--test", "all"]
LAB = ("sim", ALL)
LIBRARY = ("nvcaracal", [UNIT, *ALL, "--test", "callbacks", "--test", "observe"])
SQL = [UNIT, *(word for test in ("damaged_rows", "explain", "golden_plans", "limits", "predicted",
                                 "scripts", "unused", "views", "weights")
               for word in ("--test", test))]
# The server: what a store does, and what goes over the wire, scripts beside psql too.
SERVER = ["--test", "store", "--test", "wire"]
COMMANDS = {
    "values": [("values", [UNIT, "--test", "any_bytes", "--test", "forms", "--test", "properties"]),
               ("sql", SQL), ("server", SERVER)],
    "sql": [("sql", SQL), ("server", SERVER)],
    "server": [("server", [UNIT, *SERVER])],
    "storage": [("storage", [UNIT]), ("engine", [UNIT, *ALL]), ("nvcaracal", ALL), ("cli", ALL), LAB],
    "pmem": [("pmem", [UNIT, *ALL, "--test", "file"]), ("engine", ALL), ("cli", ALL), LAB],
    "engine": [("engine", [UNIT, *ALL]), ("nvcaracal", ALL), ("cli", ALL), LAB],
    "nvcaracal": [LIBRARY, ("nvcaracal", ["--test", "lab"]), ("cli", ALL)],
    "cli": [("cli", [UNIT, *ALL])],
}


def package(crate):
    """The name of a crate's package."""
    return crate if crate == "nvcaracal" else f"nvcaracal-{crate}"


CHOSEN = re.compile(
    r"crates/(storage/src/.*|pmem/src/file/.*|"
    r"engine/src/(version/(final_write/.*|publication|row_store)|epoch/.*|recovery/.*))\.rs$")
NOT_CHOSEN = re.compile(r"/tests?(/|\.rs$)")


def options():
    parser = argparse.ArgumentParser(prog="scripts/mutants.sh", add_help=False)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--tests-seconds", type=float, default=60)
    parser.add_argument("--test-seconds", type=float, default=30)
    parser.add_argument("--lab-cases", type=int, default=25)
    parser.add_argument("--no-lab", action="store_true")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--tests", default="")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--output", default="target/mutants")
    args = parser.parse_args()
    shard = re.fullmatch(r"(\d+)/(\d+)", args.shard)
    if not shard or int(shard[1]) >= int(shard[2]):
        parser.error(f"{args.shard} is no shard")
    args.shard = (int(shard[1]), int(shard[2]))
    if not args.files:
        tracked = subprocess.run(["git", "ls-files", "crates"], check=True, capture_output=True,
                                 text=True).stdout.split()
        args.files = [f for f in tracked if CHOSEN.match(f) and not NOT_CHOSEN.search(f)]
    for file in args.files:
        if not os.path.isfile(file):
            parser.error(f"there is no file {file}")
        if file.split("/")[1] not in COMMANDS:
            parser.error(f"{file} is of a crate that this script has no tests for")
    return args


def listed(files):
    """The mutants of some files, in an order that is random but the same every time."""
    command = ["cargo-mutants", "mutants", "--workspace", "--list", "--json"]
    for file in files:
        command += ["--file", file]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    mutants = json.loads(out)
    mutants.sort(key=lambda m: hashlib.sha256(m["name"].encode()).digest())
    return mutants


def pick(mutants, args):
    """The part that the options ask for."""
    part, parts = args.shard
    mutants = mutants[part::parts]
    if args.sample:
        seen = collections.Counter()
        kept = []
        for mutant in mutants:
            seen[mutant["file"]] += 1
            if seen[mutant["file"]] <= args.sample:
                kept.append(mutant)
        mutants = kept
    return mutants


class Results:
    """What is known of each mutant by its name: one line of JSON each, the last one counts."""

    def __init__(self, path, keep):
        self.path, self.known = path, {}
        if keep and os.path.exists(path):
            with open(path, encoding="ascii") as file:
                for line in file:
                    result = json.loads(line)
                    self.known[result["name"]] = result
        elif os.path.exists(path):
            os.remove(path)

    def add(self, result):
        self.known[result["name"]] = result
        with open(self.path, "a", encoding="ascii") as file:
            file.write(json.dumps(result) + "\n")


def prepare(cargo, mutants, dropped, args):
    """Builds the tree, drops what does not compile, builds and records the tests."""
    work = os.path.abspath(args.output)
    copy = os.path.join(work, "tree")
    os.makedirs(copy, exist_ok=True)
    env = {"CARGO_TARGET_DIR": os.path.join(work, "build"), **os.environ, "CARGO_INCREMENTAL": "1"}
    for number, mutant in enumerate(mutants, 1):
        mutant["number"] = number
    tree = Tree(os.getcwd(), copy, mutants)
    tree.dropped |= {m["number"]: dropped[m["name"]] for m in mutants if m["name"] in dropped}
    crates = [crate for crate in COMMANDS if any(crate_of(m) == crate for m in mutants)]
    tree.settle(cargo, [package(crate) for crate in crates], env)
    env |= {"NVCARACAL_CASES": str(args.lab_cases), "NVCARACAL_DISKS": "3",
            "NVCARACAL_CRASH_STRIDE": "7"}
    wanted = dict(test.partition(":")[::2] for test in args.tests.split(",") if test)
    wanted = {package(crate): pattern for crate, pattern in wanted.items()}
    nearness, commands = {}, {}
    for crate in crates:
        nearness[crate] = {}
        for near, (of, options) in enumerate(COMMANDS[crate]):
            if not (args.no_lab and of == LAB[0]) and not (args.own and of != crate) \
                    and (not wanted or package(of) in wanted):
                nearness[crate].setdefault(package(of), near)
                of_package = commands.setdefault(package(of), [])
                of_package += [option for option in pairs(options) if option not in of_package]
    start = time.monotonic()
    binaries = tests.build(cargo, copy, commands, env)
    print(f"{len(tree.alive())} of {len(mutants)} mutants compile, "
          f"{len(binaries)} tests built in {time.monotonic() - start:.0f} s", flush=True)
    runner = tests.Runner(work, env)
    recorded, failed, left_out = tests.record(runner, binaries, wanted, args.test_seconds)
    for test in failed:
        print(f"fails without a mutant: {test}; see {work}/failed.log")
    for test in left_out:
        print(f"not used, takes more than {args.test_seconds:.0f} s: {test}")
    if failed:
        sys.exit(3)
    check(runner, recorded)
    return tree, runner, recorded, nearness


def pairs(options):
    """Options of `cargo test` that belong together."""
    groups = []
    for option in options:
        if option.startswith("--"):
            groups.append((option,))
        else:
            groups[-1] += (option,)
    return groups


def crate_of(mutant):
    return mutant["file"].split("/")[1]


def check(runner, recorded):
    """A mutant that nothing can miss must be caught by the first and the last test that reach any."""
    reaching = [test for test in recorded if test.reached]
    if not reaching:
        sys.exit("error: no test reaches a mutant")
    for test in (reaching[0], reaching[-1]):
        limit = 3 * test.seconds + 5
        if runner.run(test.binary, [test.name], limit, {"MUTANT_NUMBER": "bad"}) == "passed":
            print(f"{test} does not notice a known bad mutant")
            sys.exit(3)
    print(f"{len(recorded)} tests pass without a mutant in "
          f"{sum(t.seconds for t in recorded):.0f} s and {len(reaching)} reach mutants", flush=True)


def summary(crate, names, results):
    known = [results.known[name] for name in names if name in results.known]
    count = collections.Counter(r["result"] for r in known)
    by = collections.Counter(r["package"] for r in known if r.get("package"))
    print(f"{crate}: {len(names)} made, {count.pop('dropped', 0)} do not fit or do not compile, "
          f"{sum(count.values())} run: "
          + ", ".join(f"{n} {what}" for what, n in sorted(count.items()))
          + "; by the tests of " + ", ".join(f"{p} {n}" for p, n in by.most_common()), flush=True)
    return [r for r in known if r["result"] in ("survived", "not reached")]


def run(cargo, mutants, results, args, end):
    """Runs what is to be run of the mutants of all crates, in one tree."""
    known = {name: result for of in results.values() for name, result in of.known.items()}
    # One selection has one tree: what was left over from the last run needs no build.
    dropped = {name: r["by"] for name, r in known.items() if r["result"] == "dropped"}
    again = ("survived", "not reached") if args.survivors else (None,)
    todo = [m for m in mutants if known.get(m["name"], {}).get("result") in again]
    if not todo:
        return
    held = todo if args.survivors else mutants
    tree, runner, recorded, nearness = prepare(cargo, held, dropped, args)
    for number, why in tree.dropped.items():
        mutant = tree.mutants[number]
        results[crate_of(mutant)].add({"name": mutant["name"], "result": "dropped", "by": why})
    for mutant in todo:
        if mutant["number"] in tree.dropped:
            continue
        if time.monotonic() > end:
            break
        start = time.monotonic()
        near = nearness[crate_of(mutant)]
        result = tests.notice(runner, recorded, mutant, near, args.tests_seconds)
        result = {"name": mutant["name"], **result, "seconds": round(time.monotonic() - start, 1)}
        results[crate_of(mutant)].add(result)
        print(f"{result['seconds']:6.1f} s  {result['result']}: {result['name']}  {result['by']}",
              flush=True)


def main():
    args = options()
    end = time.monotonic() + args.minutes * 60
    cargo = shlex.split(os.environ.get("CARGO", "cargo"))
    mutants = pick(listed(args.files), args)
    if args.list:
        for mutant in mutants:
            print(mutant["name"])
        return
    os.makedirs(args.output, exist_ok=True)
    crates = [crate for crate in COMMANDS if any(crate_of(m) == crate for m in mutants)]
    keep = args.resume or args.survivors
    results = {crate: Results(os.path.join(args.output, f"{crate}.jsonl"), keep)
               for crate in crates}
    run(cargo, mutants, results, args, end)
    survivors = []
    for crate in crates:
        names = [m["name"] for m in mutants if crate_of(m) == crate]
        survivors += summary(crate, names, results[crate])
    path = os.path.join(args.output, "survivors.txt")
    with open(path, "w", encoding="ascii") as file:
        for result in survivors:
            file.write(f"{result['result']}: {result['name']}\n")
    print(f"{len(survivors)} survived: {path}")
    sys.exit(1 if survivors else 0)


main()
