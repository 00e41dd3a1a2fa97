"""Logins of PyMySQL and MySQL's own driver: login_checks.py DRIVER PORT CA USER:PASSWORD:WAY ...

DRIVER is `pymysql`, `connector` (MySQL's driver in Python), `library` (over MySQL's client library) or `library-without-native` (the
library without its file of `mysql_native_password`).

WAY is `plain` (no TLS) or `tls` (the server's certificate is checked against CA). Prints a line per login: the cipher, `-` for none,
or the number of the error.
"""

import sys
import tempfile

# It brings OpenSSL, which must be loaded before that of Python.
import _mysql_connector  # noqa: F401
import mysql.connector
from mysql.connector.connection_cext import CMySQLConnection
import pymysql


def pymysql_connect(port, user, password, ca):
    tls = {"ssl_ca": ca, "ssl_verify_cert": True, "ssl_verify_identity": True} if ca else {"ssl_disabled": True}
    return pymysql.connect(host="localhost", port=port, user=user, password=password, **tls)


def connector_connect(port, user, password, ca):
    tls = {"ssl_ca": ca, "ssl_verify_cert": True, "ssl_verify_identity": True} if ca else {"ssl_disabled": True}
    return mysql.connector.connect(
        host="localhost", port=port, user=user, password=password, use_pure=True, **tls
    )


def library_connect(port, user, password, ca, plugins=None):
    tls = {"ssl_ca": ca, "ssl_verify_cert": True, "ssl_verify_identity": True} if ca else {"ssl_disabled": True}
    connection = CMySQLConnection()
    connection._plugin_dir = plugins or connection._plugin_dir
    connection.connect(host="localhost", port=port, user=user, password=password, **tls)
    return connection


def without_native_connect(port, user, password, ca):
    with tempfile.TemporaryDirectory() as no_plugins:
        return library_connect(port, user, password, ca, no_plugins)


def login(connect, port, ca, case):
    user, password, way = case.split(":")
    try:
        connection = connect(port, user, password, ca if way == "tls" else None)
    except (pymysql.Error, mysql.connector.Error) as error:
        return str(error.args[0])
    cursor = connection.cursor()
    cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
    cipher = cursor.fetchone()[1]
    connection.close()
    return cipher or "-"


driver, port, ca, *cases = sys.argv[1:]
connect = {
    "pymysql": pymysql_connect,
    "connector": connector_connect,
    "library": library_connect,
    "library-without-native": without_native_connect,
}[driver]
for case in cases:
    print(login(connect, int(port), ca, case), flush=True)
