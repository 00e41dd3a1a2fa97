CREATE TABLE databases ( id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE ) STRICT
CREATE TABLE garbage ( location TEXT NOT NULL PRIMARY KEY, table_id INTEGER NOT NULL ) STRICT, WITHOUT ROWID
CREATE TABLE increments ( table_id INTEGER PRIMARY KEY REFERENCES tables (id) ON DELETE CASCADE, next INTEGER NOT NULL ) STRICT
CREATE TABLE jobs ( node INTEGER NOT NULL REFERENCES nodes (number), id INTEGER NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (node, id) ) STRICT, WITHOUT ROWID
CREATE TABLE meta ( key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL ) STRICT, WITHOUT ROWID
CREATE TABLE next_table_id (id INTEGER NOT NULL) STRICT
CREATE TABLE nodes ( number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE ) STRICT
CREATE TABLE positions ( node INTEGER NOT NULL REFERENCES nodes (number), source INTEGER NOT NULL, txn_id INTEGER NOT NULL, position BLOB NOT NULL, PRIMARY KEY (node, source) ) STRICT, WITHOUT ROWID
CREATE TABLE recycled_databases ( database_id INTEGER PRIMARY KEY REFERENCES databases (id) ON DELETE CASCADE, name TEXT NOT NULL, dropped_at_ms INTEGER NOT NULL ) STRICT
CREATE TABLE recycled_partitions ( table_id INTEGER NOT NULL REFERENCES tables (id) ON DELETE CASCADE, partition_id INTEGER NOT NULL, name TEXT NOT NULL, dropped_at_ms INTEGER NOT NULL, bytes INTEGER NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (table_id, partition_id) ) STRICT, WITHOUT ROWID
CREATE TABLE recycled_tables ( table_id INTEGER PRIMARY KEY REFERENCES tables (id) ON DELETE CASCADE, dropped_at_ms INTEGER NOT NULL, bytes INTEGER NOT NULL, with_database INTEGER NOT NULL ) STRICT
CREATE TABLE revision (number INTEGER NOT NULL) STRICT
CREATE TABLE roles ( name TEXT NOT NULL PRIMARY KEY, definition TEXT NOT NULL ) STRICT, WITHOUT ROWID
CREATE TABLE schemas ( table_id INTEGER NOT NULL REFERENCES tables (id) ON DELETE CASCADE, version INTEGER NOT NULL, definition TEXT NOT NULL, made_at_ms INTEGER, PRIMARY KEY (table_id, version) ) STRICT, WITHOUT ROWID
CREATE TABLE tables ( id INTEGER PRIMARY KEY, database_id INTEGER NOT NULL REFERENCES databases (id), name TEXT NOT NULL, location TEXT NOT NULL UNIQUE, definition TEXT NOT NULL, last_change INTEGER NOT NULL DEFAULT 0, UNIQUE (database_id, name) ) STRICT
CREATE TABLE transactions ( node INTEGER NOT NULL REFERENCES nodes (number), txn_id INTEGER NOT NULL, database_id INTEGER NOT NULL, table_id INTEGER NOT NULL, database_name TEXT NOT NULL, table_name TEXT NOT NULL, label TEXT NOT NULL, label_is_kept INTEGER NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, loads INTEGER NOT NULL, row_count INTEGER NOT NULL, bytes INTEGER NOT NULL, prepared_at_ms INTEGER NOT NULL, precommitted_at_ms INTEGER, finished_at_ms INTEGER, reason TEXT NOT NULL, attachment BLOB, PRIMARY KEY (node, txn_id) ) STRICT, WITHOUT ROWID
CREATE INDEX transactions_by_end ON transactions (node, finished_at_ms)
CREATE INDEX transactions_by_label ON transactions (database_id, label)
CREATE TABLE users ( name TEXT NOT NULL, host TEXT NOT NULL, password_hash BLOB, definition TEXT NOT NULL DEFAULT '{}', salted_hash TEXT, PRIMARY KEY (name, host) ) STRICT, WITHOUT ROWID
CREATE TABLE views ( id INTEGER PRIMARY KEY, database_id INTEGER NOT NULL REFERENCES databases (id), name TEXT NOT NULL, definition TEXT NOT NULL, UNIQUE (database_id, name) ) STRICT
