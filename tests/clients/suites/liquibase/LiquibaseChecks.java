import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.lockservice.LockService;
import liquibase.lockservice.LockServiceFactory;
import liquibase.lockservice.StandardLockService;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.PrimaryKey;
import liquibase.structure.core.Table;

/** Liquibase against a server: LiquibaseChecks BINARY [CHECK...] */
public class LiquibaseChecks {
    private static Sql sql;
    private static String url;
    private static Path changes;

    /** Work with Liquibase that is open. */
    private interface Work {
        void run(Liquibase liquibase) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("--update")) {
            url = arguments[1];
            changes = Path.of(System.getProperty("suite.sources"), "changes");
            update(arguments[2]);
            return;
        }
        Server server = Server.start(arguments[0], "?SERVER_VERSION=8.0.36", "?MYSQL_DDL=compat");
        sql = new Sql(server.mysqlPort());
        url = "jdbc:mysql://127.0.0.1:" + server.mysqlPort() + "/";
        changes = Path.of(System.getProperty("suite.sources"), "changes");
        Checks checks = new Checks("liquibase", List.of(arguments).subList(1, arguments.length));
        // Liquibase reports there.
        System.setOut(System.err);
        checks.check("update_empty_schema", LiquibaseChecks::updateEmptySchema);
        checks.check("update_again_does_nothing", LiquibaseChecks::updateAgain);
        checks.check("status_and_validate", LiquibaseChecks::status);
        checks.check("snapshot_and_diff", LiquibaseChecks::snapshot);
        checks.check("rollback_to_tag", LiquibaseChecks::rollback);
        checks.check("lock_is_held_and_released", LiquibaseChecks::locks);
        checks.check("two_update_at_once", LiquibaseChecks::twoAtOnce);
        checks.check("drop_all", LiquibaseChecks::dropAll);
        checks.finish();
    }

    private static void with(String schema, Work work) throws Exception {
        Connection connection = DriverManager.getConnection(url + schema + "?createDatabaseIfNotExist=true", "root", "");
        Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
        try (Liquibase liquibase = new Liquibase("changelog.xml", new DirectoryResourceAccessor(changes), database)) {
            work.run(liquibase);
        }
    }

    private static void update(String schema) throws Exception {
        with(schema, liquibase -> liquibase.update(new Contexts(), new LabelExpression()));
    }

    private static void updateEmptySchema() throws Exception {
        update("liqui");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM liqui.people"), "people");
        Checks.same("17.50", sql.one("SELECT SUM(balance) FROM liqui.people"), "balances");
        Checks.same(2L, sql.number("SELECT COUNT(*) FROM liqui.people_of_oslo"), "view");
        Checks.same(7L, sql.number("SELECT COUNT(*) FROM liqui.DATABASECHANGELOG"), "change log");
        Checks.same("MARK_RAN", sql.one("SELECT EXECTYPE FROM liqui.DATABASECHANGELOG WHERE ID = '3'"), "third change");
        Checks.same(1L, sql.number("SELECT COUNT(*) FROM liqui.DATABASECHANGELOGLOCK WHERE LOCKED = 0"), "lock");
    }

    private static void updateAgain() throws Exception {
        update("liqui");
        Checks.same(7L, sql.number("SELECT COUNT(*) FROM liqui.DATABASECHANGELOG"), "change log");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM liqui.people"), "people");
    }

    private static void status() throws Exception {
        with("liqui", liquibase -> {
            Checks.same(0, liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), "changes to run");
            liquibase.validate();
        });
    }

    private static void snapshot() throws Exception {
        update("other");
        with("liqui", first -> with("other", second -> {
            DiffResult difference = first.diff(first.getDatabase(), second.getDatabase(),
                    new CompareControl(new HashSet<>(List.of(Table.class, Column.class, PrimaryKey.class))));
            Checks.holds(difference.areEqual(), "missing " + difference.getMissingObjects() + ", unexpected "
                    + difference.getUnexpectedObjects() + ", changed " + difference.getChangedObjects());
        }));
        with("liqui", liquibase -> {
            List<String> tables = new ArrayList<>();
            DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance()
                    .createSnapshot(liquibase.getDatabase().getDefaultSchema(), liquibase.getDatabase(),
                            new SnapshotControl(liquibase.getDatabase()));
            for (Table table : snapshot.get(Table.class)) {
                if (table.getName().equals("people")) {
                    tables.add(table.getName());
                    Checks.same(7, table.getColumns().size(), "columns");
                    Checks.holds(table.getPrimaryKey() != null, "no primary key");
                    Checks.same("id", table.getPrimaryKey().getColumnNames(), "primary key");
                    Checks.same("Given name", table.getColumn("name").getRemarks(), "comment");
                }
            }
            Checks.same(1, tables.size(), "tables");
        });
    }

    private static void rollback() throws Exception {
        with("liqui", liquibase -> liquibase.rollback("first", ""));
        // The change that sets the tag is rolled back, too.
        Checks.same(4L, sql.number("SELECT COUNT(*) FROM liqui.DATABASECHANGELOG"), "change log");
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'liqui' AND table_name = 'towns'"),
                "towns");
        update("liqui");
        Checks.same(7L, sql.number("SELECT COUNT(*) FROM liqui.DATABASECHANGELOG"), "change log after the update");
    }

    private static void locks() throws Exception {
        with("liqui", liquibase -> {
            LockService service =
                    LockServiceFactory.getInstance().getLockService(liquibase.getDatabase());
            Checks.holds(service.acquireLock(), "not locked");
            Checks.same(1, service.listLocks().length, "locks");
            with("liqui", second -> {
                StandardLockService other = new StandardLockService();
                other.setDatabase(second.getDatabase());
                Checks.holds(!other.acquireLock(), "locked twice");
            });
            service.releaseLock();
            Checks.same(0, service.listLocks().length, "locks after the release");
        });
    }

    // In processes of their own, because Liquibase keeps its lock service for the whole program.
    private static void twoAtOnce() throws Exception {
        sql.run("CREATE DATABASE together");
        // Two that create the tables of the log and of the lock at once disturb each other on every server.
        with("together", liquibase -> {
            liquibase.checkLiquibaseTables(false, null, new Contexts(), new LabelExpression());
            LockServiceFactory.getInstance().getLockService(liquibase.getDatabase()).init();
        });
        List<Process> both = new ArrayList<>();
        List<Path> logs = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            logs.add(Files.createTempFile("liquibase", ".log"));
            both.add(new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                    System.getProperty("java.class.path"), "-Dsuite.sources=" + System.getProperty("suite.sources"), "LiquibaseChecks",
                    "--update", url, "together").redirectErrorStream(true).redirectOutput(logs.get(i).toFile()).start());
        }
        for (int i = 0; i < 2; i++) {
            Checks.holds(both.get(i).waitFor(120, TimeUnit.SECONDS), "an update does not end");
            String log = Files.readString(logs.get(i));
            Files.delete(logs.get(i));
            Checks.same(0, both.get(i).exitValue(), "exit code of " + log.lines().filter(line -> line.contains("Exception"))
                    .reduce("an update", (first, second) -> first + "; " + second));
        }
        Checks.same(7L, sql.number("SELECT COUNT(*) FROM together.DATABASECHANGELOG"), "change log");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM together.people"), "people");
    }

    private static void dropAll() throws Exception {
        with("liqui", Liquibase::dropAll);
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'liqui' AND table_type = 'BASE TABLE'"
                + " AND table_name NOT LIKE 'DATABASECHANGELOG%'"), "tables");
        update("liqui");
        Checks.same(3L, sql.number("SELECT COUNT(*) FROM liqui.people"), "people");
    }
}
