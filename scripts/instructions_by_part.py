"""Which parts of the engine the instructions of a transaction come from; see scripts/instructions.sh.

Takes four words for each run: its name, what callgrind wrote of few epochs and of more, and the
transactions between them. Prints a table in Markdown.
"""

import collections
import re
import sys

sys.dont_write_bytecode = True
from callgrind import costs  # noqa: E402

# What the files are part of, by the first pattern that fits.
PARTS = [
    ("declare", r"engine/src/(declaration/|epoch/(declare|sequences))"),
    ("find, insert", r"engine/src/(index|table|state/core|epoch/(insert|index_changes|remove))"),
    ("append", r"engine/src/(epoch/(append|batch)|version/(array|batch|entry|slab))"),
    ("input log", r"engine/src/(call/|epoch/log_inputs)|storage/src/input_log"),
    ("prefetch, plan", r"engine/src/(version/prefetch_policy|epoch/prefetch)"),
    ("execute, read", r"engine/src/(transaction|reads|program/procedure|version/(read|mod|cached)|"
                      r"epoch/(execute|piece|split))"),
    ("publish", r"engine/src/(epoch/(publish|reuse)|version/(publication|write|pool))"),
    ("final write", r"engine/src/version/(final_write|shapes|row_store)|"
                    r"storage/src/(row|value|pool|format)"),
    ("state hash", r"storage/src/digest"),
    ("device", r"pmem/"),
    ("procedures", r"workloads/|bench/|nvcaracal/"),
    ("the rest of an epoch", r""),
]


def by_part(few, more, transactions):
    first, second = costs(few), costs(more)
    found = collections.Counter()
    for file in second:
        part = next(name for name, pattern in PARTS if re.match(pattern, file))
        found[part] += (second[file] - first[file]) / transactions
    return found


def main():
    words = sys.argv[1:]
    runs = [(words[at], by_part(words[at + 1], words[at + 2], int(words[at + 3])))
            for at in range(0, len(words), 4)]
    table = [["part"] + [name for name, _ in runs]]
    for part in [name for name, _ in PARTS]:
        table.append([part] + [f"{round(found[part]):,}" for _, found in runs])
    table.append(["all"] + [f"{round(sum(found.values())):,}" for _, found in runs])
    widths = [max(map(len, column)) for column in zip(*table)]
    for number, row in enumerate(table):
        first, *rest = (f"{cell:>{width}}" for cell, width in zip(row, widths))
        print("| " + " | ".join([f"{row[0]:<{widths[0]}}"] + rest) + " |")
        if number == 0:
            print("|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (w + 1) + ":" for w in widths[1:]]) + "|")


main()
