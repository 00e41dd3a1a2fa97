import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A MariaDB server with a binary log, as the database whose changes are captured. */
final class Source implements AutoCloseable {
    private final int port;
    private final Process process;

    Source(Path directory, int port) throws Exception {
        this.port = port;
        Path data = Files.createDirectories(directory.resolve("data"));
        run(directory, "mariadb-install-db", "--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal",
                "--user=" + System.getProperty("user.name"));
        // The connector asks a server of MySQL's; this version is the last one whose questions MariaDB answers.
        process = command(directory, "mariadbd", "--no-defaults", "--user=" + System.getProperty("user.name"), "--datadir=" + data,
                "--port=" + port, "--bind-address=127.0.0.1", "--socket=" + directory.resolve("socket"), "--version=5.7.19",
                "--log-bin=" + directory.resolve("binlog"), "--binlog-format=ROW", "--binlog-row-image=FULL", "--server-id=7",
                "--character-set-server=utf8mb4").start();
        long end = System.currentTimeMillis() + 60_000;
        while (true) {
            try {
                connect().close();
                return;
            } catch (SQLException error) {
                Checks.holds(process.isAlive() && System.currentTimeMillis() < end, "MariaDB does not start: " + error.getMessage());
                Thread.sleep(100);
            }
        }
    }

    private static ProcessBuilder command(Path directory, String... command) {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("mariadb.log").toFile()));
        Map<String, String> environment = builder.environment();
        environment.put("PATH", environment.get("PATH") + ":/usr/sbin");
        // The path of the program itself is looked up in this process's environment.
        List<String> words = new ArrayList<>(builder.command());
        for (String place : environment.get("PATH").split(":")) {
            Path program = Path.of(place, words.get(0));
            if (Files.isExecutable(program)) {
                words.set(0, program.toString());
                break;
            }
        }
        return builder.command(words);
    }

    private static void run(Path directory, String... command) throws IOException, InterruptedException {
        Checks.same(0, command(directory, command).start().waitFor(), "exit code of " + command[0]);
    }

    int port() {
        return port;
    }

    Connection connect() throws SQLException {
        return DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/", "root", "");
    }

    void run(String... statements) throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    String one(String query) throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(query)) {
            row.next();
            StringBuilder text = new StringBuilder();
            for (int i = 1; i <= row.getMetaData().getColumnCount(); i++) {
                text.append(i > 1 ? " " : "").append(row.getString(i));
            }
            return text.toString();
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
