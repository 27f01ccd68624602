"""Reads what callgrind wrote: instructions by file of the workspace."""

import collections
import re

SPOT = re.compile(r"^(fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$")
CALLED = re.compile(r"^c(?:fi|fl)=\((\d+)\)(?: (.*))?$")


def ours(file):
    """A file of the workspace from its crate's name on, or nothing."""
    found = re.search(r"/(?:crates|lab)/(.*)", file)
    return "" if not found or "/registry/" in file or "/rustc/" in file else found[1]


def costs(path):
    """Self cost by file of ours. What is inlined from a library counts for the last file of ours
    before it in the same function; a function of a library counts for nobody."""
    names, found = {}, collections.Counter()
    file = owner = ""
    is_call = False
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if spot := SPOT.match(line):
                kind, number, name = spot.groups()
                if kind == "fn":
                    owner = ours(file)
                    continue
                if name is not None:
                    names[number] = name
                file = names[number]
                owner = ours(file) or owner
            elif called := CALLED.match(line):
                if called[2] is not None:
                    names[called[1]] = called[2]
            elif line.startswith("calls="):
                is_call = True
            elif re.match(r"[-+*0-9]", line):
                # The line behind a call has the cost of all that was called.
                if not is_call:
                    found[owner] += int(line.split()[1])
                is_call = False
    return found
