"""Runs a project of dbt through an adapter, and reads with MySQL's driver what became of its tables."""

import json
import os
import pathlib
import shutil
import sys

import mysql.connector
from dbt.cli.main import dbtRunner

from checks import PORT, check, finish

ADAPTER, SCHEMA, PROFILE = sys.argv[1], "dbt_shop", pathlib.Path(os.environ["SUITE_WORK"]) / "project"
OUTPUTS = {
    "doris": {"type": "doris", "host": "127.0.0.1", "username": "root"},
    "mysql": {"type": "mysql", "server": "127.0.0.1", "username": "root", "ssl_disabled": True},
}
os.environ.update(DBT_SEND_ANONYMOUS_USAGE_STATS="false", DBT_USE_COLORS="false", DBT_PROFILES_DIR=str(PROFILE))


def make_project():
    shutil.copytree(pathlib.Path(__file__).parent / "dbt", PROFILE)
    output = dict(OUTPUTS[ADAPTER], port=PORT, password="", schema=SCHEMA, threads=1)
    # YAML includes JSON.
    (PROFILE / "profiles.yml").write_text(json.dumps({"shop": {"target": "here", "outputs": {"here": output}}}))
    os.chdir(PROFILE)


def dbt(*arguments, fails=False):
    """Runs a command of dbt and returns the message of each node; a failure of one is an error."""
    result = dbtRunner().invoke([*arguments, "--quiet"])
    if result.exception:
        raise result.exception
    nodes = getattr(result.result, "results", None) or []
    messages = {node.node.name: f"{node.status} {node.message or ''}" for node in nodes if hasattr(node, "node")}
    if not result.success and not fails:
        raise AssertionError("; ".join(f"{name}: {text}" for name, text in messages.items()
                                       if not text.startswith(("success", "pass"))) or "it failed")
    return messages


def rows(query):
    connection = mysql.connector.connect(host="127.0.0.1", port=PORT, user="root", database=SCHEMA)
    try:
        cursor = connection.cursor()
        cursor.execute(query)
        return [tuple(str(value) for value in row) for row in cursor.fetchall()]
    finally:
        connection.close()


def models():
    """Returns what the models hold: the tables, the views over an alias, and the counts of both incremental tables."""
    return (rows("SELECT id, name, amount FROM orders ORDER BY id"), rows("SELECT n, twice FROM twice ORDER BY n"),
            rows("SELECT c FROM counted"), rows("SELECT count(*), count(DISTINCT id) FROM merged"), rows("SELECT count(*) FROM appended"))


ORDERS = [("1", "ann", "10.50"), ("2", "bob", "20.25"), ("3", "c,d", "0.00")]
TWICE = [("ann", "21.00"), ("bob", "40.50"), ("c,d", "0.00")]


def change_seed():
    seed = PROFILE / "seeds/raw_orders.csv"
    seed.write_text(seed.read_text().replace("20.25", "30.25") + "4,eve,1.00,2024-01-04\n")
    dbt("seed")
    return rows("SELECT count(*), sum(amount) FROM raw_orders")


def catalog():
    dbt("docs", "generate")
    nodes = json.loads((PROFILE / "target/catalog.json").read_text())["nodes"]
    return [column["name"] for column in sorted(nodes["model.shop.orders"]["columns"].values(), key=lambda c: c["index"])]


def failing_test():
    """Makes a test fail, which must be told apart from an error of the server."""
    schema = PROFILE / "models/schema.yml"
    whole = schema.read_text()
    schema.write_text(whole.replace("[ann, bob,", "[ann,"))
    try:
        return [text[:4] for name, text in dbt("test", fails=True).items() if name.startswith("accepted_values")]
    finally:
        schema.write_text(whole)


# A process that dbt starts reads this file again, and must not run it.
if __name__ == "__main__":
    make_project()
    check("debug", lambda: dbt("debug"))
    check("seed", lambda: (dbt("seed"), rows("SELECT id, name, amount, day FROM raw_orders ORDER BY id"))[1],
          [(*order, f"2024-01-0{order[0]}") for order in ORDERS])
    check("run", lambda: (dbt("run"), models())[1], (ORDERS, TWICE, [("2",)], [("3", "3")], [("3",)]))
    check("run a second time", lambda: (dbt("run"), models())[1], (ORDERS, TWICE, [("2",)], [("3", "3")], [("4",)]))
    check("test", lambda: sorted(text.split()[0] for text in dbt("test").values()), ["pass"] * 4)
    check("a test that must fail", failing_test, ["fail"])
    check("docs generate", catalog, ["id", "name", "amount", "day"])
    check("snapshot", lambda: (dbt("snapshot"), rows("SELECT count(*), count(dbt_valid_to) FROM history"))[1], [("3", "0")])
    check("snapshot without changes", lambda: (dbt("snapshot"), rows("SELECT count(*), count(dbt_valid_to) FROM history"))[1],
          [("3", "0")])
    check("seed changed rows", change_seed, [("4", "41.75")])
    check("snapshot of changes", lambda: (dbt("snapshot"), rows("SELECT count(*), count(dbt_valid_to), count(DISTINCT id) FROM history"))[1],
          [("5", "1", "4")])
    check("run over changed rows", lambda: (dbt("run"), rows("SELECT id, amount FROM merged ORDER BY id"))[1],
          [("1", "10.50"), ("2", "30.25"), ("3", "0.00"), ("4", "1.00")])
    check("run --full-refresh", lambda: (dbt("run", "--full-refresh"), rows("SELECT count(*) FROM appended"))[1], [("4",)])
    check("seed --full-refresh", lambda: (dbt("seed", "--full-refresh"), rows("SELECT count(*) FROM raw_orders"))[1], [("4",)])
    check("build", lambda: (dbt("build"), rows("SELECT count(*) FROM orders"))[1], [("4",)])
    finish()
