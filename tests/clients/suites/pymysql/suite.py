"""Runs PyMySQL's own tests, each as a check.

The last archive that contains them is that of version 0.10.1, so they run with that version. Those of MySQLdb ask for sql_mode
ANSI: they run without it, as with other servers, and a check of its own asks for it.
"""

import json
import os
import pathlib
import sys

import pytest
from checks import MISSES, PORT, check, finish

ARCHIVE = pathlib.Path(os.environ["SUITE_HOME"]) / "PyMySQL-0.10.1"
TESTS = "pymysql/tests/"
LEFT_OUT = {
    # Their data is not in the archive.
    "test_load_local.py::TestLoadLocal::test_load_file",
    "test_load_local.py::TestLoadLocal::test_unbuffered_load_file",
    "test_load_local.py::TestLoadLocal::test_load_warnings",
    # They fail with any server.
    "test_issues.py::TestNewIssues::test_issue_35",
    "test_nextset.py::TestNextset::test_multi_cursor",
}
ANSI = "ANSI,STRICT_TRANS_TABLES,TRADITIONAL"


class Lines:
    """Prints a line for each test."""

    def __init__(self):
        self.spoken = set()

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if short(item.nodeid) not in LEFT_OUT]
        for item in items:
            for arguments in ("connect_kwargs", "connect_kw_args"):
                getattr(item.cls, arguments, {}).pop("sql_mode", None)

    def pytest_runtest_logreport(self, report):
        name = short(report.nodeid)
        if name in self.spoken or (report.passed and report.when != "call"):
            return
        self.spoken.add(name)
        if report.passed:
            print(f"ok {name}", flush=True)
        elif report.skipped:
            print(f"{name} is skipped: {report.longrepr[2]}", file=sys.stderr)
        else:
            MISSES.append(name)
            reason = report.longrepr.reprcrash.message if hasattr(report.longrepr, "reprcrash") else str(report.longrepr)
            print(f"MISS {name}: {' '.join(reason.split())[:500]}", flush=True)


def short(name):
    return name.rsplit("/", 1)[-1]


def main():
    databases = [dict(host="127.0.0.1", port=PORT, user="root", passwd="", db=name) for name in ("test1", "test2")]
    databases[0].update(use_unicode=True, local_infile=True)
    os.chdir(ARCHIVE)
    pathlib.Path(TESTS, "databases.json").write_text(json.dumps(databases))
    sys.path.insert(0, str(ARCHIVE))
    import pymysql

    connection = pymysql.connect(host="127.0.0.1", port=PORT, user="root")
    for database in databases:
        connection.cursor().execute(f"CREATE DATABASE {database['db']}")
    check("sql_mode of the tests", lambda: pymysql.connect(**databases[0], sql_mode=ANSI).close())
    sys.stdout.flush()
    options = ["--capture=no", "-p", "no:cacheprovider", "-p", "no:terminal"]
    pytest.main([TESTS, *options], plugins=[Lines()])
    finish()


main()
