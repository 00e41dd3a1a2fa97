import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.seatunnel.api.common.JobContext;
import org.apache.seatunnel.api.configuration.ReadonlyConfig;
import org.apache.seatunnel.api.event.EventListener;
import org.apache.seatunnel.api.sink.SaveModeHandler;
import org.apache.seatunnel.api.sink.SinkCommitter;
import org.apache.seatunnel.api.sink.SinkWriter;
import org.apache.seatunnel.api.table.catalog.CatalogTable;
import org.apache.seatunnel.api.table.catalog.PhysicalColumn;
import org.apache.seatunnel.api.table.catalog.PrimaryKey;
import org.apache.seatunnel.api.table.catalog.TableIdentifier;
import org.apache.seatunnel.api.table.catalog.TablePath;
import org.apache.seatunnel.api.table.catalog.TableSchema;
import org.apache.seatunnel.api.table.type.BasicType;
import org.apache.seatunnel.api.table.type.DecimalType;
import org.apache.seatunnel.api.table.type.LocalTimeType;
import org.apache.seatunnel.api.table.type.RowKind;
import org.apache.seatunnel.api.table.type.SeaTunnelRow;
import org.apache.seatunnel.connectors.doris.catalog.DorisCatalog;
import org.apache.seatunnel.connectors.doris.config.DorisConfig;
import org.apache.seatunnel.connectors.doris.sink.DorisSink;
import org.apache.seatunnel.connectors.doris.sink.committer.DorisCommitInfo;
import org.apache.seatunnel.connectors.doris.sink.writer.DorisSinkState;

/** The sink of SeaTunnel without its engine, against a server: SeaTunnelChecks BINARY [CHECK...] */
public class SeaTunnelChecks {
    private static Server server;
    private static Sql sql;

    public static void main(String[] arguments) throws Exception {
        server = Server.start(arguments[0]);
        sql = new Sql(server.mysqlPort());
        sql.run("CREATE DATABASE tunnel");
        Checks checks = new Checks("seatunnel", List.of(arguments).subList(1, arguments.length));
        System.setOut(System.err);
        checks.check("write_json", () -> write("json_plain", "json"));
        checks.check("write_csv", () -> write("csv_plain", "csv"));
        checks.check("two_phase_commit", SeaTunnelChecks::twoPhase);
        checks.check("lingering_transaction_is_aborted", SeaTunnelChecks::lingering);
        checks.check("server_is_killed_between_prepare_and_commit", SeaTunnelChecks::killed);
        checks.check("deletes_and_updates", SeaTunnelChecks::deletes);
        checks.check("group_commit", SeaTunnelChecks::groupCommit);
        checks.check("save_mode_creates_table", SeaTunnelChecks::saveMode);
        checks.check("catalog", SeaTunnelChecks::catalog);
        checks.finish();
    }

    private static CatalogTable table(String name) {
        TableSchema schema = TableSchema.builder()
                .column(PhysicalColumn.of("id", BasicType.LONG_TYPE, 20L, false, null, "number"))
                .column(PhysicalColumn.of("text", BasicType.STRING_TYPE, 200L, true, null, null))
                .column(PhysicalColumn.of("n", new DecimalType(12, 2), 12L, 2, true, null, null))
                .column(PhysicalColumn.of("day", LocalTimeType.LOCAL_DATE_TYPE, 0L, true, null, null))
                .column(PhysicalColumn.of("seen", LocalTimeType.LOCAL_DATE_TIME_TYPE, 0L, 3, true, null, null))
                .column(PhysicalColumn.of("active", BasicType.BOOLEAN_TYPE, 0L, true, null, null))
                .primaryKey(PrimaryKey.of("id", List.of("id")))
                .build();
        return CatalogTable.of(TableIdentifier.of("doris", TablePath.of("tunnel", name)), schema, new HashMap<>(), List.of(), "made by a suite");
    }

    private static void create(String name, String key) throws Exception {
        sql.run("CREATE TABLE tunnel." + name + " (id BIGINT NOT NULL, text VARCHAR(200), n DECIMAL(12, 2), day DATE, seen DATETIME(3), active BOOLEAN) "
                + key + " KEY (id) DISTRIBUTED BY HASH (id) BUCKETS 1 PROPERTIES ('replication_num' = '1')");
    }

    private static DorisSink sink(String name, String format, boolean twoPhase, String... properties) {
        Map<String, Object> options = new HashMap<>();
        options.put("fenodes", server.http());
        options.put("query-port", server.mysqlPort());
        options.put("username", "root");
        options.put("password", "");
        options.put("database", "tunnel");
        options.put("table", name);
        options.put("sink.label-prefix", "suite_" + name);
        options.put("sink.enable-2pc", twoPhase);
        options.put("sink.enable-delete", false);
        Map<String, String> config = new HashMap<>();
        config.put("format", format);
        if (format.equals("json")) {
            config.put("read_json_by_line", "true");
        } else {
            config.put("column_separator", ",");
        }
        for (int i = 0; i < properties.length; i += 2) {
            if (properties[i].startsWith("sink.") || properties[i].contains("mode") && !properties[i].equals("group_commit")) {
                options.put(properties[i], properties[i + 1]);
            } else {
                config.put(properties[i], properties[i + 1]);
            }
        }
        options.put("doris.config", config);
        DorisSink sink = new DorisSink(ReadonlyConfig.fromMap(options), table(name));
        JobContext job = new JobContext();
        sink.setJobContext(job);
        return sink;
    }

    private static SinkWriter.Context context() {
        EventListener listener = event -> { };
        return (SinkWriter.Context) Proxy.newProxyInstance(SeaTunnelChecks.class.getClassLoader(), new Class<?>[] {SinkWriter.Context.class},
                (proxy, method, values) -> switch (method.getName()) {
                    case "getIndexOfSubtask" -> 0;
                    case "getNumberOfParallelSubtasks" -> 1;
                    case "getEventListener" -> listener;
                    default -> null;
                });
    }

    private static SeaTunnelRow row(long id) {
        SeaTunnelRow row = new SeaTunnelRow(new Object[] {id, "row " + id, BigDecimal.valueOf(id, 2), LocalDate.of(2024, 2, 29),
            LocalDateTime.of(2024, 2, 29, 23, 59, 58, 123_000_000), id % 2 == 0});
        row.setTableId("tunnel");
        return row;
    }

    private static void rows(SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer, long from, long to) throws Exception {
        for (long id = from; id < to; id++) {
            writer.write(row(id));
        }
    }

    private static void commit(DorisSink sink, Optional<DorisCommitInfo> info) throws Exception {
        Checks.holds(info.isPresent(), "nothing to commit");
        SinkCommitter<DorisCommitInfo> committer = sink.createCommitter().orElseThrow();
        List<DorisCommitInfo> failed = committer.commit(List.of(info.get()));
        Checks.holds(failed.isEmpty(), "not committed: " + failed);
    }

    private static void exactly(String name, long count) throws Exception {
        sql.await(count + " " + count + " " + (count - 1), "SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM tunnel." + name);
        // The CSV of the sink has no fractions of seconds.
        Checks.same("row 8 0.08 2024-02-29 2024-02-29 23:59:58" + (name.startsWith("csv") ? "" : ".123") + " 1", sql.one("SELECT text, n, day, seen, active FROM tunnel." + name
                + " WHERE id = 8"), "values");
    }

    private static void write(String name, String format) throws Exception {
        create(name, "DUPLICATE");
        DorisSink sink = sink(name, format, false);
        SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = sink.createWriter(context());
        rows(writer, 0, 3000);
        writer.prepareCommit();
        writer.snapshotState(1);
        rows(writer, 3000, 5000);
        writer.prepareCommit();
        writer.snapshotState(2);
        writer.close();
        exactly(name, 5000);
    }

    private static void twoPhase() throws Exception {
        create("two_phase", "DUPLICATE");
        DorisSink sink = sink("two_phase", "json", true);
        SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = sink.createWriter(context());
        rows(writer, 0, 1000);
        Optional<DorisCommitInfo> first = writer.prepareCommit();
        writer.snapshotState(1);
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM tunnel.two_phase"), "rows before the commit");
        commit(sink, first);
        rows(writer, 1000, 2000);
        Optional<DorisCommitInfo> second = writer.prepareCommit();
        writer.snapshotState(2);
        sink.createCommitter().orElseThrow().abort(List.of(second.orElseThrow()));
        rows(writer, 1000, 1500);
        Optional<DorisCommitInfo> third = writer.prepareCommit();
        writer.snapshotState(3);
        commit(sink, third);
        writer.close();
        exactly("two_phase", 1500);
    }

    private static void lingering() throws Exception {
        create("lingering", "DUPLICATE");
        JobContext job = new JobContext(42L);
        DorisSink first = sink("lingering", "json", true);
        first.setJobContext(job);
        SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = first.createWriter(context());
        rows(writer, 0, 500);
        writer.prepareCommit();
        // The task ends here without a commit, and another with the same job begins where it began.
        DorisSink second = sink("lingering", "json", true);
        second.setJobContext(job);
        SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> restarted = second.createWriter(context());
        rows(restarted, 0, 700);
        commit(second, restarted.prepareCommit());
        restarted.close();
        exactly("lingering", 700);
    }

    private static void killed() throws Exception {
        create("killed", "DUPLICATE");
        DorisSink sink = sink("killed", "json", true);
        SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = sink.createWriter(context());
        rows(writer, 0, 2000);
        Optional<DorisCommitInfo> info = writer.prepareCommit();
        server.kill();
        server.start();
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM tunnel.killed"), "rows before the commit");
        commit(sink, info);
        server.kill();
        server.start();
        exactly("killed", 2000);
    }

    private static void deletes() throws Exception {
        create("changes", "UNIQUE");
        DorisSink sink = sink("changes", "json", false, "sink.enable-delete", "true");
        SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = sink.createWriter(context());
        rows(writer, 0, 1000);
        for (long id = 0; id < 1000; id += 10) {
            SeaTunnelRow row = row(id);
            row.setRowKind(RowKind.UPDATE_AFTER);
            row.setField(1, "new");
            writer.write(row);
        }
        for (long id = 0; id < 1000; id += 20) {
            SeaTunnelRow row = row(id);
            row.setRowKind(RowKind.DELETE);
            writer.write(row);
        }
        writer.prepareCommit();
        writer.snapshotState(1);
        writer.close();
        sql.await("950 50", "SELECT COUNT(*), SUM(text = 'new') FROM tunnel.changes");
    }

    private static void groupCommit() throws Exception {
        create("grouped", "DUPLICATE");
        for (String mode : List.of("sync_mode", "async_mode")) {
            sql.run("TRUNCATE TABLE tunnel.grouped");
            // This sink always sends a label, so Doris refuses the two together, and so must the server: never half.
            DorisSink sink = sink("grouped", "json", false, "group_commit", mode);
            SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = sink.createWriter(context());
            rows(writer, 0, 100);
            boolean refused = false;
            try {
                writer.prepareCommit();
            } catch (Exception error) {
                refused = true;
                Checks.holds(String.valueOf(error.getMessage()).contains("label"), "refused without a reason: " + error);
            }
            if (refused) {
                Checks.same(0L, sql.number("SELECT COUNT(*) FROM tunnel.grouped"), "rows of a refused load");
            } else {
                writer.close();
                sql.await("100", "SELECT COUNT(*) FROM tunnel.grouped");
            }
        }
    }

    private static void saveMode() throws Exception {
        DorisSink sink = sink("created", "json", false, "schema_save_mode", "CREATE_SCHEMA_WHEN_NOT_EXIST", "data_save_mode", "DROP_DATA");
        for (int round = 0; round < 2; round++) {
            try (SaveModeHandler handler = sink.getSaveModeHandler().orElseThrow()) {
                handler.open();
                handler.handleSaveMode();
            }
            SinkWriter<SeaTunnelRow, DorisCommitInfo, DorisSinkState> writer = sink.createWriter(context());
            rows(writer, 0, 50 + round);
            writer.prepareCommit();
            writer.snapshotState(1);
            writer.close();
            // The second round truncates what the first one has written.
            sql.await(String.valueOf(50 + round), "SELECT COUNT(*) FROM tunnel.created");
        }
        Checks.holds(sql.one("SHOW CREATE TABLE tunnel.created").contains("UNIQUE KEY(`id`)"), "key of the created table");
    }

    private static void catalog() throws Exception {
        create("listed", "UNIQUE");
        DorisCatalog catalog = new DorisCatalog("doris", server.http(), server.mysqlPort(), "root", "", DorisConfig.of(ReadonlyConfig.fromMap(Map.of(
                "fenodes", server.http(), "query-port", server.mysqlPort(), "username", "root", "password", "", "database", "tunnel", "table", "listed",
                "sink.label-prefix", "catalog", "doris.config", Map.of("format", "json")))));
        catalog.open();
        TablePath path = TablePath.of("tunnel", "listed");
        Checks.holds(catalog.databaseExists("tunnel") && !catalog.databaseExists("no_such_database"), "databases");
        Checks.holds(catalog.listDatabases().contains("tunnel"), "list of databases");
        Checks.holds(catalog.tableExists(path) && !catalog.tableExists(TablePath.of("tunnel", "no_such_table")), "tables");
        Checks.holds(catalog.listTables("tunnel").contains("listed"), "list of tables");
        CatalogTable table = catalog.getTable(path);
        List<String> columns = new ArrayList<>();
        table.getTableSchema().getColumns().forEach(column -> columns.add(column.getName() + " " + column.getDataType().getSqlType()));
        Checks.same("[id BIGINT, text STRING, n DECIMAL, day DATE, seen TIMESTAMP, active BOOLEAN]", columns.toString(), "columns");
        Checks.holds(!catalog.isExistsData(path), "rows in an empty table");
        sql.run("INSERT INTO tunnel.listed (id) VALUES (1)");
        Checks.holds(catalog.isExistsData(path), "no rows");
        // Without the flag this version of the connector does nothing.
        catalog.truncateTable(path, true);
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM tunnel.listed"), "rows after the truncation");
        catalog.createDatabase(TablePath.of("tunnel_other", "t"), true);
        catalog.createTable(TablePath.of("tunnel_other", "t"), table("t"), true);
        Checks.holds(catalog.tableExists(TablePath.of("tunnel_other", "t")), "the created table is missing");
        catalog.dropTable(TablePath.of("tunnel_other", "t"), false);
        catalog.dropDatabase(TablePath.of("tunnel_other", "t"), false);
        Checks.holds(!catalog.databaseExists("tunnel_other"), "the dropped database is there");
        catalog.close();
    }
}
