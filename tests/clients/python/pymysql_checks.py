"""PyMySQL against a server: pymysql_checks.py CHECK PORT DATABASE"""

import datetime
import decimal
import os
import tempfile

import pymysql
import pymysql.cursors

from checking import equal, main, wait_until

TYPES = """CREATE TABLE types (
    k INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, ll LARGEINT, f FLOAT, d DOUBLE,
    n DECIMAL(27,9), day DATE, at DATETIME, at6 DATETIME(6), c CHAR(10), v VARCHAR(100), txt STRING, j JSON
) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")"""

DT = """CREATE TABLE dt (id INT NOT NULL, name VARCHAR(50) NULL, score INT NULL)
    DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
    PROPERTIES ("replication_num" = "1", "group_commit_interval_ms" = "300")"""


def connect(port, database, **options):
    return pymysql.connect(host="127.0.0.1", port=int(port), user="root", password="", database=database, **options)


def types(port, database):
    """Values of all types come back as the Python values that were sent."""
    connection = connect(port, database)
    with connection.cursor() as cursor:
        cursor.execute(TYPES)
        rows = [
            (
                1, 1, 127, 32767, 2147483647, 9223372036854775807, 12345678901234567890123456789, 1.5, -2.25,
                decimal.Decimal("123456789012345678.123456789"), datetime.date(2024, 2, 29),
                datetime.datetime(2024, 2, 29, 23, 59, 59), datetime.datetime(2024, 2, 29, 23, 59, 59, 123456),
                "abc", "Grüße, 'quoted' \"twice\" \\ 100%\n\tend 😀", "long " * 1000, '{"a": [1, null, "x"]}',
            ),
            (
                2, 0, -128, -32768, -2147483648, -9223372036854775808, -1, -0.5, 1e300, decimal.Decimal("0E-9"),
                datetime.date(1, 1, 1), datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31, 0, 0, 0, 1),
                "", "", "", "null",
            ),
            (3,) + (None,) * 16,
        ]
        places = ", ".join(["%s"] * 17)
        equal(cursor.executemany(f"INSERT INTO types VALUES ({places})", rows), 3)
        cursor.execute("SELECT * FROM types ORDER BY k")
        found = cursor.fetchall()
        equal(len(found), 3)
        names = [column[0] for column in cursor.description]
        for expected, row in zip(rows, found):
            for name, value, got in zip(names, expected, row):
                if name == "ll":  # 128 bits come as a number or as its text
                    value, got = str(value), str(got)
                equal(got, value, f"column {name} of row {expected[0]}")


def parameters(port, database):
    """Queries with parameters, dictionaries, and a large batch."""
    connection = connect(port, database, cursorclass=pymysql.cursors.DictCursor)
    with connection.cursor() as cursor:
        cursor.execute(DT)
        rows = [(number, f"name {number}", number % 7) for number in range(5000)]
        equal(cursor.executemany("INSERT INTO dt (id, name, score) VALUES (%s, %s, %s)", rows), 5000)
        cursor.execute("SELECT count(*) AS n, sum(score) AS s FROM dt WHERE id >= %s AND name LIKE %s", (10, "name 1%"))
        expected = [row for row in rows if row[0] >= 10 and row[1].startswith("name 1")]
        found = cursor.fetchone()
        equal(found["n"], len(expected))
        equal(int(found["s"]), sum(row[2] for row in expected))
        cursor.execute("SELECT * FROM dt WHERE id IN %s ORDER BY id", ([3, 1, 2],))
        equal(cursor.fetchall(), [{"id": n, "name": f"name {n}", "score": n} for n in (1, 2, 3)])
        cursor.execute("SELECT %(a)s AS a, %(b)s AS b, %(c)s AS c", {"a": "it's", "b": 5, "c": None})
        equal(cursor.fetchone(), {"a": "it's", "b": 5, "c": None})


def found_rows(port, database):
    """An UPDATE counts found rows if the client has asked for them at connecting, and changed rows otherwise."""
    with connect(port, database, autocommit=True).cursor() as cursor:
        cursor.execute("SET mysql_ddl = compat")
        cursor.execute("CREATE TABLE counted (id INT PRIMARY KEY, n INT)")
        cursor.execute("INSERT INTO counted VALUES (1, 0), (2, 0), (3, 1)")
        equal(cursor.execute("UPDATE counted SET n = 1"), 2)
        equal(cursor.execute("UPDATE counted SET n = 1"), 0)
    found = pymysql.constants.CLIENT.FOUND_ROWS
    with connect(port, database, autocommit=True, client_flag=found).cursor() as cursor:
        cursor.execute("SET mysql_ddl = compat")
        equal(cursor.execute("UPDATE counted SET n = 1"), 3)


def times(port, database):
    """A TIME has the digits of a second that it was cast to, and is announced with them."""
    with connect(port, database).cursor() as cursor:
        for text, written, seconds in (
            ("CAST('-12:34:56.789' AS TIME)", 0, -45297),
            ("CAST('12:34:56.7' AS TIME(1))", 1, 45296.7),
            ("CAST('838:59:58.999999' AS TIME(6))", 6, 3020398.999999),
            ("SEC_TO_TIME(61)", 6, 61),
        ):
            cursor.execute(f"SELECT {text}")
            equal(cursor._result.fields[0].scale, written, text)
            equal(cursor.fetchone(), (datetime.timedelta(seconds=seconds),), text)


def unbuffered(port, database):
    """A result that is read while it is sent."""
    connection = connect(port, database, cursorclass=pymysql.cursors.SSCursor)
    with connection.cursor() as cursor:
        cursor.execute(DT)
        for start in range(0, 50000, 10000):
            values = ",".join(f"({n},'n{n}',{n})" for n in range(start, start + 10000))
            cursor.execute(f"INSERT INTO dt VALUES {values}")
        cursor.execute("SELECT id, name FROM dt")
        equal(sorted(cursor), [(n, f"n{n}") for n in range(50000)])


def autocommit_off(port, database):
    """PyMySQL switches autocommit off unless told otherwise; commit() is then what users call."""
    writer = connect(port, database)
    equal(writer.get_autocommit(), False)
    with writer.cursor() as cursor:
        cursor.execute(DT)
        cursor.execute("INSERT INTO dt VALUES (1, 'a', 1)")
    writer.commit()
    with connect(port, database).cursor() as cursor:
        cursor.execute("SELECT * FROM dt")
        equal(cursor.fetchall(), ((1, "a", 1),))


def transactions(port, database):
    """begin(), commit() and rollback()."""
    writer, reader = connect(port, database), connect(port, database, autocommit=True)

    def count():
        with reader.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM dt")
            return cursor.fetchone()[0]

    with writer.cursor() as cursor:
        cursor.execute(DT)
        writer.begin()
        cursor.execute("INSERT INTO dt VALUES (1, 'a', 1)")
        cursor.execute("INSERT INTO dt VALUES (2, 'b', 2)")
        equal(count(), 0)
        writer.commit()
        equal(count(), 2)
        writer.begin()
        cursor.execute("INSERT INTO dt VALUES (3, 'c', 3)")
        writer.rollback()
        equal(count(), 2)


def group_commit(port, database):
    """The session variable, set at connect."""
    connection = connect(port, database, init_command="SET group_commit = async_mode", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(DT)
        equal(cursor.execute("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)"), 2)
        # The text's length comes first, as MySQL sends it; PyMySQL leaves it there.
        info = cursor._result.message[1:].decode()
        if not info.startswith("{'label':'group_commit_") or "'status':'PREPARE'" not in info:
            raise AssertionError(f"no group commit: {info}")

        def is_visible():
            cursor.execute("SELECT count(*) FROM dt")
            return cursor.fetchone()[0] == 2

        wait_until("the group has committed", is_visible)


def errors(port, database):
    """Errors are of the right class with the right number."""
    connection = connect(port, database)

    def fails(statement, kind, number, text):
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
        except kind as error:
            equal(error.args[0], number, statement)
            if text not in error.args[1]:
                raise AssertionError(f"{text!r} is not in {error.args[1]!r}") from error
        else:
            raise AssertionError(f"no error: {statement}")

    with connection.cursor() as cursor:
        cursor.execute(DT)
    any_error = pymysql.err.MySQLError
    fails("SELECT * FROM nowhere", any_error, 1146, f"Table [nowhere] does not exist in database [{database}].")
    fails("SELECT nickname FROM dt", pymysql.err.OperationalError, 1054, "Unknown column 'nickname' in 'table list'")
    fails("SELEC 1", pymysql.err.ProgrammingError, 1064, "errCode = 2, detailMessage = ")
    fails("INSERT INTO dt VALUES (1)", any_error, 1058, "Column count doesn't match value count")
    fails("INSERT INTO dt VALUES ('x', 'a', 1)", any_error, 1105, "Insert has filtered data in strict mode")
    fails("SET no_such_variable = 1", any_error, 1193, "Unknown system variable 'no_such_variable'")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM dt")
        equal(cursor.fetchone(), (0,))
    try:
        pymysql.connect(host="127.0.0.1", port=int(port), user="root", password="wrong")
    except pymysql.err.OperationalError as error:
        equal(error.args, (1045, "Access denied for user 'root'@'127.0.0.1' (using password: YES)"))
    else:
        raise AssertionError("a wrong password was let in")


def schema_changes(port, database):
    """A client that waits for its schema change to be FINISHED sees it, as Doris's tools wait."""
    connection = connect(port, database)
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(DT)
        jobs = f"SHOW ALTER TABLE COLUMN FROM {database} WHERE TableName = 'dt' ORDER BY CreateTime DESC LIMIT 1"
        cursor.execute(jobs)
        equal(cursor.fetchall(), ())
        last = 0
        for change in ("ADD COLUMN a INT", "ADD COLUMN b INT", "DROP COLUMN a"):
            cursor.execute(f"ALTER TABLE dt {change}")

            def is_finished():
                cursor.execute(jobs)
                job = cursor.fetchone()
                return job["State"] == "FINISHED" and int(job["JobId"]) > last

            wait_until(f"{change} is finished", is_finished, seconds=10)
            cursor.execute(jobs)
            last = int(cursor.fetchone()["JobId"])
        cursor.execute("SHOW ALTER TABLE COLUMN WHERE TableName = 'another'")
        equal(cursor.fetchall(), ())
        cursor.execute("SHOW ALTER TABLE COLUMN")
        equal([row["SchemaVersion"].split(":")[0] for row in cursor.fetchall()], ["2", "3", "4"])


def life(port, database):
    """Ping, select_db, several statements, kill of the socket."""
    connection = connect(port, database, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
    connection.ping()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1; SELECT 'two'")
        equal(cursor.fetchall(), ((1,),))
        equal(cursor.nextset(), True)
        equal(cursor.fetchall(), (("two",),))
        equal(cursor.nextset(), None)
    connection.select_db("information_schema")
    with connection.cursor() as cursor:
        cursor.execute("SELECT database()")
        equal(cursor.fetchone(), ("information_schema",))
    equal(connection.get_server_info(), "5.7.99")
    connection.close()


def load_data(port, database):
    """LOAD DATA LOCAL by a client that allows it; one that does not, a file that is missing, and bad rows."""
    connection = connect(port, database, local_infile=True)
    with tempfile.TemporaryDirectory() as directory, connection.cursor() as cursor:
        cursor.execute(DT)
        path = os.path.join(directory, "rows.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{row},név {row},{row % 10}\n" for row in range(100_000))
        load = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE dt FIELDS TERMINATED BY ','"
        equal(cursor.execute(load), 100_000)
        cursor.execute("SELECT COUNT(*), SUM(score), MAX(name) FROM dt")
        equal([str(value) for value in cursor.fetchone()], ["100000", "450000", "név 99999"])
        cursor.execute("SET @more = 5")
        equal(cursor.execute(load + " IGNORE 99990 LINES (@id, name, @x) SET id = @id + 1000000, score = @more"), 10)
        cursor.execute("SELECT id, score FROM dt WHERE id >= 1000000 ORDER BY id LIMIT 1")
        equal(cursor.fetchone(), (1_099_990, 5))
        with open(path, "a", encoding="utf-8") as file:
            file.write("bad\n")
        for statement, number, text in [
            (load, 1105, "too many filtered rows"),
            (load + " (id, nickname, score)", 1054, "Unknown column 'nickname'"),
            (load.replace(" dt ", " missing "), 1146, "missing"),
        ]:
            try:
                cursor.execute(statement)
                raise AssertionError(f"{statement} was accepted")
            except pymysql.MySQLError as error:
                equal((error.args[0], text in error.args[1]), (number, True), str(error))
        try:
            cursor.execute(load.replace("rows.csv", "missing.csv"))
            raise AssertionError("a file that is not there was loaded")
        except pymysql.MySQLError as error:
            equal(error.args[0], 1017, str(error))
        cursor.execute("SELECT COUNT(*) FROM dt")
        equal(cursor.fetchone(), (100_010,), "the connection goes on, and nothing of the bad loads is there")
    connection.close()
    plain = connect(port, database)
    with plain.cursor() as cursor:
        try:
            cursor.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE dt")
            raise AssertionError("the client sent a file")
        except pymysql.MySQLError as error:
            equal(error.args[0], 1148, str(error))
    plain.close()


main(
    {
        check.__name__: check
        for check in (types, parameters, found_rows, times, unbuffered, autocommit_off, transactions, group_commit, errors, schema_changes, life, load_data)
    }
)
