#!/usr/bin/env python3
"""Makes scripts for crate sql of scripts for psql: the statements with PostgreSQL's answers.

Usage: golden_slt.py SCRIPT.sql SCRIPT.slt PSQL...    (the command that runs psql on a database)

A statement ends with a semicolon at the end of a line; commands of psql are not known here.
"""
import os
import subprocess
import sys

MARK = "-- golden --"


def statements(text: str) -> list[str]:
    """The statements, without comments."""
    found, lines = [], []
    for line in text.splitlines():
        if not line.strip() or line.startswith("--"):
            continue
        lines.append(line)
        if line.endswith(";"):
            found.append("\n".join(lines))
            lines = []
    assert not lines, lines
    return found


def record(statement: str, answer: list[str]) -> str:
    """A statement with what came of it."""
    errors = [line for line in answer if line.startswith("ERROR:")]
    if errors:
        return f"statement error ({errors[0].split()[-1]})\n{statement}\n"
    first = statement.split()[0].strip("(").upper()
    if first in ("SELECT", "VALUES", "WITH") or "RETURNING" in statement:
        if answer and answer[-1].split()[0] in ("INSERT", "UPDATE", "DELETE"):
            answer = answer[:-1]
        return "\n".join([f"query\n{statement}", "----", *answer]) + "\n"
    return f"statement ok\n{statement}\n"


def origin(source: str) -> str:
    """Where the statements are from."""
    if source.startswith("crates/"):
        return os.path.dirname(source)
    return f"scripts/{os.path.basename(source).removesuffix('.sql').split('_')[0]}_sql.py"


def main() -> None:
    source, target, *psql = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        wanted = statements(file.read())
    begin = "\\set VERBOSITY sqlstate\n\\pset null NULL\n\\pset format unaligned\n\\pset tuples_only\n"
    text = begin + "".join(f"\\echo '{MARK}'\n{statement}\n" for statement in wanted)
    run = subprocess.run(
        psql, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    answers = run.stdout.split(MARK + "\n")[1:]
    assert len(answers) == len(wanted), (len(answers), len(wanted))
    records = [record(one, answer.splitlines()) for one, answer in zip(wanted, answers)]
    head = f"# Made of {origin(source)} by scripts/golden_sql.sh: do not edit.\n\n"
    with open(target, "w", encoding="utf-8") as file:
        file.write(head + "\n".join(records))


if __name__ == "__main__":
    main()
