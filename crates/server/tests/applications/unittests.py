"""Runs a file of tests/clients and tells each of its tests as a step.

Usage: unittests.py FILE PORT      (scripts/applications.sh calls this)
"""
import os
import runpy
import sys
import unittest

from steps import failed, first_line, passed


class Steps(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        passed(test.id())

    def addError(self, test, error):
        super().addError(test, error)
        failed(test.id(), first_line(error[1]))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        failed(test.id(), first_line(error[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        failed(test.id(), reason)


def run():
    unittest.TextTestRunner.resultclass = Steps
    sys.argv.pop(0)
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    run()
