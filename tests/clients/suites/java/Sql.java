import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Statements by Connector/J, each on a connection of its own. */
public final class Sql {
    private final String url;

    public Sql(int port) {
        this.url = "jdbc:mysql://127.0.0.1:" + port + "/";
    }

    public Connection connect() throws SQLException {
        return DriverManager.getConnection(url, "root", "");
    }

    public void run(String... statements) throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    /** Joins the columns of the only row by blanks. */
    public String one(String query) throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(query)) {
            Checks.holds(rows.next(), "no row: " + query);
            StringBuilder text = new StringBuilder();
            for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) {
                text.append(i > 1 ? " " : "").append(rows.getString(i));
            }
            Checks.holds(!rows.next(), "several rows: " + query);
            return text.toString();
        }
    }

    public long number(String query) throws SQLException {
        return Long.parseLong(one(query));
    }

    /** Asks until the answer is the expected one, for a minute at most. */
    public void await(String expected, String query) throws Exception {
        long end = System.currentTimeMillis() + 60_000;
        while (true) {
            String answer = one(query);
            if (answer.equals(expected)) {
                return;
            }
            Checks.holds(System.currentTimeMillis() < end, query + ": expected " + expected + ", got " + answer);
            Thread.sleep(50);
        }
    }
}
