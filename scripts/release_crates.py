#!/usr/bin/env python3
"""What a release needs to know of the crates, from `cargo metadata`.

Usage: scripts/release_crates.py names
       scripts/release_crates.py check VERSION
       scripts/release_crates.py third-party

  names        prints the crates that are published, each after those that it depends on
  check        prints every breach: versions that differ from VERSION, requirements between crates that
               allow another version, laboratory crates that could be published, published crates that
               depend on one that is not, packages without the texts of the licences; exit code 1 if
               there is one
  third-party  prints the licences of all crates that are linked into the program, with their texts
"""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = "nvcaracal-cli"
PLATFORM = "x86_64-unknown-linux-gnu"
TEXTS = ("LICENSE-MIT", "LICENSE-APACHE")
# How the names of files with licences begin, in any case.
TEXT_NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def metadata(*arguments):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def folder(package):
    return Path(package["manifest_path"]).parent


def is_published(package):
    return package["publish"] != []


def inner(package):
    """Dependencies on crates of the workspace, other than those of tests."""
    return [d for d in package["dependencies"] if d.get("path") and d["kind"] != "dev"]


def names(packages):
    published = {p["name"]: p for p in packages if is_published(p)}
    ordered = []

    def add(name):
        if name in ordered or name not in published:
            return
        for dependency in inner(published[name]):
            add(dependency["name"])
        ordered.append(name)

    for name in sorted(published):
        add(name)
    return ordered


def breaches(packages, version):
    published = set(names(packages))
    for package in packages:
        name = package["name"]
        if package["version"] != version:
            yield f"{name} has version {package['version']}"
        if is_published(package) and folder(package).parent.name == "lab":
            yield f"{name} is of the laboratory, and has no `publish = false`"
        if not is_published(package):
            continue
        for field in ("description", "license", "readme", "rust_version"):
            if not package[field]:
                yield f"{name} has no {field}"
        for dependency in inner(package):
            if dependency["name"] not in published:
                yield f"{name} depends on {dependency['name']}, which is not published"
            if dependency["req"] != f"={version}":
                yield f"{name} requires {dependency['name']} {dependency['req']}, not ={version}"
        for text in TEXTS:
            if not (folder(package) / text).is_file():
                yield f"{name} has no {text}"


def linked(resolved):
    """The packages that are linked into the program: no build scripts, no macros."""
    packages = {p["id"]: p for p in resolved["packages"]}
    nodes = {n["id"]: n for n in resolved["resolve"]["nodes"]}
    found, waiting = {}, [i for i, p in packages.items() if p["name"] == PROGRAM]
    while waiting:
        at = waiting.pop()
        is_macro = any("proc-macro" in t["kind"] for t in packages[at]["targets"])
        if at in found or is_macro:
            continue
        found[at] = packages[at]
        for dependency in nodes[at]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return [p for p in found.values() if p["source"]]


def third_party():
    crates = sorted(linked(metadata("--filter-platform", PLATFORM)), key=lambda p: p["name"])
    by_text = {}
    print("The program nvcaracal has code of the Rust standard library (MIT OR Apache-2.0) and of these crates.\n")
    for package in crates:
        label = f"{package['name']} {package['version']}"
        texts = [
            f for f in sorted(folder(package).iterdir())
            if f.is_file() and f.name.lower().startswith(TEXT_NAMES)
        ]
        where = "" if texts else "; its package has no text"
        print(f"{label}: {package['license'] or package['license_file']}{where}")
        for text in texts:
            said = text.read_text(encoding="utf-8", errors="replace").strip()
            by_text.setdefault(said, []).append(f"{label} ({text.name})")
    for said, labels in sorted(by_text.items(), key=lambda item: item[1][0]):
        print(f"\n{'-' * 80}\n{', '.join(labels)}\n\n{said}")


def main(arguments):
    if arguments == ["third-party"]:
        third_party()
        return 0
    packages = metadata("--no-deps")["packages"]
    if arguments == ["names"]:
        print("\n".join(names(packages)))
        return 0
    if len(arguments) == 2 and arguments[0] == "check":
        found = list(breaches(packages, arguments[1]))
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
