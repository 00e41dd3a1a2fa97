"""What the Python test programs share: choosing a check by name and comparing."""

import os
import sys
import time


def equal(found, expected, what=""):
    """Fails unless both are equal, types included."""
    if found != expected or type(found) is not type(expected):
        raise AssertionError(f"{what}\n   found: {found!r}\nexpected: {expected!r}")


def wait_until(what, condition, seconds=120):
    """Waits until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain until {what}")
        time.sleep(0.1)


def main(checks):
    """Runs the check named by the first argument with the other arguments."""
    name, *arguments = sys.argv[1:]
    checks[name](*arguments)
    print("ok", flush=True)
    # The Delta reader's threads may end the interpreter with an abort on its way out.
    os._exit(0)
