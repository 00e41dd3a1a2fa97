"""Runs a statement in a server's catalog: catalog.py FILE SQL"""

import sqlite3
import sys

with sqlite3.connect(sys.argv[1], timeout=60) as catalog:
    catalog.execute(sys.argv[2])
catalog.close()
