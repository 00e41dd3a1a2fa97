"""Arrow Flight SQL with pyarrow and ADBC, unmodified: flight_checks.py CHECK PORT ..."""

import datetime
import decimal
import threading
import warnings

import adbc_driver_flightsql.dbapi as adbc
import pyarrow
import pyarrow.compute
import pyarrow.flight as flight

from checking import equal, main, wait_until

# ADBC says that the server has no transactions of Flight SQL.
warnings.simplefilter("ignore")


def connect(port, user="root", password="", tls=None, **more):
    """A connection of ADBC."""
    options = {"username": user, "password": password, **more}
    if tls:
        with open(tls, encoding="utf-8") as file:
            options["adbc.flight.sql.client_option.tls_root_certs"] = file.read()
    scheme = "grpc+tls" if tls else "grpc+tcp"
    return adbc.connect(f"{scheme}://127.0.0.1:{port}", db_kwargs=options, autocommit=True)


def log_in(port, user="root", password=""):
    """A client of pyarrow, and the options with its token."""
    client = flight.connect(f"grpc+tcp://127.0.0.1:{port}")
    token = client.authenticate_basic_token(user, password)
    return client, flight.FlightCallOptions(headers=[token])


def length(number):
    """A number as protobuf writes it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field of text or bytes."""
    data = value.encode() if isinstance(value, str) else value
    return length(number << 3 | 2) + length(len(data)) + data


def command(name, *fields):
    """A command of Flight SQL."""
    url = f"type.googleapis.com/arrow.flight.protocol.sql.{name}"
    return flight.FlightDescriptor.for_command(field(1, url) + field(2, b"".join(fields)))


def query(client, options, text):
    """The rows of a statement, by two calls."""
    info = client.get_flight_info(command("CommandStatementQuery", field(1, text)), options)
    tables = [client.do_get(endpoint.ticket, options).read_all() for endpoint in info.endpoints]
    equal(tables[0].schema, info.schema)
    return pyarrow.concat_tables(tables)


def refusal(run, *words):
    """The error of a call that must fail; it has these words."""
    try:
        run()
    except Exception as error:
        text = str(error)
        missing = [word for word in words if word not in text]
        if missing:
            raise AssertionError(f"{missing} are not in {text!r}") from error
        return error
    raise AssertionError(f"it did not fail with {words}")


def rows(connection, text, parameters=None):
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.fetchall()


def run(connection, text):
    """Runs a statement without rows. Returns the number of changed rows."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.rowcount


def logins(port):
    client, options = log_in(port)
    equal(query(client, options, "SELECT 1 AS a").to_pylist(), [{"a": 1}])
    with connect(port) as connection:
        run(connection, "CREATE USER flight_amy IDENTIFIED BY 'right'")
        equal(len(rows(connection, "SELECT user()")), 1)
    refusal(lambda: log_in(port, "flight_amy", "wrong"), "1045 (28000)", "Access denied for user 'flight_amy'")
    refusal(lambda: log_in(port, "nobody", "wrong"), "1045 (28000)", "Access denied for user 'nobody'")
    refusal(lambda: rows(connect(port, "flight_amy", "wrong"), "SELECT 1"), "1045 (28000)")
    with connect(port, "flight_amy", "right") as connection:
        equal(rows(connection, "SELECT substring_index(current_user(), '@', 1)"), [("flight_amy",)])
        process = [row for row in rows(connection, "SHOW PROCESSLIST") if row[2] == "flight_amy"]
        equal(len(process), 1)
    with connect(port) as connection:
        # It has said good-bye, or its connection is closed.
        gone = lambda: not [row for row in rows(connection, "SHOW PROCESSLIST") if row[2] == "flight_amy"]
        wait_until("the session has ended", gone)


def strangers(port):
    client = flight.connect(f"grpc+tcp://127.0.0.1:{port}")
    statement = command("CommandStatementQuery", field(1, "SELECT 1"))
    refusal(lambda: client.get_flight_info(statement), "no token: log in")
    guessed = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + b"0" * 64)])
    refusal(lambda: client.get_flight_info(statement, guessed), "the token is of no session")
    refusal(lambda: client.do_get(flight.Ticket(b"\x00" * 8)).read_all(), "no token")
    refusal(lambda: list(client.do_action("CloseSession")), "no token")
    batch = pyarrow.RecordBatch.from_pydict({"id": pyarrow.array([1], pyarrow.int32())})

    def put():
        writer, reader = client.do_put(flight.FlightDescriptor.for_path("d", "t"), batch.schema)
        writer.write_batch(batch)
        writer.done_writing()
        reader.read()
        writer.close()

    refusal(put, "no token")
    client, options = log_in(port)
    equal(query(client, options, "SELECT 1 AS a").to_pylist(), [{"a": 1}])
    list(client.do_action("CloseSession", options))
    refusal(lambda: query(client, options, "SELECT 1"), "the token is of no session")


def types(port, database):
    client, options = log_in(port)
    run_all = lambda text: query(client, options, text)
    run_all(f"USE {database}")
    run_all(
        """CREATE TABLE kinds (
            id INT, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, ll LARGEINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3),
            day DATE, moment DATETIME(6), c CHAR(3), v VARCHAR(20), txt STRING, j JSON,
            a ARRAY<INT>, m MAP<STRING, INT>, st STRUCT<x: INT, y: STRING>, aa ARRAY<ARRAY<STRING>>, ip IPV4
        ) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ("replication_num" = "1")"""
    )
    equal(
        run_all(
            """INSERT INTO kinds VALUES
            (1, true, -1, -2, -3, '12345678901234567890123456789012345678', 0.5, -0.25, 12345.678, '2024-02-29',
             '2024-02-29 12:34:56.000001', 'ü', 'x', 'text', '{"a":[1,2]}', '[1,null,3]', '{"k":1}', '{"x":7,"y":"z"}',
             '[["a"],[]]', '10.0.0.1'),
            (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)"""
        ).to_pylist(),
        [{"affected_rows": 2}],
    )
    table = run_all("SELECT * FROM kinds ORDER BY id")
    arrow = {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types)}
    equal(arrow["ll"], "string")
    equal(arrow["n"], "decimal128(20, 3)")
    equal((arrow["day"], arrow["moment"]), ("date32[day]", "timestamp[us]"))
    equal((arrow["b"], arrow["t"], arrow["l"], arrow["f"]), ("bool", "int8", "int64", "float"))
    equal((arrow["txt"], arrow["j"], arrow["ip"]), ("string", "string", "string"))
    if not arrow["a"].startswith("list<") or not arrow["m"].startswith("map<") or not arrow["st"].startswith("struct<"):
        raise AssertionError(arrow)
    first, second = table.to_pylist()
    equal(
        first,
        {
            "id": 1, "b": True, "t": -1, "s": -2, "l": -3, "ll": "12345678901234567890123456789012345678",
            "f": 0.5, "d": -0.25, "n": decimal.Decimal("12345.678"), "day": datetime.date(2024, 2, 29),
            "moment": datetime.datetime(2024, 2, 29, 12, 34, 56, 1), "c": "ü", "v": "x", "txt": "text",
            "j": '{"a":[1,2]}', "a": [1, None, 3], "m": [("k", 1)], "st": {"x": 7, "y": "z"}, "aa": [["a"], []],
            "ip": "10.0.0.1",
        },
    )
    equal([value for name, value in second.items() if name != "id"], [None] * 19)
    meta = table.schema.field("ll").metadata
    equal(meta[b"ARROW:FLIGHT:SQL:TYPE_NAME"], b"LARGEINT")
    equal(meta[b"ARROW:FLIGHT:SQL:TABLE_NAME"], b"kinds")
    run_all("CREATE TABLE states (k INT, b BITMAP BITMAP_UNION) AGGREGATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1")
    run_all("INSERT INTO states VALUES (1, to_bitmap(3))")
    # As by MySQL's protocol: functions read them.
    equal(run_all("SELECT k, b, bitmap_count(b) AS n FROM states").to_pylist(), [{"k": 1, "b": None, "n": 1}])
    equal(run_all("SELECT * FROM kinds WHERE id > 9").num_rows, 0)


def statements(port, database):
    with connect(port) as connection:
        run(connection, f"USE {database}")
        run(connection, "CREATE TABLE t (id INT, name VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1")
        equal(run(connection, "INSERT INTO t VALUES (1, 'a'), (2, 'b')"), 2)
        equal(rows(connection, "SELECT id, name FROM t ORDER BY id"), [(1, "a"), (2, "b")])
        equal(run(connection, "SET @x = 5"), 0)
        equal(rows(connection, "SELECT @x + 0, database()"), [(5, database)])
        error = refusal(lambda: rows(connection, "SELECT FROM WHERE"), "1064 (42000)")
        equal(type(error).__name__, "ProgrammingError")
        refusal(lambda: rows(connection, "SELECT * FROM missing"), "missing")
        refusal(lambda: rows(connection, "SELECT nix FROM t"), "1054 (42S22)", "nix")
        # An error of the rows.
        refusal(lambda: rows(connection, "SELECT (SELECT id FROM t) AS x"), "1242")
        # A transaction of the session.
        run(connection, "BEGIN")
        equal(run(connection, "INSERT INTO t VALUES (3, 'c')"), 1)
        equal(rows(connection, "SELECT count(*) FROM t"), [(3,)])
        run(connection, "ROLLBACK")
        equal(rows(connection, "SELECT count(*) FROM t"), [(2,)])
        # Several results at once, each with its own rows, and a setting meanwhile.
        cursors = [connection.cursor() for _ in range(4)]
        for number, cursor in enumerate(cursors):
            cursor.execute(f"SELECT id + {number} * 10 AS id FROM t ORDER BY id")
            run(connection, f"SET @n = {number}")
        for number, cursor in reversed(list(enumerate(cursors))):
            equal(cursor.fetchall(), [(number * 10 + 1,), (number * 10 + 2,)])
            cursor.close()
        equal(rows(connection, "SELECT @n + 0"), [(3,)])
        # The update by its own command.
        with connection.cursor() as cursor:
            cursor.adbc_statement.set_sql_query("INSERT INTO t VALUES (4, 'd')")
            equal(cursor.adbc_statement.execute_update(), 1)
            cursor.adbc_statement.set_sql_query("SELECT 1")
            refusal(cursor.adbc_statement.execute_update, "run it as a query")
        refusal(lambda: run(connection, "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), "send the rows with DoPut")


def large(port, database, count):
    """A result of many batches: it arrives whole, and one that is left early ends."""
    with connect(port) as connection:
        run(connection, f"USE {database}")
        text = f"""SELECT number, concat('row ', number) AS name FROM numbers("number" = "{count}")"""
        with connection.cursor() as cursor:
            cursor.execute(text)
            table = cursor.fetch_arrow_table()
        equal(table.num_rows, int(count))
        equal(pyarrow.compute.sum(table["number"]).as_py(), int(count) * (int(count) - 1) // 2)
        with connection.cursor() as cursor:
            cursor.execute(text)
            reader = cursor.fetch_record_batch()
            reader.read_next_batch()
        running = lambda: [row for row in rows(connection, "SHOW PROCESSLIST") if "numbers" in str(row)]
        wait_until("the statement has ended", lambda: not running())
        equal(rows(connection, "SELECT 1"), [(1,)])


def prepared(port, database):
    with connect(port) as connection:
        run(connection, f"USE {database}")
        run(
            connection,
            """CREATE TABLE p (id BIGINT, name STRING, price DECIMAL(10, 2), day DATE, moment DATETIME(3), f DOUBLE, flag BOOLEAN)
            DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1""",
        )
        values = [
            (1, "ü", decimal.Decimal("1.50"), datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 2, 3, 4, 5, 678000), 0.5, True),
            (2, None, None, None, None, None, None),
            (3, "x" * 300, decimal.Decimal("-0.01"), datetime.date(1999, 1, 1), datetime.datetime(1999, 1, 1), -1e300, False),
        ]
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO p VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        equal(rows(connection, "SELECT * FROM p ORDER BY id"), values)
        equal(rows(connection, "SELECT id FROM p WHERE name = ? AND price = ?", ("ü", decimal.Decimal("1.50"))), [(1,)])
        equal(rows(connection, "SELECT id FROM p WHERE day < ? ORDER BY id", (datetime.date(2000, 1, 1),)), [(3,)])
        equal(rows(connection, "SELECT id FROM p WHERE moment = ?", (values[0][4],)), [(1,)])
        with connection.cursor() as cursor:
            schema = cursor.adbc_prepare("SELECT id, name FROM p WHERE id = ?")
            equal(len(schema), 1)
            for number in (1, 3, 9):
                cursor.execute("SELECT id, name FROM p WHERE id = ?", (number,))
                equal([row[0] for row in cursor.fetchall()], [number] if number < 9 else [])
        refusal(lambda: rows(connection, "SELECT ? + ?", (1,)), "1210", "2 parameters, and 1 were bound")
        refusal(lambda: rows(connection, "SELECT FROM WHERE ?", (1,)), "1064")
        refusal(lambda: rows(connection, "SELECT ?", ([1, 2],)), "no type of parameters")
        # The columns of a call that waits are known before it has waited.
        equal(rows(connection, "SELECT SLEEP(?) AS s, ? AS t", (0, "x")), [(0, "x")])
        with connection.cursor() as cursor:
            cursor.adbc_prepare("SELECT SLEEP(0), GET_LOCK('flight', 0)")
            cursor.execute("SELECT SLEEP(0), GET_LOCK('flight', 0)")
            equal(cursor.fetchall(), [(0, 1)])
        # A statement that was prepared while another result is open.
        with connection.cursor() as first, connection.cursor() as second:
            first.execute("SELECT id FROM p ORDER BY id")
            second.execute("SELECT name FROM p WHERE id = ?", (1,))
            equal(second.fetchall(), [("ü",)])
            equal(first.fetchall(), [(1,), (2,), (3,)])


def actions(port):
    """Actions of the protocol that there are not are refused by their names, and the session goes on."""
    client, options = log_in(port)
    for action, part in [
        ("BeginTransaction", "send BEGIN, COMMIT and ROLLBACK as statements"),
        ("EndTransaction", "send BEGIN, COMMIT and ROLLBACK as statements"),
        ("BeginSavepoint", "send SAVEPOINT as a statement"),
        ("EndSavepoint", "send RELEASE SAVEPOINT"),
        ("CancelQuery", "send KILL QUERY"),
    ]:
        url = f"type.googleapis.com/arrow.flight.protocol.sql.Action{action}Request".encode()
        try:
            list(client.do_action((action, field(1, url)), options))
        except (NotImplementedError, pyarrow.ArrowNotImplementedError) as error:
            equal(f"{action} is not supported" in str(error) and part in str(error), True, str(error))
        else:
            raise AssertionError(f"{action} is not refused")
    with connect(port) as connection:
        equal(rows(connection, "SELECT 1"), [(1,)])


def ingest(port, database):
    with connect(port) as connection:
        run(connection, f"USE {database}")
        run(
            connection,
            """CREATE TABLE g (id BIGINT NOT NULL, name VARCHAR(10), n DECIMAL(10, 2), a ARRAY<INT>)
            DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ("group_commit_interval_ms" = "200")""",
        )
        # Columns by name, in another order, and one is missing.
        table = pyarrow.table({"name": ["a", None, "ü"], "id": [1, 2, 3], "a": [[1], None, []]})
        with connection.cursor() as cursor:
            equal(cursor.adbc_ingest("g", table, mode="append"), 3)
        equal(rows(connection, "SELECT id, name, n, a FROM g ORDER BY id"), [(1, "a", None, [1]), (2, None, None, None), (3, "ü", None, [])])
        for mode, kind in (("sync_mode", "group_commit_"), ("async_mode", "group_commit_"), ("off_mode", "")):
            with connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.flight.sql.rpc.call_header.group_commit": mode})
                equal(cursor.adbc_ingest("g", table, mode="create_append", db_schema_name=database), 3, mode)
            if mode == "async_mode":
                run(connection, "SYNC")
        equal(rows(connection, "SELECT count(*), count(DISTINCT id) FROM g"), [(12, 3)])
        # Many batches.
        many = pyarrow.table({"id": list(range(100_000)), "name": [str(number) for number in range(100_000)]})
        with connection.cursor() as cursor:
            equal(cursor.adbc_ingest("g", many.to_reader(max_chunksize=1000), mode="append"), 100_000)
        equal(rows(connection, "SELECT count(*) FROM g"), [(100_012,)])
        loads = rows(connection, f"SHOW STREAM LOAD FROM {database}")
        equal(len(loads), 5)
        put = lambda data, mode="append", name="g": connection.cursor().adbc_ingest(name, data, mode=mode)
        refusal(lambda: put(table, name="missing"), "missing")
        refusal(lambda: put(table, mode="create"), "1050", "g")
        # A table with the columns of the rows.
        for mode in ("create", "create_append"):
            with connection.cursor() as cursor:
                equal(cursor.adbc_ingest("made", table, mode=mode), 3, mode)
            if mode == "create":
                created = rows(connection, "SELECT * FROM made ORDER BY name")
                equal(created, [(None, 2, None), ("a", 1, [1]), ("ü", 3, [])])
        equal(rows(connection, "SELECT count(*) FROM made"), [(6,)])
        refusal(lambda: put(table, mode="replace"), "TRUNCATE TABLE")
        refusal(lambda: put(pyarrow.table({"id": [1], "nix": [1]})), "nix")
        refusal(lambda: put(pyarrow.table({"id": [None, 1]}, pyarrow.schema([("id", pyarrow.int64())]))), "too many filtered rows", "id")
        refusal(lambda: put(pyarrow.table({"id": [1], "name": ["much too long a name"]})), "too many filtered rows", "name")
        refusal(lambda: put(pyarrow.table({"id": [1], "n": [{"x": 1}]})), "n")
        equal(rows(connection, "SELECT count(*) FROM g"), [(100_012,)])
    batch = pyarrow.record_batch({"id": pyarrow.array([7, 8], pyarrow.int64()), "name": ["p", "q"]})

    client = flight.connect(f"grpc+tcp://127.0.0.1:{port}")
    token = client.authenticate_basic_token("root", "")
    options = flight.FlightCallOptions(headers=[token])

    def put_path(path, headers=()):
        """Rows for a path. Returns the count that acknowledges them."""
        call = flight.FlightCallOptions(headers=[token, *headers])
        writer, reader = client.do_put(flight.FlightDescriptor.for_path(*path), batch.schema, call)
        writer.write_batch(batch)
        writer.done_writing()
        answer = reader.read()
        # A refusal is raised here.
        writer.close()
        return answer.to_pybytes()

    # DoPutUpdateResult: field 1, value 2.
    equal(put_path((database, "g"), [(b"label", b"by_path")]), b"\x08\x02")
    refusal(lambda: put_path((database, "g"), [(b"label", b"by_path")]), "by_path", "already been used")
    refusal(lambda: put_path(("g",)), "No database selected")
    query(client, options, f"USE {database}")
    equal(put_path(("g",), [(b"where", b"id > 7")]), b"\x08\x01")
    refusal(lambda: put_path(("a", "b", "c")), "a path of a database and a table")
    refusal(lambda: put_path(("g",), [(b"group_commit", b"some_mode")]), "async_mode, sync_mode, off_mode")
    equal(query(client, options, "SELECT count(*) AS n FROM g").to_pylist(), [{"n": 100_015}])


def tablet(port, text):
    """What the source of a connector sends."""
    with connect(port) as connection:
        equal(rows(connection, text), [(2,)])


def kills(port, database):
    admin = connect(port)
    client, options = log_in(port)
    query(client, options, f"USE {database}")
    own = query(client, options, "SELECT connection_id() AS id").to_pylist()[0]["id"]
    failed = []

    def sleep():
        try:
            query(client, options, "SELECT sleep(100) AS s")
        except Exception as error:
            failed.append(str(error))

    thread = threading.Thread(target=sleep)
    thread.start()
    sleeping = lambda: [row for row in rows(admin, "SHOW PROCESSLIST") if "sleep(100)" in str(row)]
    wait_until("the statement runs", sleeping)
    run(admin, f"KILL QUERY {own}")
    thread.join(60)
    equal(["1317" in text for text in failed], [True], failed)
    equal(query(client, options, "SELECT 1 AS a").to_pylist(), [{"a": 1}])
    run(admin, f"KILL {own}")
    refusal(lambda: query(client, options, "SELECT 1 AS a"), "the token is of no session")
    client, options = log_in(port)
    equal(query(client, options, "SELECT 1 AS a").to_pylist(), [{"a": 1}])


def privileges(port, database):
    with connect(port) as root:
        run(root, f"CREATE TABLE {database}.secret (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1")
        run(root, f"CREATE TABLE {database}.open (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1")
        run(root, "CREATE USER flight_bob IDENTIFIED BY 'bob'")
        run(root, f"GRANT SELECT_PRIV, LOAD_PRIV ON {database}.open TO flight_bob")
    data = pyarrow.table({"id": pyarrow.array([1], pyarrow.int32())})
    with connect(port, "flight_bob", "bob") as bob:
        equal(rows(bob, f"SELECT count(*) FROM {database}.open"), [(0,)])
        put = lambda table: bob.cursor().adbc_ingest(table, data, mode="append", db_schema_name=database)
        equal(put("open"), 1)
        for attempt in (
            lambda table: rows(bob, f"SELECT * FROM {database}.{table}"),
            lambda table: rows(bob, f"SELECT * FROM {database}.{table} WHERE id = ?", (1,)),
            lambda table: run(bob, f"INSERT INTO {database}.{table} VALUES (1)"),
            put,
        ):
            forbidden, missing = (str(refusal(lambda: attempt(table))) for table in ("secret", "missing"))
            equal(forbidden.replace("secret", "?"), missing.replace("missing", "?"))
        objects = bob.adbc_get_objects(depth="tables").read_all().to_pylist()
        names = {
            table["table_name"]
            for catalog in objects
            for schema in catalog["catalog_db_schemas"]
            if schema["db_schema_name"] == database
            for table in schema["db_schema_tables"]
        }
        equal(names, {"open"})


def names(port, database):
    with connect(port) as connection:
        run(
            connection,
            f"""CREATE TABLE {database}.u (k INT, n DECIMAL(10, 2), v STRING) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1""",
        )
        run(connection, f"CREATE VIEW {database}.w AS SELECT k FROM {database}.u")
        schema = connection.adbc_get_table_schema("u", db_schema_filter=database)
        equal([(field.name, str(field.type)) for field in schema], [("k", "int32"), ("n", "decimal128(10, 2)"), ("v", "string")])
        equal(set(connection.adbc_get_table_types()), {"TABLE", "VIEW", "SYSTEM VIEW"})
        equal(connection.adbc_get_info()["vendor_name"], "Tributary")
        objects = connection.adbc_get_objects(depth="columns", db_schema_filter=database).read_all().to_pylist()
        equal([catalog["catalog_name"] for catalog in objects], ["internal"])
        (own,) = objects[0]["catalog_db_schemas"]
        tables = {table["table_name"]: table for table in own["db_schema_tables"]}
        equal({name: table["table_type"] for name, table in tables.items()}, {"u": "TABLE", "w": "VIEW"})
        equal([column["column_name"] for column in tables["u"]["table_columns"]], ["k", "n", "v"])


def encrypted(port, authority, user, password):
    with connect(port, user, password, tls=authority) as connection:
        equal(rows(connection, "SELECT 1"), [(1,)])
        equal(len(rows(connection, "SHOW STATUS LIKE 'Ssl_cipher'")), 1)
    with open(authority, "rb") as file:
        client = flight.connect(f"grpc+tls://127.0.0.1:{port}", tls_root_certs=file.read())
    token = client.authenticate_basic_token(user, password)
    options = flight.FlightCallOptions(headers=[token])
    equal(query(client, options, "SELECT 2 AS a").to_pylist(), [{"a": 2}])
    refusal(lambda: log_in(port, user, password), "require_secure_transport")
    plain = flight.connect(f"grpc+tcp://127.0.0.1:{port}")
    refusal(lambda: query(plain, options, "SELECT 1"), "require_secure_transport")


main(
    {
        check.__name__: check
        for check in (
            logins, strangers, actions, types, statements, large, prepared, tablet, ingest, kills, privileges, names, encrypted,
        )
    }
)
