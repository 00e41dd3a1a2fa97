import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** MySQL Connector/J against a server: JdbcChecks PORT DATABASE CHECK... */
public class JdbcChecks {
    private static final String MANUAL = "useServerPrepStmts=true&useLocalSessionState=true&rewriteBatchedStatements=true"
            + "&cachePrepStmts=true&prepStmtCacheSqlLimit=99999&prepStmtCacheSize=500";
    private static final String DT = "CREATE TABLE dt (id INT NOT NULL, name VARCHAR(50) NULL, score INT NULL) "
            + "DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 "
            + "PROPERTIES (\"replication_num\" = \"1\", \"group_commit_interval_ms\" = \"500\")";

    private static String port;
    private static String database;

    public static void main(String[] arguments) throws Exception {
        port = arguments[0];
        database = arguments[1];
        switch (arguments[2]) {
            case "types" -> {
                types("useServerPrepStmts=true");
                types("useServerPrepStmts=false");
                types("useServerPrepStmts=true&useCursorFetch=true&defaultFetchSize=1");
            }
            case "transactions" -> transactions();
            case "mode" -> modeByStatement();
            case "metadata" -> metadata("");
            case "information_schema" -> metadata("useInformationSchema=true");
            case "errors" -> errors();
            case "plain" -> plainUrl();
            case "compressed" -> compressed();
            case "load_data" -> loadData();
            default -> throw new IllegalArgumentException(arguments[2]);
        }
        System.out.println("ok");
    }

    private static Connection connect(String options) throws SQLException {
        return DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + database + "?" + options, "root", "");
    }

    private static void run(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private static List<String> rows(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
            List<String> rows = new ArrayList<>();
            int width = result.getMetaData().getColumnCount();
            while (result.next()) {
                List<String> row = new ArrayList<>();
                for (int column = 1; column <= width; column++) {
                    row.add(result.getString(column));
                }
                rows.add(String.join("|", row.stream().map(String::valueOf).toList()));
            }
            return rows;
        }
    }

    private static void equal(Object found, Object expected, String what) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError(what + "\n   found: " + found + "\nexpected: " + expected);
        }
    }

    /** Every setter, every type, NULLs; read back by getters through the same kind of statement. */
    private static void types(String options) throws Exception {
        try (Connection connection = connect(options)) {
            run(connection, "DROP TABLE IF EXISTS types");
            run(connection, "CREATE TABLE types (k INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, "
                    + "ll LARGEINT, f FLOAT, d DOUBLE, n DECIMAL(27,9), day DATE, at DATETIME, at6 DATETIME(6), "
                    + "c CHAR(10), v VARCHAR(100), txt STRING, j JSON) "
                    + "DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")");
            String places = String.join(", ", java.util.Collections.nCopies(17, "?"));
            String text = "Grüße 'one' \"two\" \\ \n 😀";
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO types VALUES (" + places + ")")) {
                insert.setInt(1, 1);
                insert.setBoolean(2, true);
                insert.setByte(3, (byte) -128);
                insert.setShort(4, (short) 32767);
                insert.setInt(5, Integer.MIN_VALUE);
                insert.setLong(6, Long.MAX_VALUE);
                insert.setBigDecimal(7, new BigDecimal("12345678901234567890123456789"));
                insert.setFloat(8, 1.5f);
                insert.setDouble(9, -2.25e-10);
                insert.setBigDecimal(10, new BigDecimal("123456789012345678.123456789"));
                insert.setDate(11, Date.valueOf("2024-02-29"));
                insert.setTimestamp(12, Timestamp.valueOf("2024-02-29 23:59:59"));
                insert.setTimestamp(13, Timestamp.valueOf("2024-02-29 23:59:59.123456"));
                insert.setString(14, "abc");
                insert.setString(15, text);
                insert.setCharacterStream(16, new StringReader("x".repeat(100_000)));
                insert.setString(17, "{\"a\": 1}");
                equal(insert.executeUpdate(), 1, "rows");
                insert.setInt(1, 2);
                for (int column = 2; column <= 17; column++) {
                    insert.setNull(column, Types.NULL);
                }
                equal(insert.executeUpdate(), 1, "rows");
                insert.setObject(1, 3);
                insert.setObject(2, Boolean.FALSE);
                insert.setObject(3, 1);
                insert.setObject(4, "2");
                insert.setObject(5, 3L);
                insert.setObject(6, new BigInteger("4"));
                insert.setObject(7, "-5");
                insert.setObject(8, 6.5);
                insert.setObject(9, 7);
                insert.setObject(10, "8.000000001");
                insert.setObject(11, LocalDate.of(1999, 12, 31));
                insert.setObject(12, LocalDateTime.of(1999, 12, 31, 0, 0));
                insert.setObject(13, LocalDateTime.of(1999, 12, 31, 1, 2, 3, 4000));
                insert.setObject(14, "");
                insert.setObject(15, 42);
                insert.setAsciiStream(16, new ByteArrayInputStream("ascii".getBytes(StandardCharsets.US_ASCII)));
                insert.setObject(17, "[]");
                equal(insert.executeUpdate(), 1, "rows");
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT * FROM types WHERE k = ?")) {
                select.setInt(1, 1);
                try (ResultSet row = select.executeQuery()) {
                    equal(row.next(), true, "a row");
                    equal(row.getBoolean("b"), true, "b");
                    equal(row.getByte("t"), (byte) -128, "t");
                    equal(row.getShort("s"), (short) 32767, "s");
                    equal(row.getInt("i"), Integer.MIN_VALUE, "i");
                    equal(row.getLong("l"), Long.MAX_VALUE, "l");
                    equal(row.getString("ll"), "12345678901234567890123456789", "ll");
                    equal(row.getFloat("f"), 1.5f, "f");
                    equal(row.getDouble("d"), -2.25e-10, "d");
                    equal(row.getBigDecimal("n"), new BigDecimal("123456789012345678.123456789"), "n");
                    equal(row.getDate("day"), Date.valueOf("2024-02-29"), "day");
                    equal(row.getTimestamp("at"), Timestamp.valueOf("2024-02-29 23:59:59"), "at");
                    equal(row.getTimestamp("at6"), Timestamp.valueOf("2024-02-29 23:59:59.123456"), "at6");
                    equal(row.getObject("at6", LocalDateTime.class), LocalDateTime.of(2024, 2, 29, 23, 59, 59, 123_456_000), "at6");
                    equal(row.getString("c"), "abc", "c");
                    equal(row.getString("v"), text, "v");
                    equal(row.getString("txt"), "x".repeat(100_000), "txt");
                    equal(row.getString("j"), "{\"a\": 1}", "j");
                    equal(row.next(), false, "one row");
                }
                select.setLong(1, 2);
                try (ResultSet row = select.executeQuery()) {
                    equal(row.next(), true, "a row");
                    for (int column = 2; column <= 17; column++) {
                        equal(row.getObject(column), null, "column " + column);
                    }
                }
                select.setString(1, "3");
                try (ResultSet row = select.executeQuery()) {
                    equal(row.next(), true, "a row");
                    List<String> values = new ArrayList<>();
                    for (String name : Arrays.asList("t", "s", "i", "l", "ll", "f", "n", "day", "c", "v", "txt", "j")) {
                        values.add(row.getString(name));
                    }
                    equal(values, Arrays.asList("1", "2", "3", "4", "-5", "6.5", "8.000000001", "1999-12-31", "", "42",
                            "ascii", "[]"), "row 3");
                    equal(row.getBoolean("b"), false, "b");
                    equal(row.getDouble("d"), 7.0, "d");
                    equal(row.getObject("at", LocalDateTime.class), LocalDateTime.of(1999, 12, 31, 0, 0), "at");
                    equal(row.getObject("at6", LocalDateTime.class), LocalDateTime.of(1999, 12, 31, 1, 2, 3, 4000), "at6");
                }
            }
        }
    }

    /** BEGIN, COMMIT and ROLLBACK, with the manual's URL. */
    private static void transactions() throws Exception {
        try (Connection writer = connect(MANUAL); Connection reader = connect(MANUAL)) {
            run(writer, DT);
            run(writer, "BEGIN");
            try (PreparedStatement insert = writer.prepareStatement("INSERT INTO dt VALUES (?, ?, ?)")) {
                for (int id = 0; id < 20; id++) {
                    insert.setInt(1, id);
                    insert.setString(2, "n" + id);
                    insert.setInt(3, 1);
                    insert.addBatch();
                }
                insert.executeBatch();
                equal(rows(reader, "SELECT count(*) FROM dt"), List.of("0"), "before COMMIT");
                run(writer, "COMMIT");
                equal(rows(reader, "SELECT count(*), sum(score) FROM dt"), List.of("20|20"), "after COMMIT");
                run(writer, "BEGIN");
                insert.setInt(1, 99);
                insert.setNull(2, Types.VARCHAR);
                insert.setInt(3, 1);
                equal(insert.executeUpdate(), 1, "rows");
                run(writer, "ROLLBACK");
                equal(rows(reader, "SELECT count(*) FROM dt"), List.of("20"), "after ROLLBACK");
            }
            // The API's own way of committing: what was inserted is there.
            writer.setAutoCommit(false);
            run(writer, "INSERT INTO dt VALUES (100, 'x', 1)");
            writer.commit();
            writer.setAutoCommit(true);
            equal(rows(reader, "SELECT count(*) FROM dt"), List.of("21"), "after commit()");
        }
    }

    /** The manual's second way: SET by a Statement. */
    private static void modeByStatement() throws Exception {
        try (Connection conn = connect(MANUAL)) {
            run(conn, DT);
            try (Statement statement = conn.createStatement()) {
                statement.execute("SET group_commit = async_mode;");
            }
            try (PreparedStatement insert = conn.prepareStatement("insert into dt values(?, ?, ?)")) {
                for (int round = 0; round < 3; round++) {
                    insert.setInt(1, round);
                    insert.setString(2, "name");
                    insert.setInt(3, round);
                    equal(insert.executeUpdate(), 1, "rows");
                }
            }
            List<String> last = rows(conn, "SHOW LAST INSERT");
            equal(last.size(), 1, "SHOW LAST INSERT");
            if (!last.get(0).contains("|group_commit_")) {
                throw new AssertionError("no group commit: " + last);
            }
            try (Statement statement = conn.createStatement()) {
                statement.execute("SET group_commit = sync_mode");
                equal(statement.executeUpdate("insert into dt values (3, 'sync', 3)"), 1, "rows");
            }
            equal(rows(conn, "SELECT id FROM dt ORDER BY id"), List.of("0", "1", "2", "3"), "a sync load shows its group");
        }
    }

    /** The driver asks SHOW statements or, by an option, information_schema. */
    private static void metadata(String options) throws Exception {
        try (Connection connection = connect(options)) {
            run(connection, DT);
            DatabaseMetaData data = connection.getMetaData();
            equal(data.getDatabaseProductVersion(), "5.7.99", "version");
            List<String> tables = new ArrayList<>();
            try (ResultSet result = data.getTables(database, null, "%", new String[] {"TABLE"})) {
                while (result.next()) {
                    tables.add(result.getString("TABLE_NAME") + "|" + result.getString("TABLE_TYPE"));
                }
            }
            equal(tables, List.of("dt|TABLE"), "getTables");
            List<String> columns = new ArrayList<>();
            try (ResultSet result = data.getColumns(database, null, "dt", "%")) {
                while (result.next()) {
                    columns.add(result.getString("COLUMN_NAME") + "|" + result.getInt("DATA_TYPE") + "|"
                            + result.getInt("COLUMN_SIZE") + "|" + result.getInt("NULLABLE"));
                }
            }
            equal(columns, List.of("id|4|10|0", "name|12|50|1", "score|4|10|1"), "getColumns");
            try (ResultSet result = data.getCatalogs()) {
                List<String> catalogs = new ArrayList<>();
                while (result.next()) {
                    catalogs.add(result.getString(1));
                }
                equal(catalogs.contains(database), true, "getCatalogs: " + catalogs);
            }
            try (ResultSet result = data.getPrimaryKeys(database, null, "dt")) {
                equal(result.next(), false, "a DUPLICATE KEY is no primary key");
            }
            try (ResultSet result = data.getIndexInfo(database, null, "dt", false, true)) {
                result.next();
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT id AS number, name FROM dt")) {
                ResultSetMetaData result = select.executeQuery().getMetaData();
                equal(result.getColumnLabel(1), "number", "label");
                equal(result.getColumnName(1), "id", "name");
                equal(result.getTableName(1), "dt", "table");
                equal(result.getColumnType(1), Types.INTEGER, "type");
                equal(result.getColumnType(2), Types.VARCHAR, "type");
                equal(result.isNullable(1), ResultSetMetaData.columnNoNulls, "nullable");
            }
            equal(connection.isValid(5), true, "isValid");
        }
    }

    private static void errors() throws Exception {
        try (Connection connection = connect(MANUAL)) {
            run(connection, DT);
            fails(connection, "SELECT * FROM nowhere", 1146, "42S02", "Table [nowhere] does not exist in database");
            fails(connection, "SELEC 1", 1064, "42000", "errCode = 2, detailMessage = ");
            fails(connection, "INSERT INTO dt VALUES (1)", 1058, "21S01", "Column count doesn't match value count");
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO dt VALUES (?, ?, ?)")) {
                insert.setNull(1, Types.INTEGER);
                insert.setString(2, "a");
                insert.setInt(3, 1);
                insert.executeUpdate();
                throw new AssertionError("a NULL in a NOT NULL column was taken");
            } catch (SQLException error) {
                equal(error.getErrorCode(), 1105, error.getMessage());
                if (!error.getMessage().contains("column_name[id], null value for not null column, type=INT")) {
                    throw new AssertionError(error);
                }
            }
            equal(rows(connection, "SELECT count(*) FROM dt"), List.of("0"), "nothing was loaded");
        }
        try {
            DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + database, "root", "wrong").close();
            throw new AssertionError("a wrong password was let in");
        } catch (SQLException error) {
            equal(error.getErrorCode(), 1045, error.getMessage());
        }
    }

    private static void fails(Connection connection, String sql, int number, String state, String text) {
        try {
            run(connection, sql);
        } catch (SQLException error) {
            equal(error.getErrorCode(), number, sql);
            equal(error.getSQLState(), state, sql);
            equal(error.getMessage().contains(text), true, error.getMessage());
            return;
        }
        throw new AssertionError("no error: " + sql);
    }

    /** No options at all: what the driver asks at connecting is answered. */
    private static void compressed() throws Exception {
        String large = "many words ".repeat(70000);
        try (Connection connection = connect("useCompression=true&rewriteBatchedStatements=true")) {
            run(connection, "CREATE TABLE texts (k INT NOT NULL, v STRING) DUPLICATE KEY(k) "
                    + "DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")");
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO texts VALUES (?, ?)")) {
                for (int k = 0; k < 2000; k++) {
                    insert.setInt(1, k);
                    insert.setString(2, k == 1000 ? large : "value " + k);
                    insert.addBatch();
                }
                insert.executeBatch();
            }
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT k, v FROM texts ORDER BY k")) {
                for (int k = 0; k < 2000; k++) {
                    equal(rows.next(), true, "row " + k);
                    equal(rows.getString(2), k == 1000 ? large : "value " + k, "row " + k);
                }
                equal(rows.next(), false, "rows");
            }
        }
    }

    private static void loadData() throws Exception {
        StringBuilder text = new StringBuilder();
        for (int k = 0; k < 50000; k++) {
            text.append(k).append("|name ").append(k).append('|').append(k % 10).append("\n");
        }
        byte[] file = text.toString().getBytes(StandardCharsets.UTF_8);
        String load = "LOAD DATA LOCAL INFILE 'sent' INTO TABLE dt COLUMNS TERMINATED BY '|'";
        for (String options : List.of("", "&useCompression=true", "&useServerPrepStmts=true")) {
            try (Connection connection = connect("allowLoadLocalInfile=true&allowMultiQueries=true" + options);
                    Statement statement = connection.createStatement()) {
                run(connection, "DROP TABLE IF EXISTS dt");
                run(connection, DT);
                com.mysql.cj.jdbc.JdbcStatement sender = statement.unwrap(com.mysql.cj.jdbc.JdbcStatement.class);
                sender.setLocalInfileInputStream(new ByteArrayInputStream(file));
                equal(statement.executeUpdate(load), 50000, "rows" + options);
                sender.setLocalInfileInputStream(new ByteArrayInputStream(file));
                equal(statement.executeUpdate(load + " (id, @n, @s) SET name = @n, score = @s + 1"), 50000, "rows" + options);
                equal(rows(connection, "SELECT COUNT(*), SUM(score) FROM dt"), List.of("100000|500000"), "rows" + options);
            }
        }
    }

    private static void plainUrl() throws Exception {
        try (Connection connection = DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + database, "root", "")) {
            run(connection, DT);
            try (Statement statement = connection.createStatement()) {
                equal(statement.executeUpdate("INSERT INTO dt VALUES (1, 'a', 1), (2, 'b', 2)"), 2, "rows");
                statement.addBatch("INSERT INTO dt VALUES (3, 'c', 3)");
                statement.addBatch("INSERT INTO dt VALUES (4, 'd', 4)");
                equal(Arrays.toString(statement.executeBatch()), "[1, 1]", "a batch of statements");
            }
            equal(rows(connection, "SELECT * FROM dt ORDER BY id LIMIT 2"), List.of("1|a|1", "2|b|2"), "rows");
            equal(connection.getCatalog(), database, "catalog");
            connection.setCatalog("information_schema");
            equal(rows(connection, "SELECT database()"), List.of("information_schema"), "setCatalog");
        }
    }
}
