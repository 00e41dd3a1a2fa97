"""Times reads of one table by Arrow Flight SQL and by MySQL's protocol: flight_read.py FLIGHT_PORT MYSQL_PORT ROWS ROUNDS"""

import subprocess
import sys
import time
import warnings

# It brings OpenSSL, which must be loaded before that of Python.
import _mysql_connector  # noqa: F401
import adbc_driver_flightsql.dbapi as adbc
import mysql.connector
import pyarrow.flight as flight
import pymysql

warnings.simplefilter("ignore")
QUERY = "SELECT id, device, at, celsius, price, note FROM plant.readings"
URL = "type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"


def length(number):
    """A number as protobuf writes it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, data):
    return length(number << 3 | 2) + length(len(data)) + data


def by_pyarrow(ports):
    client = flight.connect(f"grpc+tcp://127.0.0.1:{ports[0]}")
    options = flight.FlightCallOptions(headers=[client.authenticate_basic_token("root", "")])
    command = field(1, URL.encode()) + field(2, field(1, QUERY.encode()))
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
    return client.do_get(info.endpoints[0].ticket, options).read_all().num_rows


def by_adbc(ports):
    options = {"username": "root", "password": ""}
    with adbc.connect(f"grpc+tcp://127.0.0.1:{ports[0]}", db_kwargs=options, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute(QUERY)
            return cursor.fetch_arrow_table().num_rows


def by_mariadb(ports):
    command = ["mariadb", "-h", "127.0.0.1", "-P", str(ports[1]), "-u", "root", "--quick", "--batch", "-N", "-e", QUERY]
    lines = subprocess.Popen(command, stdout=subprocess.PIPE)
    count = subprocess.check_output(["wc", "-l"], stdin=lines.stdout)
    return int(count)


def by_mysqls_driver(ports):
    connection = mysql.connector.connect(host="127.0.0.1", port=ports[1], user="root", ssl_disabled=True, use_pure=False)
    cursor = connection.cursor()
    cursor.execute(QUERY)
    return len(cursor.fetchall())


def by_pymysql(ports):
    connection = pymysql.connect(host="127.0.0.1", port=ports[1], user="root")
    with connection.cursor() as cursor:
        cursor.execute(QUERY)
        return len(cursor.fetchall())


CLIENTS = {
    "Flight SQL, pyarrow": by_pyarrow,
    "Flight SQL, ADBC": by_adbc,
    "MySQL, mariadb (C) to wc": by_mariadb,
    "MySQL, MySQL's driver (C)": by_mysqls_driver,
    "MySQL, PyMySQL": by_pymysql,
}


def main():
    ports, rows, rounds = [int(port) for port in sys.argv[1:3]], int(sys.argv[3]), int(sys.argv[4])
    connection = pymysql.connect(host="127.0.0.1", port=ports[1], user="root", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE plant")
        cursor.execute(
            """CREATE TABLE plant.readings (id BIGINT, device INT, at DATETIME, celsius DOUBLE, price DECIMAL(12, 2), note VARCHAR(40))
            DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1"""
        )
        cursor.execute(
            f"""INSERT INTO plant.readings SELECT number, number % 1000, date_add('2026-01-01', INTERVAL number SECOND), number / 7,
            number / 100, concat('reading ', number % 5000) FROM numbers("number" = "{rows}")"""
        )
    best = dict.fromkeys(CLIENTS, float("inf"))
    for _ in range(rounds):
        for name, read in CLIENTS.items():
            begun = time.monotonic()
            found = read(ports)
            best[name] = min(best[name], time.monotonic() - begun)
            if found != rows:
                sys.exit(f"{name}: {found} rows instead of {rows}")
    fastest = min(seconds for name, seconds in best.items() if name.startswith("MySQL"))
    print(f"{rows} rows, the best of {rounds} rounds")
    for name, seconds in best.items():
        print(f"{name:28} {seconds:8.3f} s {rows / seconds / 1e6:8.2f} million rows/s {fastest / seconds:8.1f} ×")


main()
