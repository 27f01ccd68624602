"""Which files of a crate import each other in a circle.

Usage: scripts/imports.py [--rooms] [--edges] CRATE...      (folders with a folder `src`; needs python3)
       scripts/imports.py --itself                          checks that it finds a circle

    --rooms   not even a circle of rooms: a module and its folder are a room, a file beside `lib.rs` is one
    --edges   print what each file imports

A file imports another one if it names something that is defined there: by `use`, or by a path that
begins with `crate`, `self`, `super` or a module. A re-export counts for nobody but is followed. Modules
that are compiled for tests only, and what a macro says for others (`$crate`), do not count. Prints a line
for each circle of more than two files; exit code 1 if there is one.
"""

import collections
import pathlib
import re
import sys
import tempfile

FILES_MAX = 2
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![$\w])[a-z_][a-z_0-9]*(?:::[A-Za-z_][A-Za-z_0-9]*)+")
OF_TESTS = re.compile(
    r"#\[cfg\((?:all\()?test[^\]]*\]\s*(?:pub(?:\([a-z]+\))? )?mod (\w+)(;|\s*\{)")
NOT_CODE = re.compile(
    r"""//[^\n]*|\br(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])'""", re.DOTALL)


def names(tree):
    """The paths of a use tree, each with the name that it gets: `a::{b, c as d}`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        steps = [step.strip() for step in path.split("::")]
        yield steps, alias.strip() or steps[-1]
        return
    depth, start = 0, 0
    inner = rest[: rest.rindex("}")] + ","
    for at, char in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if inner[start:at].strip():
                yield from names(head + inner[start:at].strip())
            start = at + 1


class Crate:
    """The modules of a crate, by their paths."""

    def __init__(self, folder):
        self.source = pathlib.Path(folder, "src")
        self.code, of_tests = {}, set()
        for file in sorted(self.source.rglob("*.rs")):
            steps = list(file.relative_to(self.source).with_suffix("").parts)
            if steps[-1] in ("mod", "lib", "main"):
                steps.pop()
            code = NOT_CODE.sub("", file.read_text())
            for found in OF_TESTS.finditer(code):
                if found[2] == ";":
                    of_tests.add((*steps, found[1]))
                else:
                    code = code[: found.start()]
                    break
            self.code[tuple(steps)] = (file, code)
        for module in list(self.code):
            if any(module[: len(tests)] == tests for tests in of_tests):
                del self.code[module]
        self.uses = {module: self.used(module) for module in self.code}

    def used(self, module):
        """What a module has by `use`: for each name its path, and whether it only re-exports it."""
        _, code = self.code[module]
        found = {}
        for use in USE.finditer(code):
            for path, name in names(use[2]):
                if path[-1] == "self":
                    path, name = path[:-1], path[-2]
                found[name] = (self.absolute(module, path), bool(use[1]))
        return found

    def absolute(self, module, path):
        """The steps of a path from the crate's root, or nothing if it leads elsewhere."""
        if path[0] == "crate":
            return tuple(path[1:])
        if path[0] == "self":
            return (*module, *path[1:])
        if path[0] == "super":
            while path and path[0] == "super":
                module, path = module[:-1], path[1:]
            return (*module, *path)
        return (*module, *path) if (*module, path[0]) in self.code else ()

    def defined(self, path, seen=()):
        """The module that a path leads to, by re-exports if need be."""
        if not path or path in seen:
            return None
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self.code)
        module, rest = path[:length], path[length:]
        if rest and rest[0] in self.uses.get(module, {}):
            further = self.uses[module][rest[0]][0]
            return self.defined((*further, *rest[1:]), (*seen, path)) if further else None
        return module

    def imports(self):
        """The modules that each module imports."""
        edges = collections.defaultdict(set)
        for module, (_, code) in self.code.items():
            paths = [path for path, is_export in self.uses[module].values() if not is_export]
            for found in PATH.findall(USE.sub("", code)):
                first, *further = found.split("::")
                if first in self.uses[module]:
                    of_first, _ = self.uses[module][first]
                    paths.append((*of_first, *further) if of_first else ())
                else:
                    paths.append(self.absolute(module, [first, *further]))
            edges[module] = {self.defined(path) for path in paths} - {module, None}
        return edges

def shown(module):
    return "::".join(module) or "root"


def circles(edges):
    """Sets of nodes that lead to each other, of more than one node."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def check_itself():
    """A circle through a tree, re-exports, a child's name and a path; nothing from tests or macros."""
    sources = {
        "lib": "mod a;\npub use a::A;\n",
        "a": "use crate::{b::{B, C as D}, d};\npub struct A;\n",
        "b/mod": "mod c;\npub(crate) use self::c::{B, C};\n",
        "b/c": "use super::super::d::x;\npub struct B;\nconst QUOTE: char = '\"';\n",
        "d": "// use crate::e::E;\nfn x() {\n    crate::A::new();\n    $crate::e::y();\n}\n",
        "e": "use crate::d::x;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources.items():
            file = pathlib.Path(folder, "src", name + ".rs")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source)
        edges = Crate(folder).imports()
    found = circles(edges)
    if found != [[("a",), ("b", "c"), ("d",)]] or edges[("e",)] != {("d",)}:
        print("scripts/imports.py does not find the circle of its own test:", found, dict(edges))
        return 1
    return 0


def main(arguments):
    if arguments == ["--itself"]:
        return check_itself()
    options = {argument for argument in arguments if argument.startswith("--")}
    failed = False
    for folder in (argument for argument in arguments if argument not in options):
        crate = Crate(folder)
        edges = crate.imports()
        if "--edges" in options:
            for module, others in sorted(edges.items()):
                print(shown(module), "->", *map(shown, sorted(others)))
        for circle in circles(edges):
            if len(circle) > FILES_MAX:
                failed = True
                print("a circle of files:", *(str(crate.code[module][0]) for module in circle))
        rooms = collections.defaultdict(set)
        for module, others in edges.items():
            rooms[module[:1]] |= {other[:1] for other in others} - {module[:1]}
        for circle in circles(rooms) if "--rooms" in options else ():
            failed = True
            print(f"a circle of rooms of {folder}:", *map(shown, circle))
    return int(failed)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    sys.exit(main(sys.argv[1:]))
