"""What the Python programs of the suites share: running checks and comparing."""

import os
import sys
import traceback

PORT = int(os.environ["SUITE_PORT"])
HTTP = int(os.environ["SUITE_HTTP"])
QUICK = "SUITE_QUICK" in os.environ
MISSES = []


def equal(found, expected):
    """Fails unless both are equal."""
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def check(name, body, *expected):
    """Runs a check and prints how it went; with `expected`, the body must return it."""
    try:
        found = body()
        if expected:
            equal(found, *expected)
    except Exception as problem:  # a check may fail in any way a client can
        MISSES.append(name)
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        print(f"MISS {name}: {reason[:700]}", flush=True)
        traceback.print_exc(limit=-3)
    else:
        print(f"ok {name}", flush=True)


def finish():
    """Ends the program with a code that tells whether all checks passed."""
    sys.stdout.flush()
    os._exit(1 if MISSES else 0)
