"""Django: tests/clients/django_test.py."""
import os
import sys

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients")
sys.path.insert(0, CLIENTS)
sys.argv = ["unittests.py", os.path.join(CLIENTS, "django_test.py"), os.environ["PGPORT"]]

import unittests  # noqa: E402

unittests.run()
