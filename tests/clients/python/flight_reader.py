"""Reads db.dt at a node that only reads, by Arrow Flight SQL, and tries to add a row: flight_reader.py PORT"""

import sys
import warnings

import adbc_driver_flightsql.dbapi as adbc

warnings.simplefilter("ignore")


def main(port):
    options = {"username": "root", "password": ""}
    with adbc.connect(f"grpc+tcp://127.0.0.1:{port}", db_kwargs=options, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM db.dt")
            rows = cursor.fetch_arrow_table().num_rows
            for statement in ["INSERT INTO db.dt VALUES (1, 'a', 1)", "DROP TABLE db.dt"]:
                try:
                    cursor.execute(statement)
                    cursor.fetchall()
                except Exception as error:
                    if "--read-only" not in str(error):
                        raise
                else:
                    raise AssertionError(f"{statement} was run")
    print(f"{rows} rows, and a refusal")


main(sys.argv[1])
