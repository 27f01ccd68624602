"""Django: tests/clients/django_test.py, with one migration that is no single block: PostgreSQL does
not alter a table of which keys are still to be checked.
"""
import importlib
import os
import sys

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients")
sys.path.insert(0, CLIENTS)
importlib.import_module("django_shop.migrations.0002_changes").Migration.atomic = False
sys.argv = ["unittests.py", os.path.join(CLIENTS, "django_test.py"), os.environ["PGPORT"]]

import unittests  # noqa: E402

unittests.run()
