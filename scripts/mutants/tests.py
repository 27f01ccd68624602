"""The tests that can notice a mutant: built once, recorded once, and run in parts.

A run of each test without a mutant records how long it takes and which functions with mutants it
reaches. A test that does not reach a mutant's function cannot notice the mutant.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

# Beyond this a test takes so long that others go first, and it runs alone.
SLOW_SECONDS = 1.0
# A mutant may write for ever.
FILE_BYTES = 8 << 30
# On a busy machine a test takes so many times its processor time.
WAITS = 6


def limits(seconds):
    """Limits of a test: `seconds` of the processor, which what else runs does not shorten."""
    seconds = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A mutant may allocate for ever too, and must be the first to go. Devices reserve so much
    # address space that a limit of it would fail the tests.
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


class Test:
    """One test function of one binary."""

    def __init__(self, binary, name):
        self.binary, self.name = binary, name
        self.seconds, self.reached = 0.0, frozenset()

    def __str__(self):
        return f"{self.binary['label']} {self.name}"


class Runner:
    """Runs tests of the built binaries within limits of time and space."""

    def __init__(self, work, env):
        self.work, self.env = work, env
        self.scratch = os.path.join(work, "tmp")
        self.log = os.path.join(work, "last.log")

    def run(self, binary, names, seconds, extra):
        """Whether the tests pass, within so many seconds of the processor: `passed`, `failed` or
        `without end`."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        env = {**self.env, "TMPDIR": self.scratch, "RUST_BACKTRACE": "0", **extra,
               "CARGO_MANIFEST_DIR": binary["folder"]}
        with open(self.log, "wb") as log:
            process = subprocess.Popen(
                [binary["path"], "--exact", *names], cwd=binary["folder"], env=env, stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=lambda: limits(seconds))
            try:
                process.wait(timeout=WAITS * seconds)
                outcomes = {0: "passed", -signal.SIGKILL: "without end"}
                result = outcomes.get(process.returncode, "failed")
            except subprocess.TimeoutExpired:
                result = "without end"
            finally:
                # Children of the test too, which may outlive it.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        return result

    def failing(self):
        """The name of a test that failed in the last run."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            found = re.search(r"^test (\S+).* FAILED$", log.read(20 << 20), re.MULTILINE)
        return found.group(1) if found else ""


def build(cargo, tree, commands, env):
    """Builds the tests of some packages and returns their binaries."""
    binaries = {}
    for package, options in commands.items():
        options = [word for option in options for word in option]
        run = subprocess.run(
            [*cargo, "test", "--locked", "--no-run", "--message-format=json", "-p", package,
             *options], cwd=tree, env=env, stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            raise SystemExit(f"error: the tests of {package} do not build")
        for line in run.stdout.splitlines():
            message = json.loads(line) if line.startswith("{") else {}
            if not message.get("executable") or not message["profile"]["test"]:
                continue
            target = message["target"]
            name = "lib" if "lib" in target["kind"] else target["name"]
            binaries[message["executable"]] = {
                "path": message["executable"], "label": f"{package} {name}",
                "package": package, "folder": os.path.dirname(message["manifest_path"])}
    return list(binaries.values())


def names(binary, env):
    def listed(*options):
        out = subprocess.run([binary["path"], "--list", *options], check=True, env=env,
                             cwd=binary["folder"], capture_output=True, text=True).stdout
        return {line[:-6] for line in out.splitlines() if line.endswith(": test")}
    return sorted(listed() - listed("--ignored"))


def record(runner, binaries, wanted, seconds_max):
    """Runs each test alone without a mutant; tells what failed and what took too long. `wanted` has
    a pattern by package that the names of its tests must match. What is known of a binary from the
    run before is not found out again."""
    path = os.path.join(runner.work, "recorded.json")
    known = {}
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            known = json.load(file)
    tests, failed, left_out, now = [], [], [], {}
    for binary in binaries:
        part = wanted.get(binary["package"], "")
        built = os.stat(binary["path"]).st_mtime_ns
        for name in (name for name in names(binary, runner.env) if re.search(part, name)):
            test = Test(binary, name)
            key = f"{binary['path']} {built} {name}"
            found = known.get(key) or record_test(runner, test, seconds_max)
            result, test.seconds, reached = found
            test.reached = frozenset(reached)
            if result == "passed":
                now[key] = found
            if result == "without end" or test.seconds > seconds_max:
                left_out.append(test)
                continue
            if result == "failed":
                failed.append(test)
            tests.append(test)
    with open(path, "w", encoding="ascii") as file:
        json.dump(now, file)
    return tests, failed, left_out


def record_test(runner, test, seconds_max):
    """How a test ends without a mutant, after how many seconds, and which functions it reaches."""
    reached = os.path.join(runner.work, "reached")
    if os.path.exists(reached):
        os.remove(reached)
    start = time.monotonic()
    result = runner.run(test.binary, [test.name], seconds_max, {"MUTANT_REACHED": reached})
    seconds = time.monotonic() - start
    if result == "failed":
        shutil.copy(runner.log, os.path.join(runner.work, "failed.log"))
    functions = []
    if os.path.exists(reached):
        with open(reached, encoding="ascii") as file:
            functions = sorted({int(line) for line in file.read().split()})
    return result, seconds, functions


def groups(tests, function, near):
    """The tests that reach a function: quick ones of a binary together, nearest first, then others.
    `near` says of each package whose tests count how near it is."""
    reaching = [t for t in tests if function in t.reached and t.binary["package"] in near]
    quick = {}
    for test in reaching:
        if test.seconds < SLOW_SECONDS:
            quick.setdefault(test.binary["path"], []).append(test)
    slow = [[t] for t in reaching if t.seconds >= SLOW_SECONDS]

    def order(group):
        return near[group[0].binary["package"]], sum(t.seconds for t in group)

    return sorted(quick.values(), key=order) + sorted(slow, key=order)


def notice(runner, tests, mutant, near, budget):
    """Runs what reaches the mutant until something notices it."""
    order = groups(tests, mutant["in"], near)
    result = {"result": "survived" if order else "not reached", "by": "", "left": 0}
    for done, group in enumerate(order):
        expected = sum(test.seconds for test in group)
        if expected > budget:
            result["left"] = sum(map(len, order[done:]))
            break
        budget -= expected
        how = runner.run(group[0].binary, [t.name for t in group], 3 * expected + 5,
                         {"MUTANT_NUMBER": str(mutant["number"])})
        if how != "passed":
            result["result"] = "caught" if how == "failed" else "caught, without end"
            result["package"] = group[0].binary["package"]
            result["by"] = f"{group[0].binary['label']} {runner.failing()}".strip()
            break
    return result
