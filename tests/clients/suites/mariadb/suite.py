"""Dumps, restores into a second server, imports and administers with MariaDB's programs, as they are by default."""

import os
import pathlib
import subprocess

from checks import PORT, check, equal, finish
from server import Server

WORK = pathlib.Path(os.environ["SUITE_WORK"])
ROWS = 500
# Of a server that a dump is restored into, as suite.toml has them.
SETTINGS = {"TRIBUTARY_MYSQL_DDL": "compat"}
NAMES = ["a''b", "back\\\\slash", "tab\\there", "line\\nbreak", "ünï", "semi;colon", "-- dash", ""]


def run(program, *arguments, port=PORT, text=None, database=()):
    """Runs a program against a server and returns its output; a failure or a complaint is an error."""
    done = subprocess.run([program, "-h127.0.0.1", f"-P{port}", "-uroot", *map(str, arguments), *database],
                          input=text, capture_output=True, text=True)
    if done.returncode != 0 or "ERROR" in done.stderr or "Error" in done.stderr:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def query(statement, port=PORT):
    return run("mariadb", "-BN", "-e", statement, port=port).splitlines()


def make_data():
    """Makes two tables, with each type that MySQL and the server share, and a view over one of them."""
    values = [
        f"({n},'{NAMES[n % len(NAMES)]}',{n}.25,'2024-01-{n % 28 + 1:02}','2024-02-01 10:00:{n % 60:02}',{n / 4},{n % 2},"
        + (f"'note {n}'" if n % 3 else "NULL") + ")" for n in range(ROWS)
    ]
    run("mariadb", text=f"""
        CREATE DATABASE shop; CREATE DATABASE other;
        CREATE TABLE shop.orders (id INT, name VARCHAR(50), amount DECIMAL(10,2), day DATE, moment DATETIME, part DOUBLE,
            done BOOLEAN, note STRING);
        CREATE TABLE shop.customers (id INT, points BIGINT) UNIQUE KEY(id);
        CREATE VIEW shop.amounts AS SELECT id, amount FROM shop.orders;
        CREATE TABLE other.small (id INT);
        INSERT INTO shop.orders VALUES {','.join(values)};
        INSERT INTO shop.customers VALUES (1,10),(2,20),(1,11);
        INSERT INTO other.small VALUES (1),(2),(3);
    """)


def content(port=PORT, database="shop"):
    return [query(f"SELECT * FROM {database}.{table} ORDER BY id", port) for table in ("orders", "customers")]


def dump_and_restore(*options, database=("shop",), into=""):
    """Dumps, restores into a new server and compares every row of both."""
    dump = run("mariadb-dump", *options, database=database)
    with Server(os.environ["SUITE_BINARY"], WORK / f"restored-{len(os.listdir(WORK))}", SETTINGS) as second:
        if into:
            query(f"CREATE DATABASE {into}", second.mysql)
        run("mariadb", port=second.mysql, text=dump, database=[into] if into else [])
        equal(len(content(second.mysql)[0]), ROWS)
        equal(content(second.mysql), content())
        equal(query("SELECT count(*), sum(amount) FROM shop.amounts", second.mysql),
              query("SELECT count(*), sum(amount) FROM shop.amounts"))
        return second, dump


def restore_schema():
    dump = run("mariadb-dump", "--no-data", database=["shop"])
    equal("INSERT" in dump, False)
    with Server(os.environ["SUITE_BINARY"], WORK / "schema", SETTINGS) as second:
        query("CREATE DATABASE shop", second.mysql)
        run("mariadb", port=second.mysql, text=dump, database=["shop"])
        for table in ("orders", "customers"):
            equal(query(f"DESC shop.{table}", second.mysql), query(f"DESC shop.{table}"))
            equal(query(f"SELECT count(*) FROM shop.{table}", second.mysql), ["0"])


def restore_tab():
    """Writes a file of rows for each table, and imports them into a second server."""
    place = WORK / "tab"
    place.mkdir()
    place.chmod(0o777)
    run("mariadb-dump", f"--tab={place}", "--ignore-table=shop.amounts", database=["shop"])
    with Server(os.environ["SUITE_BINARY"], WORK / "fromtab", SETTINGS) as second:
        query("CREATE DATABASE shop", second.mysql)
        for table in ("orders", "customers"):
            run("mariadb", port=second.mysql, text=(place / f"{table}.sql").read_text(), database=["shop"])
            run("mariadb-import", "--local", "shop", place / f"{table}.txt", port=second.mysql)
        equal(content(second.mysql), content())


def dump_some():
    dump = run("mariadb-dump", "--where=id < 7", "--no-create-info", "--complete-insert", "--skip-extended-insert",
               database=["shop", "orders"])
    equal(sum(line.startswith("INSERT INTO `orders` (`id`, `name`") for line in dump.splitlines()), 7)


def restore_all_databases():
    dump = run("mariadb-dump", "--all-databases")
    with Server(os.environ["SUITE_BINARY"], WORK / "all", SETTINGS) as second:
        run("mariadb", port=second.mysql, text=dump)
        equal(content(second.mysql), content())
        equal(query("SELECT count(*) FROM other.small", second.mysql), ["3"])


def restore_twice():
    """Restores over what is there, as a dump that drops tables and views allows."""
    dump = run("mariadb-dump", database=["shop"])
    query("CREATE DATABASE again")
    run("mariadb", text=dump, database=["again"])
    run("mariadb", text=dump, database=["again"])
    equal(content(database="again"), content())


def imported(text, *options, table="plain"):
    """Imports a file into a table of two columns and returns its rows."""
    query(f"DROP TABLE IF EXISTS other.{table}; CREATE TABLE other.{table} (id INT, name VARCHAR(20))")
    return again(text, *options, table=table)


def again(text, *options, table="plain"):
    file = WORK / f"{table}.txt"
    file.write_text(text)
    run("mariadb-import", "--local", *options, "other", file)
    return query(f"SELECT * FROM other.{table} ORDER BY id, name")


def import_with_delete():
    imported("1\tone\n2\ttwo\n", table="emptied")
    return again("3\tthree\n", "--delete", table="emptied")


def maintenance(*options):
    lines = run("mariadb-check", *options, "shop", "orders").split()
    return lines[0], lines[-1]


def interactive():
    """Returns what the client's `status` says of connection and character set."""
    text = run("mariadb", "-t", text="use shop\nstatus\nshow warnings;\n")
    wanted = ("Current database:\tshop", "Client characterset:\tutf8mb4", "Server version:")
    return [phrase in text for phrase in wanted]


def errors():
    done = subprocess.run(["mariadb", "-h127.0.0.1", f"-P{PORT}", "-uroot", "-e", "SELECT * FROM shop.nothing"],
                          capture_output=True, text=True)
    return done.returncode, done.stderr.split("(")[0].split("\n")[-1].strip()


make_data()
check("data is there", lambda: query("SELECT count(*), count(note), sum(amount) FROM shop.orders"), ["500\t333\t124875.00"])
check("batch mode quotes as MySQL", lambda: query("SELECT name FROM shop.orders WHERE id IN (2,3) ORDER BY id"),
      ["tab\\there", "line\\nbreak"])
check("xml output", lambda: run("mariadb", "--xml", "-e", "SELECT id FROM other.small ORDER BY id").count("<row>"), 3)
check("several statements", lambda: query("SELECT 1; SELECT 'two'; SELECT 3"), ["1", "two", "3"])
check("interactive status", interactive, [True, True, True])
check("an error has MySQL's number", errors, (1, "ERROR 1146"))
check("source of versioned comments", lambda: query("/*!40101 SELECT 1 */; SELECT /*!50000 2 */; SELECT /*M!999999 3, */ 4"),
      ["1", "2", "4"])
check("dump default form", lambda: dump_and_restore(into="shop") and None)
check("dump --databases", lambda: dump_and_restore("--databases") and None)
check("dump --single-transaction",
      lambda: dump_and_restore("--single-transaction", "--routines", "--triggers", "--events", into="shop") and None)
check("dump --skip-opt", lambda: dump_and_restore("--skip-opt", into="shop") and None)
check("dump --no-data", restore_schema)
check("dump --tab", restore_tab)
check("dump --where", dump_some)
check("dump --all-databases", restore_all_databases)
check("restore twice over itself", restore_twice)
check("import tabs", lambda: imported("1\tone\n2\t\\N\n"), ["1\tone", "2\tNULL"])
check("import separators and enclosure",
      lambda: imported('1,"a,b"\n2,"c"\n', "--fields-terminated-by=,", '--fields-optionally-enclosed-by="'), ["1\ta,b", "2\tc"])
check("import columns and lines to ignore",
      lambda: imported("name,id\none,1\n", "--fields-terminated-by=,", "--columns=name,id", "--ignore-lines=1"), ["1\tone"])
check("import --lock-tables", lambda: imported("1\tone\n", "--lock-tables"), ["1\tone"])
check("import --delete", import_with_delete, ["3\tthree"])
check("check a table", lambda: maintenance("--check"), ("shop.orders", "OK"))
check("analyze a table", lambda: maintenance("--analyze"), ("shop.orders", "OK"))
check("optimize a table", lambda: maintenance("--optimize")[1] in ("OK", "up", "date"), True)
check("show databases", lambda: {"shop", "other"} <= set(run("mariadb-show").replace("|", " ").split()), True)
check("show columns", lambda: run("mariadb-show", "shop", "orders").count("\n| "), 9)
check("show counts", lambda: [" 8 | " in line and " 500 |" in line for line in run("mariadb-show", "--count", "shop").splitlines()
                              if "orders" in line], [True])
check("admin ping, status, processlist", lambda: ["alive" in run("mariadb-admin", "ping"),
      "Threads" in run("mariadb-admin", "status"), "root" in run("mariadb-admin", "processlist")], [True, True, True])
check("admin flush and refresh", lambda: [run("mariadb-admin", word) for word in ("flush-tables", "flush-privileges", "refresh")],
      ["", "", ""])
finish()
