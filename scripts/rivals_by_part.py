"""How many instructions of a transaction each deterministic rival takes, by part, counted by callgrind
in fixed small runs with one worker: those within its batches, in steady state.

    CARGO_PROFILE_DEV_OPT_LEVEL=3 cargo build -p nvcaracal-lab
    python3 scripts/rivals_by_part.py [BINARY [PATTERN]]

BINARY is the laboratory's program (default target/debug/nvcaracal-lab), which must have debug
information about lines. PATTERN is a part of the names of workloads. Each run is made twice, with few batches and
with more; the difference is that of the last batches, so that loading drops out. What is inlined from
a library counts for the file that it stands in. Prints a table in Markdown for each workload. Needs
valgrind; exit code 3 if there is none.
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from callgrind import costs  # noqa: E402

ENGINES = ["serial", "calvin", "orthrus", "bohm", "caracal", "granola", "pwv", "aria", "bcdb"]
# A workload's name, its options, and the transactions of a batch. TPC-C is not among them: its tables
# reserve more address space than valgrind can spare.
WORKLOADS = [
    ("ycsb high, pieces", "ycsb --rows 20000 --contention high --pieces", 200),
    ("smallbank", "smallbank --customers 18000 --contention low", 2000),
]
FEW, MORE = 3, 7
# What counts: the batches of every engine, but not its closures, which would end the counting.
BATCH = "*BatchEngine>::run"
# What the files are part of, by the first pattern that fits.
PARTS = [
    ("declare", r"testbed/src/batch/(declare|sequences)"),
    ("footprints, partitions", r"testbed/src/batch/(footprint|division)"),
    ("locks, cuts, graphs", r"testbed/src/batch/(locking/|partitions/(cut|graph))"),
    ("make versions, buffers", r"testbed/src/batch/(bohm/(versions|kept|store)|snapshot/log)"),
    ("index", r"testbed/src/(batch/(flat|tables)|index/)"),
    ("values", r"testbed/src/batch/rows"),
    ("execute", r"testbed/src/batch/"),
    ("procedures", r"workloads/"),
    ("the rest", r""),
]


def counted(binary, room, engine, options, size, batches):
    """Instructions by file of so many batches."""
    out = room / "callgrind"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
               f"--toggle-collect={BATCH}", binary, "bench", *options.split(), "--design", engine,
               "--workers", "1", "--epoch-size", str(size), "--epochs", str(batches),
               "--no-progress"]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{said.stdout}{said.stderr}")
    return costs(out)


def by_part(binary, room, engine, options, size):
    few, more = (counted(binary, room, engine, options, size, n) for n in (FEW, MORE))
    found = collections.Counter()
    for file in more:
        part = next(name for name, pattern in PARTS if re.match(pattern, file))
        found[part] += (more[file] - few[file]) / ((MORE - FEW) * size)
    return found


def table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for number, row in enumerate(rows):
        first, *rest = (f"{cell:>{width}}" for cell, width in zip(row, widths))
        print("| " + " | ".join([f"{row[0]:<{widths[0]}}"] + rest) + " |")
        if number == 0:
            print("|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (w + 1) + ":" for w in widths[1:]])
                  + "|")


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "target/debug/nvcaracal-lab"
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    if shutil.which("valgrind") is None:
        print("error: valgrind is not installed: instructions were not counted", file=sys.stderr)
        sys.exit(3)
    with tempfile.TemporaryDirectory() as room:
        for workload, options, size in WORKLOADS:
            if wanted not in workload:
                continue
            found = [by_part(binary, pathlib.Path(room), engine, options, size)
                     for engine in ENGINES]
            print(f"\n{workload}\n")
            rows = [["part"] + ENGINES]
            for part in [name for name, _ in PARTS]:
                rows.append([part] + [f"{round(of[part]):,}" for of in found])
            rows.append(["all"] + [f"{round(sum(of.values())):,}" for of in found])
            table(rows)


main()
