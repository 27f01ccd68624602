"""Airflow: `db migrate` on an empty database, again, `db check`, and a DAG that is kept.

Each step is a command of Airflow in a process of its own.
"""
import os
import subprocess
import sys

from steps import step

ROOM = os.environ["ROOM"]
URL = f"postgresql+psycopg2://nvcaracal@127.0.0.1:{os.environ['PGPORT']}/nvcaracal"
ENVIRONMENT = {
    **os.environ, "AIRFLOW_HOME": ROOM, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": URL,
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": URL.replace("psycopg2", "asyncpg"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__DATABASE__MAX_DB_RETRIES": "1", "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
}


def airflow(*words):
    ended = subprocess.run([os.path.join(os.path.dirname(sys.executable), "airflow"), *words],
                           env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=240, check=False)
    if ended.returncode != 0:
        said = [line for line in ended.stdout.splitlines() if "psycopg2.errors" in line or "Error" in line]
        sys.stderr.write(ended.stdout)
        raise RuntimeError(said[0] if said else f"exit code {ended.returncode}")
    return ended.stdout


def pools():
    assert "default_pool" in airflow("pools", "list")
    airflow("pools", "set", "few", "2", "a small one")
    airflow("variables", "set", "a", "1")
    assert airflow("variables", "get", "a").strip().endswith("1")


step("db migrate", airflow, "db", "migrate")
step("db migrate again", airflow, "db", "migrate")
step("db check-migrations", airflow, "db", "check-migrations", "-t", "0")
step("db check", airflow, "db", "check")
step("pools and variables", pools)
step("connections", airflow, "connections", "add", "one", "--conn-uri", "http://example.org")
