"""A small app of Django, for django_test.py."""
