"""A copy of the sources that holds all mutants at once, each chosen by its number while it runs.

A function with mutants gets a body `match chosen(function) { 17 => { mutant 17 } _ => { original }
}`, so that one build serves all mutants of a crate. Knows nothing of tests. Sources are ASCII, so
columns are bytes.
"""

import bisect
import json
import os
import re
import subprocess
import zlib

# What the compiler refuses although a mutant may well do it.
LINTS = ["arithmetic_overflow", "overflowing_literals", "unconditional_panic"]

# The crates that have the runtime.
HOMES = ("crates/values/src/lib.rs", "crates/pmem/src/lib.rs")

# Goes into `values` and `pmem`: every other crate knows one of them. Functions are numbered too, so
# that a run of the tests without a mutant can record which functions each of them reaches.
RUNTIME = '''//! Which mutant is chosen. Made by scripts/mutants.sh.
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const UNKNOWN: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;
const KNOWN_BAD: u32 = u32::MAX - 2;
/// `EMFILE`.
const NO_DESCRIPTORS: i32 = 24;
static CHOSEN: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: [AtomicBool; @FUNCTIONS@] = [const { AtomicBool::new(false) }; @FUNCTIONS@];

#[inline]
pub fn chosen(function: usize) -> u32 {
    let number = CHOSEN.load(Relaxed);
    if number < KNOWN_BAD { number } else { first(function, number) }
}

#[cold]
fn first(function: usize, mut number: u32) -> u32 {
    if number == UNKNOWN {
        number = match std::env::var("MUTANT_NUMBER") {
            Ok(text) if text == "bad" => KNOWN_BAD,
            Ok(text) => text.parse().expect("MUTANT_NUMBER is a number"),
            Err(_) if std::env::var_os("MUTANT_REACHED").is_some() => RECORDING,
            Err(_) => 0,
        };
        CHOSEN.store(number, Relaxed);
    }
    assert_ne!(number, KNOWN_BAD, "the mutant that every test notices");
    if number < KNOWN_BAD {
        return number;
    }
    if !REACHED[function].swap(true, Relaxed) {
        let path = std::env::var_os("MUTANT_REACHED").expect("a file to record in");
        let file = std::fs::File::options().create(true).append(true).open(path);
        let noted = file.and_then(|mut file| file.write_all(format!("{function}\\n").as_bytes()));
        match noted {
            // A test may leave itself no descriptors: the next call is recorded.
            Err(error) if error.raw_os_error() == Some(NO_DESCRIPTORS) => {
                REACHED[function].store(false, Relaxed);
            }
            other => other.expect("what is reached can be recorded"),
        }
    }
    0
}
'''


def home(path):
    """The crate that has the runtime for a source file: neither of the two knows the other."""
    return "values" if path.split("/")[1] in ("values", "sql", "server") else "pmem"


class Source:
    """Text of a file, with places as cargo-mutants names them."""

    def __init__(self, text):
        self.text = text
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def place(self, at):
        return self.starts[at["line"] - 1] + at["column"] - 1

    def span(self, span):
        return self.place(span["start"]), self.place(span["end"])


def skip_quoted(text, at):
    """The place behind a comment, string, character or lifetime that begins here, or `at`."""
    if text.startswith("//", at):
        return text.index("\n", at)
    if text[at] == '"':
        at += 1
        while text[at] != '"':
            at += 2 if text[at] == "\\" else 1
        return at + 1
    if text[at] == "'" and text[at + 2] == "'":
        return at + 3
    return at


def find_body(text, start):
    """The place of the brace that opens the body of a function that begins at `start`."""
    depth, at = 0, start
    while True:
        behind = skip_quoted(text, at)
        if behind > at:
            at = behind
            continue
        if text[at] in "([":
            depth += 1
        elif text[at] in ")]":
            depth -= 1
        elif text[at] == "{" and depth == 0:
            return at
        at += 1


class Function:
    """A function with mutants; functions within it count as part of it."""

    def __init__(self, number, start, end):
        self.number, self.start, self.end = number, start, end
        self.mutants = []


class Tree:
    """The mutants of all crates, and the copy of the sources that holds them."""

    def __init__(self, root, copy, mutants):
        self.root, self.copy = root, copy
        # Of the crates of the copy: another one for each place, as builds may share a directory.
        self.version = f"0.1.{997_000 + zlib.crc32(os.path.abspath(copy).encode()) % 1000}"
        self.mutants = {mutant["number"]: mutant for mutant in mutants}
        self.dropped = {}
        self.files = {}
        # Of each generated file: where lines begin that belong to a function or mutant, and to which.
        self.lines = {}
        count = 0
        for mutant in mutants:
            if mutant["function"] is None:
                self.dropped[mutant["number"]] = "not in a function"
                continue
            source, functions = self.files.setdefault(
                mutant["file"], (Source(self.read(mutant["file"])), []))
            start, end = source.span(mutant["function"]["span"])
            found = next((f for f in functions if f.start <= start and end <= f.end), None)
            if found is None:
                inner = [f for f in functions if start <= f.start and f.end <= end]
                found = Function(count, start, end)
                count += 1
                for function in inner:
                    found.mutants += function.mutants
                    functions.remove(function)
                functions.append(found)
            found.mutants.append(mutant)
        for _, functions in self.files.values():
            for function in functions:
                for mutant in function.mutants:
                    mutant["in"] = function.number
        self.functions_count = max(count, 1)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="ascii") as file:
            return file.read()

    def alive(self):
        """The mutants that compile, as far as is known."""
        return [m for n, m in self.mutants.items() if n not in self.dropped]

    def write(self):
        """Copies what is in the tree and writes the mutants; touches only what changes."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, check=True, capture_output=True, text=True).stdout
        kept = set()
        for path in filter(None, listed.split("\0")):
            if not os.path.isfile(os.path.join(self.root, path)) or path.endswith(".profraw"):
                continue
            kept.add(path)
            if path in self.files:
                data = self.generate(path).encode()
            else:
                with open(os.path.join(self.root, path), "rb") as file:
                    data = file.read()
            if path in ("Cargo.toml", "Cargo.lock"):
                data = self.of_its_own(path, data)
            if path in HOMES:
                data += b"#[doc(hidden)]\npub mod mutants;\n"
            self.update(path, data)
        runtime = RUNTIME.replace("@FUNCTIONS@", str(self.functions_count))
        for path in (root.replace("lib.rs", "mutants.rs") for root in HOMES):
            self.update(path, runtime.encode())
            kept.add(path)
        for folder, _, names in os.walk(self.copy):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.copy) not in kept:
                    os.remove(path)

    def of_its_own(self, path, data):
        """The workspace of the copy: it has a version of its own, so that cargo tells its crates from
        those of the same names beside it, and what a mutant leaves unused or overflows is no error."""
        text = data.decode()
        if path == "Cargo.toml":
            text = re.sub(r'(?m)^(\[workspace\.package\]\nversion) = .*$', rf'\1 = "{self.version}"', text)
            text = text.replace("[workspace.lints.rust]\n",
                                "".join(["[workspace.lints.rust]\n", *(f'{lint} = "allow"\n'
                                                                       for lint in LINTS)]))
            text = text.replace('unsafe_op_in_unsafe_fn = "deny"', 'unsafe_op_in_unsafe_fn = "allow"')
        else:
            text = re.sub(r'(?m)^(name = "nvcaracal.*\nversion) = .*$', rf'\1 = "{self.version}"', text)
        return text.encode()

    def update(self, path, data):
        target = os.path.join(self.copy, path)
        if os.path.isfile(target):
            with open(target, "rb") as file:
                if file.read() == data:
                    return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)

    def generate(self, path):
        """The text of a file with its mutants, and whose each of its lines is."""
        source, functions = self.files[path]
        text, out, line, at, marks = source.text, [], 1, 0, []

        def put(piece, owner):
            nonlocal line
            marks.append((line, owner))
            out.append(piece)
            line += piece.count("\n")

        for function in sorted(functions, key=lambda f: f.start):
            live = [m for m in function.mutants if m["number"] not in self.dropped]
            if not live:
                continue
            body = find_body(text, function.start)
            head = text[function.start:body]
            # A function of many bodies in every caller would take for ever to compile.
            head = head.replace("#[inline(always)]", "")
            put(text[at:function.start], None)
            name = "crate" if path.split("/")[1] == home(path) else f"::{home(path)}"
            put(f"{head}{{ match {name}::mutants::chosen({function.number}) {{\n",
                ("function", function))
            for mutant in live:
                start, end = source.span(mutant["span"])
                changed = text[body:start] + mutant["replacement"] + text[end:function.end]
                put(f"{mutant['number']} =>\n{changed}\n", ("mutant", mutant["number"]))
            put(f"_ =>\n{text[body:function.end]}\n}} }}", ("function", function))
            put("\n", None)
            at = function.end
        put(text[at:], None)
        self.lines[path] = marks
        return "".join(out)

    def owner(self, path, line):
        marks = self.lines.get(path, [])
        index = bisect.bisect_right([mark[0] for mark in marks], line) - 1
        return marks[index][1] if index >= 0 else None

    def drop(self, message):
        """Drops what a compiler's error is about: one mutant, or a whole function."""
        places = [s for s in message["spans"] if s["is_primary"]] + message["spans"]
        for child in message["children"]:
            places += child["spans"]
        for place in places:
            # The macro's use is what was written, not the macro.
            while place.get("expansion") and place["file_name"] not in self.lines:
                place = place["expansion"]["span"]
            owner = self.owner(place["file_name"], place["line_start"])
            if owner and owner[0] == "mutant":
                self.dropped[owner[1]] = message["message"]
                return True
        for place in places:
            owner = self.owner(place["file_name"], place["line_start"])
            if owner:
                for mutant in owner[1].mutants:
                    self.dropped.setdefault(mutant["number"], message["message"])
                return True
        return False

    def settle(self, cargo, packages, env):
        """Drops mutants until the rest compiles."""
        while True:
            self.write()
            run = subprocess.run(
                [*cargo, "check", "--locked", "--keep-going", "--message-format=json",
                 *(word for package in packages for word in ("-p", package))],
                cwd=self.copy, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if run.returncode == 0:
                return
            before, unknown = len(self.dropped), []
            for line in run.stdout.splitlines():
                message = json.loads(line).get("message") if line.startswith("{") else None
                if message and message["level"] == "error" and message["spans"]:
                    if not self.drop(message):
                        unknown.append(message["rendered"])
            print(f"{len(self.dropped)} mutants do not fit or do not compile", flush=True)
            if len(self.dropped) == before:
                raise SystemExit("error: the copy does not compile:\n"
                                 + "\n".join(unknown) + run.stderr[-3000:])
