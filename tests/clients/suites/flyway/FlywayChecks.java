import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.output.MigrateResult;

/** Flyway against a server: FlywayChecks BINARY [CHECK...] */
public class FlywayChecks {
    private static Sql sql;
    private static String url;
    private static Path migrations;

    public static void main(String[] arguments) throws Exception {
        Server server = Server.start(arguments[0], "?SERVER_VERSION=8.0.36", "?MYSQL_DDL=compat");
        sql = new Sql(server.mysqlPort());
        url = "jdbc:mysql://127.0.0.1:" + server.mysqlPort() + "/";
        migrations = Path.of(System.getProperty("suite.sources"), "migrations");
        Checks checks = new Checks("flyway", List.of(arguments).subList(1, arguments.length));
        checks.check("migrate_empty_schema", FlywayChecks::migrateEmptySchema);
        checks.check("migrate_again_does_nothing", FlywayChecks::migrateAgain);
        checks.check("info_and_validate", FlywayChecks::infoAndValidate);
        checks.check("continue_after_new_version", FlywayChecks::newVersion);
        checks.check("failed_migration_and_repair", FlywayChecks::failedMigration);
        checks.check("changed_checksum_is_found", FlywayChecks::changedChecksum);
        checks.check("baseline_of_existing_schema", FlywayChecks::baseline);
        checks.check("two_migrate_at_once", FlywayChecks::twoAtOnce);
        checks.check("clean", FlywayChecks::clean);
        checks.finish();
    }

    private static Flyway flyway(String schema, Path... locations) {
        List<String> places = new ArrayList<>();
        for (Path location : locations) {
            places.add("filesystem:" + location);
        }
        return Flyway.configure()
                .dataSource(url + schema + "?createDatabaseIfNotExist=true", "root", "")
                .locations(places.toArray(new String[0]))
                .cleanDisabled(false)
                .load();
    }

    private static void migrateEmptySchema() throws Exception {
        MigrateResult result = flyway("fly", migrations).migrate();
        Checks.same(4, result.migrationsExecuted, "migrations");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM fly.people"), "people");
        Checks.same("Ada", sql.one("SELECT name FROM fly.people_of_oslo"), "view");
        Checks.same(4L, sql.number("SELECT COUNT(*) FROM fly.flyway_schema_history WHERE success = 1"), "history");
    }

    private static void migrateAgain() throws Exception {
        Checks.same(0, flyway("fly", migrations).migrate().migrationsExecuted, "migrations");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM fly.people"), "people");
    }

    private static void infoAndValidate() {
        Flyway flyway = flyway("fly", migrations);
        MigrationInfo[] applied = flyway.info().applied();
        Checks.same(4, applied.length, "applied");
        Checks.same("3", flyway.info().current().getVersion().getVersion(), "current");
        flyway.validate();
    }

    private static void newVersion() throws Exception {
        Path more = Files.createTempDirectory("migrations");
        Files.writeString(more.resolve("V4__more_people.sql"),
                "INSERT INTO people (name, city) VALUES ('Dora', 'Oslo');\nDELETE FROM people WHERE name = 'Ben';\n");
        Checks.same(1, flyway("fly", migrations, more).migrate().migrationsExecuted, "migrations");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM fly.people"), "people");
        Checks.same(2L, sql.number("SELECT COUNT(*) FROM fly.people_of_oslo"), "people of Oslo");
    }

    private static void failedMigration() throws Exception {
        Path more = Files.createTempDirectory("migrations");
        Files.writeString(more.resolve("V1__one.sql"), "CREATE TABLE one (id INT NOT NULL, PRIMARY KEY (id));\n");
        Path second = more.resolve("V2__two.sql");
        Files.writeString(second, "INSERT INTO one VALUES (1);\nINSERT INTO no_such_table VALUES (1);\n");
        try {
            flyway("failing", more).migrate();
            throw new AssertionError("the second migration passed");
        } catch (FlywayException expected) {
            Checks.holds(expected.getMessage().contains("no_such_table"), "error: " + expected.getMessage());
        }
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM failing.flyway_schema_history WHERE version = '2' AND success = 1"), "success");
        flyway("failing", more).repair();
        Files.writeString(second, "INSERT INTO one VALUES (2);\n");
        Checks.same(1, flyway("failing", more).migrate().migrationsExecuted, "migrations");
        Checks.same(1L, sql.number("SELECT COUNT(*) FROM failing.one WHERE id = 2"), "rows");
    }

    private static void changedChecksum() throws Exception {
        Path more = Files.createTempDirectory("migrations");
        Path first = more.resolve("V1__one.sql");
        Files.writeString(first, "CREATE TABLE one (id INT NOT NULL, PRIMARY KEY (id));\n");
        flyway("changed", more).migrate();
        Files.writeString(first, "CREATE TABLE one (id BIGINT NOT NULL, PRIMARY KEY (id));\n");
        try {
            flyway("changed", more).validate();
            throw new AssertionError("the changed migration passed");
        } catch (FlywayException expected) {
            Checks.holds(expected.getMessage().contains("checksum"), "error: " + expected.getMessage());
        }
        flyway("changed", more).repair();
        flyway("changed", more).validate();
    }

    private static void baseline() throws Exception {
        sql.run("CREATE DATABASE existing");
        sql.run("CREATE TABLE existing.kept (id INT NOT NULL, name VARCHAR(20))");
        sql.run("INSERT INTO existing.kept VALUES (1, 'a')");
        Path more = Files.createTempDirectory("migrations");
        Files.writeString(more.resolve("V1__skipped.sql"), "CREATE TABLE kept (id INT);\n");
        Files.writeString(more.resolve("V2__run.sql"), "INSERT INTO kept VALUES (2, 'b');\n");
        Flyway flyway = flyway("existing", more);
        flyway.baseline();
        Checks.same(1, flyway.migrate().migrationsExecuted, "migrations");
        Checks.same(2L, sql.number("SELECT COUNT(*) FROM existing.kept"), "rows");
    }

    private static void twoAtOnce() throws Exception {
        sql.run("CREATE DATABASE together");
        List<Throwable> errors = new ArrayList<>();
        int[] executed = new int[2];
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            int number = i;
            threads[i] = new Thread(() -> {
                try {
                    executed[number] = flyway("together", migrations).migrate().migrationsExecuted;
                } catch (Throwable error) {
                    synchronized (errors) {
                        errors.add(error);
                    }
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (!errors.isEmpty()) {
            throw new AssertionError("one of them failed", errors.get(0));
        }
        Checks.same(4, executed[0] + executed[1], "migrations");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM together.people"), "people");
    }

    private static void clean() throws Exception {
        flyway("fly", migrations).clean();
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'fly'"), "tables");
        Checks.same(4, flyway("fly", migrations).migrate().migrationsExecuted, "migrations");
    }
}
