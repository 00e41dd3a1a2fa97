import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLSyntaxErrorException;
import java.sql.SQLTimeoutException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** A JDBC driver against a server: DriverChecks BINARY [CHECK...]; the driver is the variant of the suite */
public class DriverChecks {
    private static final String DATABASE = "jdbc_suite";

    private static String url;
    private static boolean mysql;
    private static boolean oldMaria;
    /** Whether the server is MySQL or MariaDB itself, against which the checks are made sure of. */
    private static boolean peer;

    public static void main(String[] arguments) throws Exception {
        Server server = Server.start(arguments[0], "?MYSQL_DDL=compat");
        String driver = System.getProperty("suite.variant");
        mysql = driver.startsWith("mysql");
        oldMaria = driver.startsWith("mariadb-2");
        peer = System.getenv("SUITE_PEER") != null;
        url = "jdbc:" + (mysql ? "mysql" : "mariadb") + "://127.0.0.1:" + server.mysqlPort() + "/";
        Checks checks = new Checks("jdbc " + driver, driver + ".", List.of(arguments).subList(1, arguments.length));
        try (Connection connection = DriverManager.getConnection(url, "root", "")) {
            run(connection, "DROP DATABASE IF EXISTS " + DATABASE);
            run(connection, "CREATE DATABASE " + DATABASE);
        }
        tables();
        // Connector/J asks by SHOW, unless the server is an 8.0 or the option is set.
        for (String options : mysql ? List.of("", "useInformationSchema=true") : List.of("")) {
            String suffix = options.isEmpty() ? "" : "_of_information_schema";
            checks.check("metadata_every_method" + suffix, () -> everyMethod(options));
            checks.check("metadata_tables" + suffix, () -> metadataTables(options));
            checks.check("metadata_columns" + suffix, () -> metadataColumns(options));
            checks.check("metadata_keys" + suffix, () -> metadataKeys(options));
        }
        for (boolean byServer : new boolean[] {false, true}) {
            String side = byServer ? "server" : "client";
            String option = "useServerPrepStmts=" + byServer;
            checks.check("types_prepared_by_" + side, () -> types(option, byServer ? "types_s" : "types_c"));
            checks.check("nulls_prepared_by_" + side, () -> nulls(option, byServer ? "nulls_s" : "nulls_c"));
            checks.check("batch_prepared_by_" + side, () -> batch(option, byServer ? "batch_s" : "batch_c", 3000));
            checks.check("batch_rewritten_prepared_by_" + side,
                    () -> batch(option + "&rewriteBatchedStatements=true", byServer ? "batch_rs" : "batch_rc", 20000));
            checks.check("streams_prepared_by_" + side, () -> streams(option, byServer ? "streams_s" : "streams_c"));
            checks.check("large_value_prepared_by_" + side, () -> largeValue(option, byServer ? "large_s" : "large_c"));
            checks.check("metadata_of_statement_prepared_by_" + side, () -> statementMetadata(option));
        }
        checks.check("batch_of_statements", DriverChecks::batchOfStatements);
        checks.check("batch_with_failure", DriverChecks::batchWithFailure);
        checks.check("max_rows", DriverChecks::maxRows);
        checks.check("streaming_row_by_row", DriverChecks::streaming);
        checks.check("cursor_fetch", DriverChecks::cursorFetch);
        checks.check("scrollable_result", DriverChecks::scrollable);
        checks.check("generated_keys", DriverChecks::generatedKeys);
        checks.check("update_counts", DriverChecks::updateCounts);
        checks.check("updatable_result", DriverChecks::updatable);
        checks.check("several_statements_at_once", DriverChecks::severalStatements);
        checks.check("commit_and_rollback", DriverChecks::transactions);
        checks.check("savepoints", DriverChecks::savepoints);
        checks.check("isolation_and_read_only", DriverChecks::isolation);
        checks.check("query_timeout", DriverChecks::queryTimeout);
        checks.check("cancel", DriverChecks::cancel);
        checks.check("is_valid_and_ping", DriverChecks::isValid);
        checks.check("change_catalog", DriverChecks::changeCatalog);
        checks.check("error_codes_and_states", DriverChecks::errors);
        checks.check("warnings", DriverChecks::warnings);
        checks.check("load_data_local", DriverChecks::loadData);
        checks.check("compressed_protocol", () -> batch("useCompression=true&rewriteBatchedStatements=true", "batch_z", 5000));
        checks.check("time_zones", DriverChecks::timeZones);
        checks.check("session_variables", DriverChecks::sessionVariables);
        checks.check("connection_attributes_and_options", DriverChecks::options);
        checks.finish();
    }

    private static Connection connect(String options) throws SQLException {
        return DriverManager.getConnection(url + DATABASE + "?allowPublicKeyRetrieval=true&" + options, "root", "");
    }

    private static void run(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }

    /** Makes a table with the key `id`, which must be the first column. */
    private static void table(Connection connection, String name, String columns) throws SQLException {
        run(connection, "CREATE TABLE " + name + " (" + columns + (peer ? ", PRIMARY KEY (id))"
                : ") UNIQUE KEY (id) DISTRIBUTED BY HASH (id) BUCKETS 1 PROPERTIES ('replication_num' = '1')"));
    }

    private static String one(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
            Checks.holds(rows.next(), "no row: " + query);
            return rows.getString(1);
        }
    }

    private static void tables() throws SQLException {
        try (Connection connection = connect("")) {
            table(connection, "people", "id BIGINT NOT NULL COMMENT 'number', name VARCHAR(40) NOT NULL DEFAULT 'nobody', "
                    + "score INT NULL, balance DECIMAL(12, 3) NULL, weight DOUBLE NULL, born DATE NULL, seen DATETIME(6) NULL, "
                    + "small SMALLINT NULL, tiny TINYINT NULL, letter CHAR(3) NULL, ratio FLOAT NULL");
            run(connection, "INSERT INTO people (id, name, score) VALUES (1, 'Ada', 10), (2, 'Ben', NULL), (3, 'Cleo', 30)");
            run(connection, "CREATE VIEW names AS SELECT id, name FROM people");
        }
    }

    /** Calls every method of DatabaseMetaData, by reflection: none may throw. */
    private static void everyMethod(String options) throws SQLException {
        Connection connection = connect(options);
        DatabaseMetaData metadata = connection.getMetaData();
        Method[] methods = DatabaseMetaData.class.getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName).thenComparing(Method::getParameterCount));
        Set<String> seen = new HashSet<>();
        List<String> failed = new ArrayList<>();
        int[] called = new int[1];
        for (Method method : methods) {
            if (method.getDeclaringClass() == Object.class || method.getName().equals("unwrap")) {
                continue;
            }
            Object[] values = values(method);
            String name = method.getName() + "/" + method.getParameterCount();
            if (!seen.add(name)) {
                continue;
            }
            called[0]++;
            try {
                Object answer = method.invoke(metadata, values);
                if (answer instanceof ResultSet rows) {
                    int columns = rows.getMetaData().getColumnCount();
                    Checks.holds(columns > 0, "no columns");
                    while (rows.next()) {
                        for (int i = 1; i <= columns; i++) {
                            rows.getObject(i);
                        }
                    }
                    rows.close();
                }
            } catch (InvocationTargetException error) {
                failed.add(name + " (" + error.getCause() + ")");
            } catch (Exception | AssertionError error) {
                failed.add(name + " (" + error + ")");
            }
        }
        connection.close();
        Checks.holds(called[0] > 170, "only " + called[0] + " methods");
        Checks.holds(failed.isEmpty(), failed.size() + " of " + called[0] + ": " + String.join("; ", failed));
    }

    private static Object[] values(Method method) {
        Class<?>[] types = method.getParameterTypes();
        Object[] values = new Object[types.length];
        int text = 0;
        for (int i = 0; i < types.length; i++) {
            if (types[i] == String.class) {
                // Catalog, schema, table (or a pattern), column.
                String[] wanted = {DATABASE, null, "people", "%"};
                if (method.getName().equals("getCrossReference")) {
                    wanted = new String[] {DATABASE, null, "people", DATABASE, null, "people"};
                } else if (method.getName().equals("getSchemas")) {
                    wanted = new String[] {null, null};
                }
                values[i] = wanted[text++];
            } else if (types[i] == int.class) {
                values[i] = method.getName().startsWith("supportsTransactionIsolation") ? Connection.TRANSACTION_READ_COMMITTED
                        : method.getName().equals("getBestRowIdentifier") ? DatabaseMetaData.bestRowSession : ResultSet.TYPE_FORWARD_ONLY;
                if (method.getName().equals("supportsConvert")) {
                    values[i] = Types.INTEGER;
                } else if (method.getName().equals("supportsResultSetConcurrency") && i == 1) {
                    values[i] = ResultSet.CONCUR_READ_ONLY;
                }
            } else if (types[i] == boolean.class) {
                values[i] = false;
            } else if (types[i] == Class.class) {
                values[i] = DatabaseMetaData.class;
            }
        }
        return values;
    }

    private static void metadataTables(String options) throws SQLException {
        try (Connection connection = connect(options)) {
            DatabaseMetaData metadata = connection.getMetaData();
            List<String> found = new ArrayList<>();
            try (ResultSet rows = metadata.getTables(DATABASE, null, "%", new String[] {"TABLE", "VIEW"})) {
                while (rows.next()) {
                    found.add(rows.getString("TABLE_NAME") + " " + rows.getString("TABLE_TYPE") + " " + rows.getString("TABLE_CAT"));
                }
            }
            Checks.holds(found.contains("people " + (mysql || oldMaria || found.contains("people TABLE " + DATABASE) ? "TABLE " : "BASE TABLE ") + DATABASE),
                    "tables: " + found);
            Checks.holds(found.contains("names VIEW " + DATABASE), "views: " + found);
            try (ResultSet rows = metadata.getTables(DATABASE, null, "peop__", new String[] {"TABLE"})) {
                Checks.holds(rows.next(), "pattern finds nothing");
            }
            try (ResultSet rows = metadata.getTables(DATABASE, null, "nam%", new String[] {"TABLE"})) {
                Checks.holds(!rows.next(), "a view among the tables");
            }
            boolean database = false;
            try (ResultSet rows = metadata.getCatalogs()) {
                while (rows.next()) {
                    database |= rows.getString("TABLE_CAT").equals(DATABASE);
                }
            }
            Checks.holds(database, "the database is no catalog");
            try (ResultSet rows = metadata.getTables("information_schema", null, "tables", null)) {
                // MariaDB's names are in capitals there, and the driver compares them so.
                Checks.holds(peer || rows.next(), "information_schema.tables is missing");
            }
        }
    }

    private static void metadataColumns(String options) throws SQLException {
        try (Connection connection = connect(options)) {
            StringBuilder found = new StringBuilder();
            try (ResultSet rows = connection.getMetaData().getColumns(DATABASE, null, "people", "%")) {
                while (rows.next()) {
                    found.append(rows.getString("COLUMN_NAME")).append(' ').append(rows.getInt("DATA_TYPE")).append(' ')
                            .append(rows.getInt("NULLABLE")).append(' ').append(rows.getInt("ORDINAL_POSITION")).append('\n');
                    switch (rows.getString("COLUMN_NAME")) {
                        case "id" -> {
                            Checks.same("number", rows.getString("REMARKS"), "comment");
                            Checks.same("NO", rows.getString("IS_NULLABLE"), "nullable");
                        }
                        case "name" -> {
                            Checks.same(40, rows.getInt("COLUMN_SIZE"), "size of the name");
                            Checks.same("nobody", rows.getString("COLUMN_DEF").replace("'", ""), "default");
                        }
                        case "balance" -> {
                            Checks.same(12, rows.getInt("COLUMN_SIZE"), "precision");
                            Checks.same(3, rows.getInt("DECIMAL_DIGITS"), "scale");
                        }
                        default -> { }
                    }
                }
            }
            Checks.same("id " + Types.BIGINT + " 0 1\nname " + Types.VARCHAR + " 0 2\nscore " + Types.INTEGER + " 1 3\nbalance "
                    + Types.DECIMAL + " 1 4\nweight " + Types.DOUBLE + " 1 5\nborn " + Types.DATE + " 1 6\nseen " + Types.TIMESTAMP
                    + " 1 7\nsmall " + Types.SMALLINT + " 1 8\ntiny " + Types.TINYINT + " 1 9\nletter " + Types.CHAR + " 1 10\nratio "
                    + Types.REAL + " 1 11\n", found.toString(), "columns");
            try (ResultSet rows = connection.getMetaData().getColumns(DATABASE, null, "people", "s%")) {
                Checks.holds(rows.next() && rows.getString("COLUMN_NAME").equals("score"), "columns by a pattern");
            }
        }
    }

    private static void metadataKeys(String options) throws SQLException {
        try (Connection connection = connect(options)) {
            try (ResultSet rows = connection.getMetaData().getPrimaryKeys(DATABASE, null, "people")) {
                Checks.holds(rows.next(), "no primary key");
                Checks.same("id", rows.getString("COLUMN_NAME"), "column of the key");
                Checks.same(1, rows.getInt("KEY_SEQ"), "place in the key");
                Checks.holds(!rows.next(), "two columns in the key");
            }
            try (ResultSet rows = connection.getMetaData().getIndexInfo(DATABASE, null, "people", true, false)) {
                Checks.holds(rows.next(), "no unique index");
                Checks.same("id", rows.getString("COLUMN_NAME"), "column of the index");
                Checks.same(false, rows.getBoolean("NON_UNIQUE"), "not unique");
            }
            try (ResultSet rows = connection.getMetaData().getBestRowIdentifier(DATABASE, null, "people", DatabaseMetaData.bestRowSession, true)) {
                Checks.holds(rows.next() && rows.getString("COLUMN_NAME").equals("id"), "row identifier");
            }
            try (ResultSet rows = connection.getMetaData().getImportedKeys(DATABASE, null, "people")) {
                Checks.holds(!rows.next(), "a foreign key");
            }
        }
    }

    private static void types(String options, String name) throws SQLException {
        try (Connection connection = connect(options)) {
            table(connection, name, "id INT NOT NULL, t TINYINT, s SMALLINT, i INT, b BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 4), "
                    + "c CHAR(5), v VARCHAR(100), x TEXT, a DATE, m DATETIME(6), y BOOLEAN");
            LocalDateTime moment = LocalDateTime.of(2024, 2, 29, 23, 59, 58, 123456000);
            try (PreparedStatement insert = connection.prepareStatement(
                    "INSERT INTO " + name + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                for (int id = 1; id <= 2; id++) {
                    insert.setInt(1, id);
                    insert.setByte(2, (byte) -128);
                    insert.setShort(3, (short) 32767);
                    insert.setInt(4, Integer.MIN_VALUE);
                    insert.setLong(5, Long.MAX_VALUE);
                    insert.setFloat(6, 1.5f);
                    insert.setDouble(7, -2.25e100);
                    insert.setBigDecimal(8, new BigDecimal("1234567890123456.7891"));
                    insert.setString(9, "abc");
                    insert.setString(10, "ä€😀 'q' \"d\" \\ \n\t%_;");
                    insert.setString(11, "x".repeat(10_000));
                    insert.setObject(12, LocalDate.of(2000, 2, 29));
                    insert.setObject(13, moment);
                    insert.setBoolean(14, true);
                    Checks.same(1, insert.executeUpdate(), "rows inserted");
                }
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT * FROM " + name + " WHERE id = ? AND v LIKE ?")) {
                select.setInt(1, 2);
                select.setString(2, "%😀%");
                try (ResultSet row = select.executeQuery()) {
                    Checks.holds(row.next(), "no row");
                    Checks.same((byte) -128, row.getByte("t"), "TINYINT");
                    Checks.same((short) 32767, row.getShort("s"), "SMALLINT");
                    Checks.same(Integer.MIN_VALUE, row.getInt("i"), "INT");
                    Checks.same(Long.MAX_VALUE, row.getLong("b"), "BIGINT");
                    Checks.same(1.5f, row.getFloat("f"), "FLOAT");
                    Checks.same(-2.25e100, row.getDouble("d"), "DOUBLE");
                    Checks.same(new BigDecimal("1234567890123456.7891"), row.getBigDecimal("n"), "DECIMAL");
                    Checks.same("abc", row.getString("c"), "CHAR");
                    Checks.same("ä€😀 'q' \"d\" \\ \n\t%_;", row.getString("v"), "VARCHAR");
                    Checks.same(10_000, row.getString("x").length(), "TEXT");
                    Checks.same(LocalDate.of(2000, 2, 29), row.getObject("a", LocalDate.class), "DATE");
                    Checks.same(Date.valueOf("2000-02-29"), row.getDate("a"), "DATE as java.sql.Date");
                    Checks.same(moment, row.getObject("m", LocalDateTime.class), "DATETIME");
                    Checks.same(Timestamp.valueOf(moment), row.getTimestamp("m"), "DATETIME as Timestamp");
                    Checks.same(true, row.getBoolean("y"), "BOOLEAN");
                    Checks.same(Long.class, row.getObject("b").getClass(), "class of BIGINT");
                    Checks.same(Integer.class, row.getObject("i").getClass(), "class of INT");
                    Checks.same(BigDecimal.class, row.getObject("n").getClass(), "class of DECIMAL");
                    Checks.same(Double.class, row.getObject("d").getClass(), "class of DOUBLE");
                    Checks.same(Float.class, row.getObject("f").getClass(), "class of FLOAT");
                    Checks.same(Date.class, row.getObject("a").getClass(), "class of DATE");
                    Checks.same(String.class, row.getObject("x").getClass(), "class of TEXT");
                    Checks.same(Boolean.class, row.getObject("y").getClass(), "class of BOOLEAN");
                    Checks.holds(!row.next(), "two rows");
                }
            }
        }
    }

    private static void nulls(String options, String name) throws SQLException {
        try (Connection connection = connect(options)) {
            table(connection, name, "id INT NOT NULL, i INT, v VARCHAR(10), m DATETIME, n DECIMAL(9, 2), d DOUBLE");
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + name + " VALUES (?, ?, ?, ?, ?, ?)")) {
                insert.setInt(1, 1);
                insert.setNull(2, Types.INTEGER);
                insert.setNull(3, Types.VARCHAR);
                insert.setNull(4, Types.TIMESTAMP);
                insert.setNull(5, Types.DECIMAL);
                insert.setObject(6, null);
                insert.executeUpdate();
            }
            try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery("SELECT * FROM " + name)) {
                Checks.holds(row.next(), "no row");
                for (int i = 2; i <= 6; i++) {
                    Checks.same(null, row.getObject(i), "column " + i);
                    Checks.holds(row.wasNull(), "not null: " + i);
                }
                Checks.same(0, row.getInt(2), "INT");
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT COUNT(*) FROM " + name + " WHERE i <=> ? AND v IS NULL")) {
                select.setNull(1, Types.INTEGER);
                try (ResultSet row = select.executeQuery()) {
                    row.next();
                    Checks.same(1, row.getInt(1), "rows with <=> NULL");
                }
            }
        }
    }

    private static void batch(String options, String name, int rows) throws SQLException {
        try (Connection connection = connect(options)) {
            table(connection, name, "id INT NOT NULL, text VARCHAR(50), n DECIMAL(12, 2), m DATETIME");
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + name + " (id, text, n, m) VALUES (?, ?, ?, ?)")) {
                long counted = 0;
                for (int i = 0; i < rows; i++) {
                    insert.setInt(1, i);
                    insert.setString(2, "row '" + i + "'");
                    insert.setBigDecimal(3, BigDecimal.valueOf(i, 2));
                    insert.setTimestamp(4, Timestamp.valueOf("2024-01-01 00:00:00"));
                    insert.addBatch();
                    if ((i + 1) % 1000 == 0) {
                        for (int count : insert.executeBatch()) {
                            Checks.holds(count == 1 || count == Statement.SUCCESS_NO_INFO, "count " + count);
                            counted++;
                        }
                    }
                }
                Checks.same((long) rows, counted, "counts");
            }
            Checks.same(String.valueOf(rows), one(connection, "SELECT COUNT(*) FROM " + name), "rows");
            Checks.same(BigDecimal.valueOf((long) rows * (rows - 1) / 2, 2).toString(), one(connection, "SELECT SUM(n) FROM " + name), "sum");
            Checks.same("row '777'", one(connection, "SELECT text FROM " + name + " WHERE id = 777"), "text");
        }
    }

    private static void streams(String options, String name) throws Exception {
        try (Connection connection = connect(options)) {
            table(connection, name, "id INT NOT NULL, a TEXT, b TEXT");
            String text = "line of ä text\n".repeat(2000);
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + name + " VALUES (?, ?, ?)")) {
                insert.setInt(1, 1);
                insert.setCharacterStream(2, new StringReader(text), text.length());
                insert.setBinaryStream(3, new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)));
                insert.executeUpdate();
            }
            try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery("SELECT a, b FROM " + name)) {
                Checks.holds(row.next(), "no row");
                Checks.same(text, row.getString(1), "characters");
                Checks.same(text, new String(row.getBinaryStream(2).readAllBytes(), StandardCharsets.UTF_8), "bytes");
            }
        }
    }

    private static void largeValue(String options, String name) throws SQLException {
        try (Connection connection = connect(options)) {
            table(connection, name, "id INT NOT NULL, a " + (peer ? "LONGTEXT" : "STRING"));
            // About as much as a STRING takes unless the server is told otherwise.
            String text = "0123456789".repeat(100_000);
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + name + " VALUES (?, ?)")) {
                insert.setInt(1, 1);
                insert.setString(2, text);
                insert.executeUpdate();
            }
            Checks.same(text, one(connection, "SELECT a FROM " + name), "text");
            // A row of 20 MB is larger than one packet of the protocol.
            String part = "REPEAT('0123456789', 100000)";
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery("SELECT " + String.join(", ", Collections.nCopies(20, part)))) {
                Checks.holds(row.next(), "no row");
                for (int i = 1; i <= 20; i++) {
                    Checks.same(1_000_000, row.getString(i).length(), "length of column " + i);
                }
                Checks.holds(!row.next(), "two rows");
            }
        }
    }

    private static void statementMetadata(String options) throws SQLException {
        try (Connection connection = connect(options);
                PreparedStatement select = connection.prepareStatement(
                        "SELECT p.id AS number, p.name, p.balance * 2, COUNT(*) OVER () FROM people p WHERE p.id > ? AND p.name <> ?")) {
            ParameterMetaData parameters = select.getParameterMetaData();
            Checks.same(2, parameters.getParameterCount(), "parameters");
            select.setLong(1, 0);
            select.setString(2, "");
            try (ResultSet rows = select.executeQuery()) {
                ResultSetMetaData columns = rows.getMetaData();
                Checks.same(4, columns.getColumnCount(), "columns");
                Checks.same("number", columns.getColumnLabel(1), "label");
                Checks.same("id", columns.getColumnName(1), "name");
                Checks.same("people", columns.getTableName(1), "table");
                Checks.same(DATABASE, columns.getCatalogName(1), "database");
                Checks.same(Types.BIGINT, columns.getColumnType(1), "type of the first");
                Checks.same(Types.VARCHAR, columns.getColumnType(2), "type of the second");
                Checks.same(Types.DECIMAL, columns.getColumnType(3), "type of the third");
                Checks.same(Types.BIGINT, columns.getColumnType(4), "type of the fourth");
                if (!peer) {
                    Checks.same(ResultSetMetaData.columnNoNulls, columns.isNullable(1), "nullable");
                }
                Checks.same(40, columns.getColumnDisplaySize(2), "display size");
                int count = 0;
                while (rows.next()) {
                    Checks.same(3L, rows.getLong(4), "window");
                    count++;
                }
                Checks.same(3, count, "rows");
            }
        }
    }

    private static void batchOfStatements() throws SQLException {
        try (Connection connection = connect("rewriteBatchedStatements=true&allowMultiQueries=true")) {
            table(connection, "mixed", "id INT NOT NULL, v VARCHAR(20)");
            try (Statement statement = connection.createStatement()) {
                for (int i = 1; i <= 6; i++) {
                    statement.addBatch("INSERT INTO mixed VALUES (" + i + ", 'v" + i + "')");
                }
                statement.addBatch("UPDATE mixed SET v = 'new' WHERE id = 2");
                statement.addBatch("DELETE FROM mixed WHERE id = 3");
                int[] counts = statement.executeBatch();
                Checks.same("[1, 1, 1, 1, 1, 1, 1, 1]", Arrays.toString(counts), "counts");
            }
            Checks.same("5", one(connection, "SELECT COUNT(*) FROM mixed"), "rows");
            Checks.same("new", one(connection, "SELECT v FROM mixed WHERE id = 2"), "updated");
        }
    }

    private static void batchWithFailure() throws SQLException {
        try (Connection connection = connect("")) {
            table(connection, "failing", "id INT NOT NULL, n INT NOT NULL");
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO failing VALUES (?, ?)")) {
                for (int i = 1; i <= 3; i++) {
                    insert.setInt(1, i);
                    insert.setObject(2, i == 2 ? null : i);
                    insert.addBatch();
                }
                insert.executeBatch();
                throw new AssertionError("NULL was stored");
            } catch (BatchUpdateException expected) {
                Checks.same(3, mysql || oldMaria || expected.getUpdateCounts().length == 3 ? 3 : expected.getUpdateCounts().length, "counts");
            }
            Checks.same("0", one(connection, "SELECT COUNT(*) FROM failing WHERE id = 2"), "rows");
        }
    }

    private static String sequence(int rows) {
        // Digits joined with one another: the same text on every server.
        String digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5"
                + " UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
        return "SELECT a.d + b.d * 10 + c.d * 100 + e.d * 1000 + f.d * 10000 AS n FROM " + digits + " a, " + digits + " b, " + digits
                + " c, " + digits + " e, " + digits + " f WHERE a.d + b.d * 10 + c.d * 100 + e.d * 1000 + f.d * 10000 < " + rows;
    }

    private static void maxRows() throws SQLException {
        try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
            statement.setMaxRows(10);
            Checks.same(10, count(statement, sequence(1000)), "rows with a limit");
            statement.setMaxRows(0);
            Checks.same(1000, count(statement, sequence(1000)), "rows without a limit");
        }
    }

    private static int count(Statement statement, String query) throws SQLException {
        int count = 0;
        try (ResultSet rows = statement.executeQuery(query)) {
            while (rows.next()) {
                count++;
            }
        }
        return count;
    }

    private static void streaming() throws SQLException {
        try (Connection connection = connect("");
                Statement statement = connection.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
            statement.setFetchSize(mysql ? Integer.MIN_VALUE : 1);
            Checks.same(100_000, count(statement, sequence(100_000)), "rows");
            try (ResultSet rows = statement.executeQuery(sequence(100_000))) {
                Checks.holds(rows.next(), "no row");
                // Closing must leave the connection usable.
            }
            Checks.same("3", one(connection, "SELECT COUNT(*) FROM people"), "rows after a result that was not read");
        }
    }

    private static void cursorFetch() throws SQLException {
        try (Connection connection = connect("useCursorFetch=true&useServerPrepStmts=true&defaultFetchSize=100");
                PreparedStatement statement = connection.prepareStatement(sequence(2500) + " AND a.d >= ?")) {
            statement.setFetchSize(100);
            for (int round = 0; round < 2; round++) {
                statement.setInt(1, round);
                int count = 0;
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        count++;
                    }
                }
                Checks.same(2500 - 250 * round, count, "rows");
            }
            try (ResultSet rows = statement.executeQuery(); Statement other = connection.createStatement()) {
                Checks.holds(rows.next(), "no row");
                // A second statement while the cursor is open.
                Checks.same(3, count(other, "SELECT id FROM people"), "rows of the second statement");
                Checks.holds(rows.next(), "the cursor is gone");
            }
        }
    }

    private static void scrollable() throws SQLException {
        try (Connection connection = connect("");
                Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
                ResultSet rows = statement.executeQuery("SELECT id FROM people ORDER BY id")) {
            Checks.holds(rows.last(), "no last row");
            Checks.same(3, rows.getRow(), "row");
            Checks.holds(rows.absolute(2), "no second row");
            Checks.same(2, rows.getInt(1), "second");
            rows.beforeFirst();
            Checks.holds(rows.next(), "no first row");
        }
    }

    private static void generatedKeys() throws SQLException {
        try (Connection connection = connect("")) {
            table(connection, "numbered", "id BIGINT NOT NULL AUTO_INCREMENT, v VARCHAR(20)");
            long first;
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO numbered (v) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
                insert.setString(1, "a");
                insert.executeUpdate();
                first = key(insert);
                insert.setString(1, "b");
                insert.executeUpdate();
                Checks.holds(key(insert) > first, "the second key is not larger");
            }
            Checks.same("a", one(connection, "SELECT v FROM numbered WHERE id = " + first), "row by its key");
            try (Statement insert = connection.createStatement()) {
                insert.executeUpdate("INSERT INTO numbered (v) VALUES ('c'), ('d')", Statement.RETURN_GENERATED_KEYS);
                List<Long> keys = new ArrayList<>();
                try (ResultSet rows = insert.getGeneratedKeys()) {
                    while (rows.next()) {
                        keys.add(rows.getLong(1));
                    }
                }
                Checks.holds(!keys.isEmpty(), "no keys");
                Checks.same("c", one(connection, "SELECT v FROM numbered WHERE id = " + keys.get(0)), "row by the first key");
                if (keys.size() > 1) {
                    Checks.same("d", one(connection, "SELECT v FROM numbered WHERE id = " + keys.get(1)), "row by the second key");
                }
            }
            Checks.same(one(connection, "SELECT MAX(id) - 1 FROM numbered"), one(connection, "SELECT LAST_INSERT_ID()"), "LAST_INSERT_ID");
        }
    }

    private static long key(Statement insert) throws SQLException {
        try (ResultSet keys = insert.getGeneratedKeys()) {
            Checks.holds(keys.next(), "no key");
            return keys.getLong(1);
        }
    }

    private static void updateCounts() throws SQLException {
        try (Connection connection = connect("")) {
            table(connection, "counted", "id INT NOT NULL, v INT");
            try (Statement statement = connection.createStatement()) {
                Checks.same(3, statement.executeUpdate("INSERT INTO counted VALUES (1, 1), (2, 2), (3, 3)"), "inserted");
                // The drivers ask for the rows found, not for the rows changed.
                Checks.same(2, statement.executeUpdate("UPDATE counted SET v = 2 WHERE id >= 2"), "updated");
                Checks.same(0, statement.executeUpdate("UPDATE counted SET v = 2 WHERE id > 9"), "updated nothing");
                Checks.same(2L, statement.executeLargeUpdate("DELETE FROM counted WHERE id < 3"), "deleted");
                Checks.same(0, statement.executeUpdate("DELETE FROM counted WHERE id < 3"), "deleted nothing");
            }
            try (PreparedStatement update = connection.prepareStatement("UPDATE counted SET v = ? WHERE id = ?")) {
                update.setInt(1, 9);
                update.setInt(2, 3);
                Checks.same(1, update.executeUpdate(), "updated by a prepared statement");
            }
            Checks.same("9", one(connection, "SELECT v FROM counted"), "value");
        }
    }

    private static void updatable() throws SQLException {
        if (oldMaria) {
            return;
        }
        try (Connection connection = connect("")) {
            table(connection, "updatable", "id INT NOT NULL, v VARCHAR(20)");
            run(connection, "INSERT INTO updatable VALUES (1, 'a'), (2, 'b')");
            try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                    ResultSet rows = statement.executeQuery("SELECT id, v FROM updatable ORDER BY id")) {
                Checks.holds(rows.next(), "no row");
                rows.updateString("v", "changed");
                rows.updateRow();
                Checks.holds(rows.next(), "no second row");
                rows.deleteRow();
                rows.moveToInsertRow();
                rows.updateInt("id", 3);
                rows.updateString("v", "new");
                rows.insertRow();
            }
            Checks.same("changed", one(connection, "SELECT v FROM updatable WHERE id = 1"), "updated");
            Checks.same("1,3", one(connection, "SELECT GROUP_CONCAT(id ORDER BY id) FROM updatable").replace(" ", ""), "rows");
        }
    }

    private static void severalStatements() throws SQLException {
        try (Connection connection = connect("allowMultiQueries=true"); Statement statement = connection.createStatement()) {
            Checks.holds(statement.execute("SELECT 1; SELECT 2 AS two, 3; SET @a = 5; SELECT @a"), "no first result");
            Checks.same(1, first(statement), "first");
            Checks.holds(statement.getMoreResults(), "no second result");
            Checks.same(2, first(statement), "second");
            Checks.holds(!statement.getMoreResults(), "a result of SET");
            Checks.same(0, statement.getUpdateCount(), "count of SET");
            Checks.holds(statement.getMoreResults(), "no fourth result");
            Checks.same(5, first(statement), "fourth");
            Checks.holds(!statement.getMoreResults() && statement.getUpdateCount() == -1, "a fifth result");
        }
    }

    private static int first(Statement statement) throws SQLException {
        try (ResultSet row = statement.getResultSet()) {
            row.next();
            return row.getInt(1);
        }
    }

    private static void transactions() throws SQLException {
        try (Connection connection = connect(""); Connection other = connect("")) {
            table(connection, "accounts", "id INT NOT NULL, v INT");
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO accounts VALUES (1, 100), (2, 200)");
            Checks.same("0", one(other, "SELECT COUNT(*) FROM accounts"), "rows that others see before the commit");
            connection.commit();
            Checks.same("2", one(other, "SELECT COUNT(*) FROM accounts"), "rows that others see after the commit");
            run(connection, "INSERT INTO accounts VALUES (3, 300)");
            connection.rollback();
            Checks.same("2", one(connection, "SELECT COUNT(*) FROM accounts"), "rows after the rollback");
            run(connection, "INSERT INTO accounts VALUES (4, 400)");
            connection.setAutoCommit(true);
            Checks.same("3", one(other, "SELECT COUNT(*) FROM accounts"), "rows after autocommit was switched on");
        }
        try (Connection connection = connect("")) {
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO accounts VALUES (5, 500)");
            // Closed without a commit.
        }
        try (Connection connection = connect("")) {
            Checks.same("3", one(connection, "SELECT COUNT(*) FROM accounts"), "rows after a close without a commit");
        }
    }

    private static void savepoints() throws SQLException {
        try (Connection connection = connect("")) {
            table(connection, "saved", "id INT NOT NULL, v INT");
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO saved VALUES (1, 1)");
            Savepoint savepoint = connection.setSavepoint("first");
            run(connection, "INSERT INTO saved VALUES (2, 2)");
            connection.rollback(savepoint);
            run(connection, "INSERT INTO saved VALUES (3, 3)");
            Savepoint second = connection.setSavepoint();
            connection.releaseSavepoint(second);
            connection.commit();
            Checks.same("1,3", one(connection, "SELECT GROUP_CONCAT(id ORDER BY id) FROM saved").replace(" ", ""), "rows");
        }
    }

    private static void isolation() throws SQLException {
        try (Connection connection = connect("")) {
            int before = connection.getTransactionIsolation();
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ,
                    Connection.TRANSACTION_READ_UNCOMMITTED, before}) {
                connection.setTransactionIsolation(level);
                Checks.same(level, connection.getTransactionIsolation(), "isolation");
            }
            connection.setReadOnly(true);
            Checks.holds(connection.isReadOnly(), "not read-only");
            // MariaDB's driver tells the server so only if it has several to choose from.
            try {
                if (!mysql) {
                    throw new SQLException("not asked");
                }
                run(connection, "INSERT INTO people (id, name) VALUES (99, 'x')");
                throw new AssertionError("a read-only connection wrote");
            } catch (SQLException expected) {
                // The driver or the server refuses.
            }
            connection.setReadOnly(false);
            Checks.same("3", one(connection, "SELECT COUNT(*) FROM people"), "rows");
        }
    }

    private static void queryTimeout() throws SQLException {
        try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            long start = System.nanoTime();
            try {
                // MySQL answers 1 for a sleep that was ended, MariaDB an error.
                statement.executeQuery("SELECT SLEEP(20)").close();
                if (!peer) {
                    throw new AssertionError("the query was not ended");
                }
            } catch (SQLTimeoutException expected) {
                // As it should be.
            } catch (SQLException other) {
                Checks.holds(!mysql && other.getErrorCode() == 1317, "not a timeout: " + other);
            }
            Checks.holds(System.nanoTime() - start < 10_000_000_000L, "it took " + (System.nanoTime() - start) / 1_000_000 + " ms");
            statement.setQueryTimeout(0);
            Checks.same(3, count(statement, "SELECT id FROM people"), "rows after the timeout");
        }
    }

    private static void cancel() throws Exception {
        try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    for (int i = 0; i < 100 && !running(); i++) {
                        Thread.sleep(50);
                    }
                    statement.cancel();
                } catch (Exception ignored) {
                    // The query then runs to its end, which the check notices.
                }
            });
            other.start();
            long start = System.nanoTime();
            try {
                statement.executeQuery("SELECT SLEEP(21)").close();
            } catch (SQLException expected) {
                Checks.holds(expected.getErrorCode() == 1317 || expected.getErrorCode() == 0, "not a cancel: " + expected);
            }
            other.join();
            Checks.holds(System.nanoTime() - start < 15_000_000_000L, "the query was not ended");
            Checks.same("3", one(connection, "SELECT COUNT(*) FROM people"), "rows after the cancel");
        }
    }

    private static boolean running() throws SQLException {
        try (Connection connection = connect(""); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SHOW FULL PROCESSLIST")) {
            while (rows.next()) {
                String text = rows.getString("Info");
                if (text != null && text.contains("SLEEP(21)")) {
                    return true;
                }
            }
            return false;
        }
    }

    private static void isValid() throws SQLException {
        try (Connection connection = connect("")) {
            Checks.holds(connection.isValid(5), "not valid");
            Checks.same("1", one(connection, "/* ping */ SELECT 1"), "ping");
            connection.close();
            Checks.holds(!connection.isValid(5), "valid although closed");
        }
    }

    private static void changeCatalog() throws SQLException {
        try (Connection connection = connect("")) {
            Checks.same(DATABASE, connection.getCatalog(), "catalog");
            run(connection, "CREATE DATABASE IF NOT EXISTS jdbc_other");
            connection.setCatalog("jdbc_other");
            Checks.same("jdbc_other", connection.getCatalog(), "catalog after the change");
            Checks.same("jdbc_other", one(connection, "SELECT DATABASE()"), "database");
            try {
                connection.setCatalog("no_such_database");
                throw new AssertionError("a database that is missing was chosen");
            } catch (SQLException expected) {
                Checks.same(1049, expected.getErrorCode(), "code");
            }
        }
    }

    private static void errors() throws SQLException {
        String[][] cases = {
            {"SELECT * FROM no_such_table", "1146", "42S02"},
            {"SELECT no_such_column FROM people", "1054", "42S22"},
            {"SELEC 1", "1064", "42000"},
            {"SELECT * FROM no_such_database.t", peer ? "1146" : "1049", peer ? "42S02" : "42000"},
            {"DROP TABLE no_such_table", "1051", "42S02"},
            {"CREATE DATABASE " + DATABASE, "1007", "HY000"},
            {"DROP DATABASE no_such_database", "1008", "HY000"},
            {"CREATE TABLE people (id INT) DUPLICATE KEY (id) DISTRIBUTED BY HASH (id) BUCKETS 1 PROPERTIES ('replication_num' = '1')",
                "1050", "42S01"},
        };
        List<String> wrong = new ArrayList<>();
        try (Connection connection = connect("")) {
            for (String[] one : cases) {
                if (peer && one[0].contains("DUPLICATE")) {
                    continue;
                }
                try {
                    run(connection, one[0]);
                    wrong.add(one[0] + " passed");
                } catch (SQLException error) {
                    if (!one[1].equals(String.valueOf(error.getErrorCode())) || !one[2].equals(error.getSQLState())) {
                        wrong.add(one[0] + ": " + error.getErrorCode() + " " + error.getSQLState() + ", expected " + one[1] + " " + one[2]);
                    }
                    if (one[1].equals("1064") && !(error instanceof SQLSyntaxErrorException)) {
                        wrong.add("class " + error.getClass());
                    }
                }
            }
        }
        Checks.holds(wrong.isEmpty(), String.join("; ", wrong));
        try (Connection connection = DriverManager.getConnection(url + DATABASE, "nobody", "wrong")) {
            throw new AssertionError("a wrong password was accepted");
        } catch (SQLException error) {
            Checks.same(1045, error.getErrorCode(), "code of a refused login");
        }
    }

    private static void warnings() throws SQLException {
        try (Connection connection = connect(""); Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS never_there");
            statement.getWarnings();
            statement.executeQuery("SELECT 1").close();
            Checks.same(null, statement.getWarnings(), "warnings of a query");
            try (ResultSet rows = statement.executeQuery("SHOW WARNINGS")) {
                Checks.same(3, rows.getMetaData().getColumnCount(), "columns of SHOW WARNINGS");
                Checks.same("Level", rows.getMetaData().getColumnLabel(1), "title");
            }
        }
    }

    private static void loadData() throws Exception {
        Path file = Files.createTempFile("rows", ".csv");
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 5000; i++) {
            text.append(i).append(",v").append(i).append('\n');
        }
        Files.writeString(file, text);
        try (Connection connection = connect("allowLoadLocalInfile=true&allowLocalInfile=true"); Statement statement = connection.createStatement()) {
            table(connection, "loaded", "id INT NOT NULL, v VARCHAR(20)");
            int count = statement.executeUpdate("LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE loaded "
                    + (peer ? "FIELDS" : "COLUMNS") + " TERMINATED BY ',' LINES TERMINATED BY '\\n' (id, v)");
            Checks.same(5000, count, "count");
            Checks.same("5000", one(connection, "SELECT COUNT(*) FROM loaded"), "rows");
            Checks.same("v4321", one(connection, "SELECT v FROM loaded WHERE id = 4321"), "value");
        } finally {
            Files.delete(file);
        }
    }

    private static void timeZones() throws SQLException {
        // A server without tables of zones knows numbers alone.
        String options = mysql ? "connectionTimeZone=" + (peer ? "%2B08:00" : "Asia/Shanghai") + "&forceConnectionTimeZoneToSession=true" : "sessionVariables=time_zone='+08:00'";
        try (Connection connection = connect(options)) {
            String zone = one(connection, "SELECT @@session.time_zone");
            Checks.holds(zone.equals("Asia/Shanghai") || zone.equals("+08:00"), "time zone " + zone);
            Checks.same("8", one(connection, "SELECT HOUR(TIMEDIFF(NOW(), UTC_TIMESTAMP()))"), "hours from UTC");
        }
        try (Connection connection = connect(mysql ? "connectionTimeZone=SERVER" : "")) {
            Checks.same("3", one(connection, "SELECT COUNT(*) FROM people"), "rows with the server's zone");
        }
    }

    private static void sessionVariables() throws SQLException {
        try (Connection connection = connect("sessionVariables=sql_mode='NO_ZERO_DATE,STRICT_TRANS_TABLES',group_concat_max_len=100000,"
                + "net_write_timeout=600,wait_timeout=28800")) {
            Checks.same("600", one(connection, "SELECT @@net_write_timeout"), "net_write_timeout");
            Checks.holds(one(connection, "SELECT @@sql_mode").contains("NO_ZERO_DATE"), "sql_mode");
            Checks.same("3", one(connection, "SELECT COUNT(*) FROM people"), "rows");
        }
    }

    private static void options() throws SQLException {
        String[] all = mysql
                ? new String[] {"useInformationSchema=true", "cacheServerConfiguration=true&cachePrepStmts=true&useServerPrepStmts=true",
                    "useLocalSessionState=true&elideSetAutoCommits=true&maintainTimeStats=false", "characterEncoding=latin1",
                    "connectionCollation=utf8mb4_unicode_ci", "useUsageAdvisor=false&profileSQL=false", "useAffectedRows=true",
                    "tinyInt1isBit=false&yearIsDateType=false&zeroDateTimeBehavior=CONVERT_TO_NULL", "databaseTerm=SCHEMA",
                    "initialTimeout=1&autoReconnect=true", "readOnlyPropagatesToServer=false", "useReadAheadInput=false&tcpNoDelay=true",
                    "connectionAttributes=program_name:suite", "createDatabaseIfNotExist=true"}
                : new String[] {"cachePrepStmts=true&useServerPrepStmts=true", "useBulkStmts=true", "useAffectedRows=true", "autocommit=false",
                    "createDatabaseIfNotExist=true", "usePipelineAuth=true", "connectionCollation=utf8mb4_unicode_ci",
                    "cacheCallableStmts=true&maxQuerySizeToLog=100", "transactionReplay=true", "connectionAttributes=program_name:suite"};
        List<String> wrong = new ArrayList<>();
        for (String option : all) {
            try (Connection connection = connect(option)) {
                Checks.same("3", one(connection, "SELECT COUNT(*) FROM people"), "rows");
                try (ResultSet rows = connection.getMetaData().getColumns(DATABASE, null, "people", "%")) {
                    while (rows.next()) {
                        rows.getString("COLUMN_NAME");
                    }
                }
            } catch (Exception | AssertionError error) {
                wrong.add(option + ": " + error.getMessage());
            }
        }
        Checks.holds(wrong.isEmpty(), String.join("; ", wrong));
    }
}
