"""dbt: seeds, models as tables, views and increments, tests, a second run, documents.

Each step is a command of dbt in a process of its own, on a project that is written here.
"""
import os
import subprocess
import sys

from steps import step

ROOM = os.environ["ROOM"]
FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0.0'\nprofile: shop\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": "shop:\n  target: one\n  outputs:\n    one: {type: postgres, host: 127.0.0.1, "
                    "port: %s, user: nvcaracal, pass: none, dbname: nvcaracal, schema: public, threads: 1}\n"
                    % os.environ["PGPORT"],
    "seeds/people.csv": "id,name,born\n1,Ada,1815-12-10\n2,Bob,1990-01-01\n",
    "models/adults.sql": "{{ config(materialized='table') }}\n"
                         "select id, name from {{ ref('people') }} where born < '2000-01-01'\n",
    "models/few.sql": "select count(*) as n from {{ ref('adults') }}\n",
    "models/grown.sql": "{{ config(materialized='incremental', unique_key='id') }}\n"
                        "select id, name from {{ ref('people') }}\n",
    "models/schema.yml": "version: 2\nmodels:\n  - name: adults\n    columns:\n      - name: id\n"
                         "        data_tests: [unique, not_null]\n",
    "snapshots/kept.sql": "{% snapshot kept %}\n{{ config(target_schema='public', unique_key='id', "
                          "strategy='check', check_cols=['name']) }}\n"
                          "select * from {{ ref('people') }}\n{% endsnapshot %}\n",
}


def dbt(*words):
    ended = subprocess.run([os.path.join(os.path.dirname(sys.executable), "dbt"), "--no-use-colors", *words,
                            "--project-dir", ROOM, "--profiles-dir", ROOM], cwd=ROOM, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    if ended.returncode != 0:
        sys.stderr.write(ended.stdout)
        said = ended.stdout.splitlines()
        errors = [n for n, line in enumerate(said) if "Database Error" in line]
        raise RuntimeError(said[errors[0] + 1].strip() if errors else said[-1])


for path, text in FILES.items():
    os.makedirs(os.path.dirname(os.path.join(ROOM, path)) or ROOM, exist_ok=True)
    with open(os.path.join(ROOM, path), "w", encoding="utf8") as file:
        file.write(text)
step("debug", dbt, "debug")
step("seed", dbt, "seed")
step("seed again", dbt, "seed")
step("a table", dbt, "run", "--select", "adults")
step("a view", dbt, "run", "--select", "few")
step("an increment", dbt, "run", "--select", "grown")
step("a second run", dbt, "run")
step("tests", dbt, "test")
step("a snapshot", dbt, "snapshot")
step("a second snapshot", dbt, "snapshot")
step("documents", dbt, "docs", "generate")
