import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.doris.flink.cfg.DorisExecutionOptions;
import org.apache.doris.flink.cfg.DorisOptions;
import org.apache.doris.flink.cfg.DorisReadOptions;
import org.apache.doris.flink.deserialization.SimpleListDeserializationSchema;
import org.apache.doris.flink.rest.models.RespContent;
import org.apache.doris.flink.sink.DorisSink;
import org.apache.doris.flink.sink.HttpUtil;
import org.apache.doris.flink.sink.batch.DorisBatchStreamLoad;
import org.apache.doris.flink.sink.committer.DorisCommitter;
import org.apache.doris.flink.sink.DorisCommittable;
import org.apache.doris.flink.sink.writer.DorisStreamLoad;
import org.apache.doris.flink.sink.writer.LabelGenerator;
import org.apache.doris.flink.sink.writer.WriteMode;
import org.apache.doris.flink.sink.writer.serializer.SimpleStringSerializer;
import org.apache.doris.flink.source.DorisSource;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** The Flink connector against a server: FlinkChecks BINARY [CHECK...] */
public class FlinkChecks {
    private static final String TAIL = " DISTRIBUTED BY HASH (id) BUCKETS 1 PROPERTIES ('replication_num' = '1')";

    private static Server server;
    private static Sql sql;
    private static Path scratch;

    public static void main(String[] arguments) throws Exception {
        server = Server.start(arguments[0]);
        sql = new Sql(server.mysqlPort());
        sql.run("CREATE DATABASE flink");
        scratch = Files.createTempDirectory("flink-suite");
        List<String> wanted = List.of(arguments).subList(1, arguments.length);
        Checks checks = new Checks("flink", wanted);
        checks.check("sink_classes_two_phase_commit", FlinkChecks::twoPhaseByHand);
        checks.check("sink_classes_lingering_transaction_is_aborted", FlinkChecks::lingering);
        checks.check("sink_classes_batch", FlinkChecks::batchByHand);
        checks.check("sink_classes_group_commit", FlinkChecks::groupCommitByHand);
        checks.check("job_two_phase_commit", () -> job("two_phase", 20_000, new Properties(), true, WriteMode.STREAM_LOAD));
        checks.check("job_two_phase_commit_gz_json", () -> job("two_phase_gz", 20_000,
                properties("compress_type", "gz", "format", "json", "read_json_by_line", "true"), true, WriteMode.STREAM_LOAD));
        checks.check("job_group_commit", () -> job("group_commit", 20_000, properties("group_commit", "sync_mode"), false, WriteMode.STREAM_LOAD));
        checks.check("job_group_commit_with_two_phase_commit",
                () -> job("group_two_phase", 20_000, properties("group_commit", "async_mode"), true, WriteMode.STREAM_LOAD));
        checks.check("job_batch_mode", () -> job("batch_mode", 20_000, new Properties(), false, WriteMode.STREAM_LOAD_BATCH));
        checks.check("job_batch_mode_group_commit",
                () -> job("batch_group", 20_000, properties("group_commit", "async_mode"), false, WriteMode.STREAM_LOAD_BATCH));
        checks.check("job_batch_mode_gz", () -> job("batch_gz", 20_000, properties("compress_type", "gz"), false, WriteMode.STREAM_LOAD_BATCH));
        checks.check("job_fails_and_is_restarted", FlinkChecks::failingJob);
        checks.check("job_is_cancelled_and_restored", FlinkChecks::restoredJob);
        checks.check("job_stops_with_savepoint", FlinkChecks::savepoint);
        checks.check("server_is_killed_during_job", FlinkChecks::killedServer);
        checks.check("server_is_killed_between_precommit_and_commit", FlinkChecks::killedBetween);
        checks.check("table_api_csv_types", () -> tableTypes("csv"));
        checks.check("table_api_json_types", () -> tableTypes("json"));
        checks.check("table_api_arrow_types", () -> tableTypes("arrow"));
        checks.check("table_api_changelog_with_deletes", FlinkChecks::changelog);
        checks.check("table_api_partial_columns", FlinkChecks::partialColumns);
        checks.check("table_api_insert_overwrite", FlinkChecks::overwrite);
        checks.check("table_api_lookup_join", FlinkChecks::lookup);
        checks.check("catalog", FlinkChecks::catalog);
        checks.check("table_api_read_types", FlinkChecks::readTypes);
        checks.check("table_api_read_with_condition", FlinkChecks::readWithCondition);
        checks.check("table_api_read_and_write", FlinkChecks::readAndWrite);
        checks.check("catalog_read", FlinkChecks::catalogRead);
        checks.check("job_reads_while_rows_are_loaded", FlinkChecks::readSnapshot);
        checks.check("server_is_killed_during_read", FlinkChecks::killedDuringRead);
        try (Stream<Path> paths = Files.walk(scratch)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        }
        checks.finish();
    }

    private static Properties properties(String... pairs) {
        Properties properties = new Properties();
        for (int i = 0; i < pairs.length; i += 2) {
            properties.setProperty(pairs[i], pairs[i + 1]);
        }
        return properties;
    }

    private static DorisOptions options(String table) {
        return DorisOptions.builder().setFenodes(server.http()).setTableIdentifier("flink." + table).setUsername("root").setPassword("").build();
    }

    private static void duplicateTable(String name) throws Exception {
        sql.run("CREATE TABLE flink." + name + " (id BIGINT NOT NULL, text VARCHAR(100)) DUPLICATE KEY (id)" + TAIL);
    }

    // The sink's classes without a cluster.

    private static DorisStreamLoad streamLoad(String table, String prefix, Properties properties, boolean twoPhase) {
        DorisExecutionOptions.Builder execution = DorisExecutionOptions.builder().setLabelPrefix(prefix).setStreamLoadProp(properties)
                .setDeletable(false);
        if (twoPhase) {
            execution.enable2PC();
        } else {
            execution.disable2PC();
        }
        return new DorisStreamLoad(server.http(), options(table), execution.build(), new LabelGenerator(prefix, twoPhase, "flink." + table, 0),
                new HttpUtil().getHttpClient());
    }

    private static RespContent load(DorisStreamLoad load, String label, int from, int to) throws Exception {
        load.startLoad(label, false);
        for (int i = from; i < to; i++) {
            load.writeRecord((i + "\trow " + i).getBytes(StandardCharsets.UTF_8));
        }
        return load.stopLoad();
    }

    private static void commit(String table, RespContent content) throws Exception {
        DorisCommitter committer = new DorisCommitter(options(table), DorisReadOptions.builder().build(),
                DorisExecutionOptions.builder().setLabelPrefix("commit").build());
        List<org.apache.flink.api.connector.sink2.Committer.CommitRequest<DorisCommittable>> requests =
                List.of(new Request(new DorisCommittable(server.http(), "flink", content.getTxnId())));
        committer.commit(requests);
        committer.close();
    }

    /** A request to commit, as the cluster hands it to the committer. */
    private record Request(DorisCommittable committable)
            implements org.apache.flink.api.connector.sink2.Committer.CommitRequest<DorisCommittable> {
        @Override
        public DorisCommittable getCommittable() {
            return committable;
        }

        @Override
        public int getNumberOfRetries() {
            return 0;
        }

        @Override
        public void signalFailedWithKnownReason(Throwable reason) {
            throw new AssertionError("commit failed", reason);
        }

        @Override
        public void signalFailedWithUnknownReason(Throwable reason) {
            throw new AssertionError("commit failed", reason);
        }

        @Override
        public void retryLater() { }

        @Override
        public void updateAndRetryLater(DorisCommittable other) { }

        @Override
        public void signalAlreadyCommitted() { }
    }

    private static void twoPhaseByHand() throws Exception {
        duplicateTable("by_hand");
        DorisStreamLoad load = streamLoad("by_hand", "hand", new Properties(), true);
        load.abortPreCommit("hand", 1);
        RespContent first = load(load, "hand_1", 0, 1000);
        Checks.same("Success", first.getStatus(), "status");
        Checks.same(1000L, first.getNumberLoadedRows(), "rows");
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM flink.by_hand"), "rows before the commit");
        commit("by_hand", first);
        Checks.same(1000L, sql.number("SELECT COUNT(*) FROM flink.by_hand"), "rows after the commit");
        // A second commit is what a restored job does.
        commit("by_hand", first);
        RespContent second = load(load, "hand_2", 1000, 2000);
        load.abortTransaction(second.getTxnId());
        RespContent third = load(load, "hand_3", 1000, 1500);
        commit("by_hand", third);
        load.close();
        Checks.same("1500 1500", sql.one("SELECT COUNT(*), COUNT(DISTINCT id) FROM flink.by_hand"), "rows at the end");
    }

    private static void lingering() throws Exception {
        duplicateTable("lingering");
        DorisStreamLoad first = streamLoad("lingering", "linger", new Properties(), true);
        String label = new LabelGenerator("linger", true, "flink.lingering", 0).generateTableLabel(1);
        load(first, label, 0, 500);
        first.close();
        // A job that starts again with the same prefix finds the transaction of its predecessor and aborts it.
        DorisStreamLoad second = streamLoad("lingering", "linger", new Properties(), true);
        second.abortPreCommit("linger", 1);
        RespContent content = load(second, label, 0, 700);
        commit("lingering", content);
        second.close();
        Checks.same(700L, sql.number("SELECT COUNT(*) FROM flink.lingering"), "rows");
    }

    private static void batchByHand() throws Exception {
        duplicateTable("batch_by_hand");
        DorisExecutionOptions execution = DorisExecutionOptions.builder().setLabelPrefix("batch").setBatchMode(true).setDeletable(false)
                .setStreamLoadProp(new Properties()).setBufferFlushMaxRows(10_000).setBufferFlushIntervalMs(1000).build();
        DorisBatchStreamLoad load = new DorisBatchStreamLoad(options("batch_by_hand"), DorisReadOptions.builder().build(), execution,
                new LabelGenerator("batch", false, "flink.batch_by_hand", 0), 0);
        for (int i = 0; i < 50_000; i++) {
            load.writeRecord("flink", "batch_by_hand", (i + "\trow " + i).getBytes(StandardCharsets.UTF_8));
        }
        load.checkpointFlush();
        load.close();
        if (load.getException().get() != null) {
            throw new AssertionError("load failed", load.getException().get());
        }
        Checks.same("50000 50000", sql.one("SELECT COUNT(*), COUNT(DISTINCT id) FROM flink.batch_by_hand"), "rows");
    }

    private static void groupCommitByHand() throws Exception {
        duplicateTable("group_by_hand");
        for (String mode : List.of("sync_mode", "async_mode")) {
            DorisStreamLoad load = streamLoad("group_by_hand", "group", properties("group_commit", mode), false);
            RespContent content = load(load, null, 0, 300);
            Checks.same("Success", content.getStatus(), "status");
            Checks.same(300L, content.getNumberLoadedRows(), "rows");
            Checks.holds(content.getLabel().startsWith("group_commit_"), "label " + content.getLabel());
            load.close();
        }
        sql.await("600", "SELECT COUNT(*) FROM flink.group_by_hand");
    }

    // Jobs on a cluster within this program.

    private static StreamExecutionEnvironment environment(String... pairs) {
        Configuration configuration = new Configuration();
        configuration.setString("execution.checkpointing.interval", "500 ms");
        configuration.setString("execution.checkpointing.dir", scratch.resolve("checkpoints").toUri().toString());
        configuration.setString("restart-strategy.type", "none");
        configuration.setString("parallelism.default", "1");
        configuration.setString("rest.port", "0");
        configuration.setString("rest.bind-port", "0");
        configuration.setString("taskmanager.memory.network.max", "16m");
        configuration.setString("taskmanager.memory.network.min", "16m");
        for (int i = 0; i < pairs.length; i += 2) {
            configuration.setString(pairs[i], pairs[i + 1]);
        }
        return StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
    }

    private static DorisSink<String> sink(String table, Properties properties, boolean twoPhase, WriteMode mode) {
        DorisExecutionOptions.Builder execution = DorisExecutionOptions.builder().setLabelPrefix("job_" + table).setStreamLoadProp(properties)
                .setDeletable(false).setWriteMode(mode).setBufferFlushMaxRows(10_000).setBufferFlushIntervalMs(1000);
        if (twoPhase) {
            execution.enable2PC();
        } else {
            execution.disable2PC();
        }
        return DorisSink.<String>builder().setDorisOptions(options(table)).setDorisReadOptions(DorisReadOptions.builder().build())
                .setDorisExecutionOptions(execution.build()).setSerializer(new SimpleStringSerializer()).build();
    }

    private static void rows(StreamExecutionEnvironment environment, String table, long count, double perSecond, boolean json,
            Stumble stumble, DorisSink<String> sink) {
        GeneratorFunction<Long, String> generator = json
                ? id -> "{\"id\":\"" + id + "\",\"text\":\"row " + id + "\"}"
                : id -> id + "\trow " + id;
        DataGeneratorSource<String> source = perSecond == 0
                ? new DataGeneratorSource<>(generator, count, Types.STRING)
                : new DataGeneratorSource<>(generator, count, RateLimiterStrategy.perSecond(perSecond), Types.STRING);
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "rows").uid("rows")
                .map(stumble).uid("map").sinkTo(sink).uid("sink").name(table);
    }

    /** Counts rows by table, and fails once at a given row. */
    public static class Stumble extends RichMapFunction<String, String> {
        static final ConcurrentHashMap<String, AtomicLong> SEEN = new ConcurrentHashMap<>();
        static final ConcurrentHashMap<String, AtomicInteger> FAILURES = new ConcurrentHashMap<>();
        private final String table;
        private final long at;
        private final int times;

        Stumble(String table, long at, int times) {
            this.table = table;
            this.at = at;
            this.times = times;
        }

        static long seen(String table) {
            return SEEN.computeIfAbsent(table, name -> new AtomicLong()).get();
        }

        static int failures(String table) {
            return FAILURES.computeIfAbsent(table, name -> new AtomicInteger()).get();
        }

        @Override
        public String map(String row) {
            long seen = SEEN.computeIfAbsent(table, name -> new AtomicLong()).incrementAndGet();
            AtomicInteger failures = FAILURES.computeIfAbsent(table, name -> new AtomicInteger());
            if (failures.get() < times && seen >= at * (failures.get() + 1)) {
                failures.incrementAndGet();
                throw new IllegalStateException("stumbled at row " + seen);
            }
            return row;
        }
    }

    private static void exactly(String table, long count) throws Exception {
        sql.await(count + " " + count + " " + (count - 1), "SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM flink." + table);
        Checks.same("row " + count / 2, sql.one("SELECT text FROM flink." + table + " WHERE id = " + count / 2), "text");
    }

    private static void job(String table, long count, Properties properties, boolean twoPhase, WriteMode mode) throws Exception {
        duplicateTable(table);
        StreamExecutionEnvironment environment = environment();
        rows(environment, table, count, 8000, "json".equals(properties.getProperty("format")), new Stumble(table, 0, 0),
                sink(table, properties, twoPhase, mode));
        environment.execute(table);
        exactly(table, count);
    }

    private static void failingJob() throws Exception {
        duplicateTable("failing");
        StreamExecutionEnvironment environment = environment("restart-strategy.type", "fixed-delay",
                "restart-strategy.fixed-delay.attempts", "5", "restart-strategy.fixed-delay.delay", "200 ms");
        rows(environment, "failing", 30_000, 6000, false, new Stumble("failing", 9_000, 3), sink("failing", new Properties(), true,
                WriteMode.STREAM_LOAD));
        environment.execute("failing");
        Checks.same(3, Stumble.failures("failing"), "failures");
        Checks.holds(Stumble.seen("failing") > 30_000, "no row was sent twice, so no restart was tested");
        exactly("failing", 30_000);
    }

    private static void restoredJob() throws Exception {
        duplicateTable("restored");
        StreamExecutionEnvironment first = environment("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION",
                "execution.checkpointing.dir", scratch.resolve("restored").toUri().toString());
        rows(first, "restored", 30_000, 5000, false, new Stumble("restored", 0, 0), sink("restored", new Properties(), true, WriteMode.STREAM_LOAD));
        JobClient client = first.executeAsync("restored");
        until(() -> sql.number("SELECT COUNT(*) FROM flink.restored") > 5000, "rows");
        client.cancel().get(30, TimeUnit.SECONDS);
        until(() -> ended(client), "end of the job");
        long committed = sql.number("SELECT COUNT(*) FROM flink.restored");
        Checks.holds(committed < 30_000, "the job was ready before it was cancelled");
        StreamExecutionEnvironment second = environment("execution.state-recovery.path", latestCheckpoint(scratch.resolve("restored")).toUri().toString());
        rows(second, "restored", 30_000, 10_000, false, new Stumble("restored", 0, 0), sink("restored", new Properties(), true, WriteMode.STREAM_LOAD));
        second.execute("restored");
        exactly("restored", 30_000);
    }

    private static void savepoint() throws Exception {
        duplicateTable("stopped");
        StreamExecutionEnvironment first = environment();
        rows(first, "stopped", 20_000, 4000, false, new Stumble("stopped", 0, 0), sink("stopped", new Properties(), true, WriteMode.STREAM_LOAD));
        JobClient client = first.executeAsync("stopped");
        until(() -> sql.number("SELECT COUNT(*) FROM flink.stopped") > 2000, "rows");
        String path = client.stopWithSavepoint(false, scratch.resolve("savepoints").toUri().toString(), SavepointFormatType.CANONICAL)
                .get(60, TimeUnit.SECONDS);
        until(() -> ended(client), "end of the job");
        StreamExecutionEnvironment second = environment("execution.state-recovery.path", path);
        rows(second, "stopped", 20_000, 10_000, false, new Stumble("stopped", 0, 0), sink("stopped", new Properties(), true, WriteMode.STREAM_LOAD));
        second.execute("stopped");
        exactly("stopped", 20_000);
    }

    private static void killedServer() throws Exception {
        duplicateTable("killed");
        StreamExecutionEnvironment environment = environment("restart-strategy.type", "fixed-delay",
                "restart-strategy.fixed-delay.attempts", "100", "restart-strategy.fixed-delay.delay", "300 ms");
        rows(environment, "killed", 40_000, 5000, false, new Stumble("killed", 0, 0), sink("killed", new Properties(), true, WriteMode.STREAM_LOAD));
        JobClient client = environment.executeAsync("killed");
        for (int kill = 1; kill <= 3; kill++) {
            long wanted = kill * 8_000L;
            until(() -> sql.number("SELECT COUNT(*) FROM flink.killed") > wanted, "rows before kill " + kill);
            server.kill();
            server.start();
        }
        Checks.holds(!ended(client), "the job was ready before the last kill");
        client.getJobExecutionResult().get(120, TimeUnit.SECONDS);
        exactly("killed", 40_000);
    }

    private static void killedBetween() throws Exception {
        duplicateTable("between");
        DorisStreamLoad load = streamLoad("between", "between", new Properties(), true);
        RespContent first = load(load, "between_1", 0, 4000);
        RespContent second = load(load, "between_2", 4000, 5000);
        load.close();
        server.kill();
        server.start();
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM flink.between"), "rows before the commit");
        commit("between", first);
        server.kill();
        server.start();
        commit("between", first);
        commit("between", second);
        Checks.same("5000 5000", sql.one("SELECT COUNT(*), COUNT(DISTINCT id) FROM flink.between"), "rows");
    }

    /** A condition that may throw. */
    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void until(Condition condition, String about) throws Exception {
        long end = System.currentTimeMillis() + 90_000;
        while (!condition.holds()) {
            Checks.holds(System.currentTimeMillis() < end, "waited too long for " + about);
            Thread.sleep(20);
        }
    }

    /** Whether the job is over; its cluster within this program ends with it. */
    private static boolean ended(JobClient client) throws Exception {
        try {
            return client.getJobStatus().get().isGloballyTerminalState();
        } catch (IllegalStateException gone) {
            return true;
        }
    }

    private static Path latestCheckpoint(Path directory) throws Exception {
        try (Stream<Path> paths = Files.walk(directory)) {
            return paths.filter(path -> path.endsWith("_metadata")).map(Path::getParent)
                    .max(Comparator.comparingLong(path -> Long.parseLong(path.getFileName().toString().substring(4))))
                    .orElseThrow(() -> new AssertionError("no checkpoint is left"));
        }
    }

    // The Table API.

    private static StreamTableEnvironment tables(StreamExecutionEnvironment environment) {
        return StreamTableEnvironment.create(environment, EnvironmentSettings.inStreamingMode());
    }

    private static String with(String table, String... more) {
        StringBuilder text = new StringBuilder(" WITH ('connector' = 'doris', 'fenodes' = '" + server.http() + "', 'table.identifier' = 'flink."
                + table + "', 'username' = 'root', 'password' = '', 'jdbc-url' = 'jdbc:mysql://127.0.0.1:" + server.mysqlPort() + "'");
        for (int i = 0; i < more.length; i += 2) {
            text.append(", '").append(more[i]).append("' = '").append(more[i + 1]).append("'");
        }
        return text.append(", 'sink.label-prefix' = 'sql_").append(table).append("')").toString();
    }

    private static void await(TableEnvironment environment, String statement) throws Exception {
        environment.executeSql(statement).await(120, TimeUnit.SECONDS);
    }

    private static void tableTypes(String format) throws Exception {
        String table = "types_" + format;
        boolean arrow = format.equals("arrow");
        sql.run("CREATE TABLE flink." + table + " (id INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 4), "
                + "c CHAR(4), v VARCHAR(100), x STRING, a DATE, m DATETIME(6)" + (arrow ? "" : ", r ARRAY<INT>, p MAP<STRING, INT>, o STRUCT<k: INT, w: STRING>, j JSON")
                + ") UNIQUE KEY (id)" + TAIL);
        StreamTableEnvironment environment = tables(environment());
        String nested = arrow ? "" : ", r ARRAY<INT>, p MAP<STRING, INT>, o ROW<k INT, w STRING>, j STRING";
        String[] more = format.equals("csv")
                ? new String[] {"sink.properties.format", "csv", "sink.properties.column_separator", "\\x01", "sink.properties.line_delimiter", "\\x02"}
                : format.equals("json")
                ? new String[] {"sink.properties.format", "json", "sink.properties.read_json_by_line", "true"}
                // The connector refuses Arrow together with its column of deletions.
                : new String[] {"sink.properties.format", "arrow", "sink.enable-delete", "false"};
        environment.executeSql("CREATE TABLE sink (id INT, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 4), c CHAR(4), "
                + "v VARCHAR(100), x STRING, a DATE, m TIMESTAMP(6)" + nested + ")" + with(table, more));
        String row = "TRUE, CAST(-128 AS TINYINT), CAST(32767 AS SMALLINT), 9223372036854775807, CAST(1.5 AS FLOAT), CAST(-2.25 AS DOUBLE), "
                + "CAST('1234567890123456.7891' AS DECIMAL(20, 4)), CAST('abcd' AS CHAR(4)), 'ä€😀 \"q\" \\ tab\t', 'line\nfeed', DATE '2000-02-29', "
                + "TIMESTAMP '2024-02-29 23:59:58.123456'";
        String rowNested = arrow ? "" : ", ARRAY[1, 2, 3], MAP['a', 1, 'b', 2], ROW(7, 'seven'), '{\"k\": [1, 2]}'";
        await(environment, "INSERT INTO sink SELECT 1, " + row + rowNested);
        await(environment, "INSERT INTO sink (id, v) VALUES (2, 'only')");
        Checks.same("1 -128 32767 9223372036854775807 1.5 -2.25 1234567890123456.7891 abcd 2000-02-29 2024-02-29 23:59:58.123456",
                sql.one("SELECT b, t, s, l, f, d, n, c, a, m FROM flink." + table + " WHERE id = 1"), "values");
        Checks.same("ä€😀 \"q\" \\ tab\t|line\nfeed", sql.one("SELECT CONCAT(v, '|', x) FROM flink." + table + " WHERE id = 1"), "texts");
        Checks.same("1", sql.one("SELECT COUNT(*) FROM flink." + table + " WHERE id = 2 AND b IS NULL AND l IS NULL AND n IS NULL AND x IS NULL"
                + " AND a IS NULL AND m IS NULL AND v = 'only'"), "row of nulls");
        if (!arrow) {
            System.out.println(sql.one("SELECT r,p,o,j FROM flink." + table + " WHERE id = 1"));
            Checks.same("3 2 7 seven 2", sql.one("SELECT r[3], p['b'], STRUCT_ELEMENT(o, 'k'), STRUCT_ELEMENT(o, 'w'), JSON_EXTRACT_INT(j, '$.k[1]') FROM flink."
                    + table + " WHERE id = 1"), "nested values");
        }
    }

    private static void changelog() throws Exception {
        sql.run("CREATE TABLE flink.changes (id INT NOT NULL, total BIGINT) UNIQUE KEY (id)" + TAIL);
        StreamExecutionEnvironment streams = environment();
        StreamTableEnvironment environment = tables(streams);
        environment.executeSql("CREATE TABLE sink (id INT, total BIGINT, PRIMARY KEY (id) NOT ENFORCED)"
                + with("changes", "sink.properties.format", "json", "sink.properties.read_json_by_line", "true", "sink.enable-delete", "true"));
        List<org.apache.flink.types.Row> changes = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            changes.add(org.apache.flink.types.Row.ofKind(org.apache.flink.types.RowKind.INSERT, i, (long) i));
        }
        for (int i = 0; i < 1000; i += 2) {
            changes.add(org.apache.flink.types.Row.ofKind(org.apache.flink.types.RowKind.UPDATE_BEFORE, i, (long) i));
            changes.add(org.apache.flink.types.Row.ofKind(org.apache.flink.types.RowKind.UPDATE_AFTER, i, (long) i + 1_000_000));
        }
        for (int i = 0; i < 1000; i += 4) {
            changes.add(org.apache.flink.types.Row.ofKind(org.apache.flink.types.RowKind.DELETE, i, (long) i + 1_000_000));
        }
        org.apache.flink.table.api.Table table = environment.fromChangelogStream(streams.fromCollection(changes,
                Types.ROW_NAMED(new String[] {"id", "total"}, Types.INT, Types.LONG)));
        table.executeInsert("sink").await(120, TimeUnit.SECONDS);
        Checks.same("750 250", sql.one("SELECT COUNT(*), SUM(total > 1000000) FROM flink.changes"), "rows, changed rows");
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM flink.changes WHERE id % 4 = 0"), "deleted rows");
    }

    private static void partialColumns() throws Exception {
        sql.run("CREATE TABLE flink.partly (id INT NOT NULL, a INT, b INT) UNIQUE KEY (id)" + TAIL, "INSERT INTO flink.partly VALUES (1, 1, 1), (2, 2, 2)");
        StreamTableEnvironment environment = tables(environment());
        environment.executeSql("CREATE TABLE sink (id INT, b INT)" + with("partly", "sink.properties.format", "json",
                "sink.properties.read_json_by_line", "true", "sink.properties.partial_columns", "true"));
        await(environment, "INSERT INTO sink VALUES (1, 10), (3, 30)");
        Checks.same("1 10", sql.one("SELECT a, b FROM flink.partly WHERE id = 1"), "the first row");
        Checks.same("null 30", sql.one("SELECT a, b FROM flink.partly WHERE id = 3"), "the new row");
    }

    private static void overwrite() throws Exception {
        sql.run("CREATE TABLE flink.replaced (id INT NOT NULL, a INT) DUPLICATE KEY (id)" + TAIL, "INSERT INTO flink.replaced VALUES (1, 1), (2, 2)");
        StreamTableEnvironment environment = StreamTableEnvironment.create(
                StreamExecutionEnvironment.createLocalEnvironment(1), EnvironmentSettings.inBatchMode());
        environment.executeSql("CREATE TABLE sink (id INT, a INT)" + with("replaced"));
        await(environment, "INSERT OVERWRITE sink VALUES (3, 3)");
        Checks.same("1 3", sql.one("SELECT COUNT(*), SUM(id) FROM flink.replaced"), "rows");
    }

    private static void lookup() throws Exception {
        sql.run("CREATE TABLE flink.towns (id INT NOT NULL, name VARCHAR(20)) UNIQUE KEY (id)" + TAIL,
                "INSERT INTO flink.towns VALUES (1, 'Oslo'), (2, 'Bergen')",
                "CREATE TABLE flink.joined (id INT NOT NULL, name VARCHAR(20)) DUPLICATE KEY (id)" + TAIL);
        StreamTableEnvironment environment = tables(environment());
        environment.executeSql("CREATE TABLE towns (id INT, name STRING)" + with("towns"));
        environment.executeSql("CREATE TABLE sink (id INT, name STRING)" + with("joined"));
        environment.executeSql("CREATE TABLE facts (n INT, town INT, moment AS PROCTIME()) WITH ('connector' = 'datagen', 'number-of-rows' = '100', "
                + "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '100', 'fields.town.min' = '1', 'fields.town.max' = '2')");
        await(environment, "INSERT INTO sink SELECT f.n, t.name FROM facts f JOIN towns FOR SYSTEM_TIME AS OF f.moment AS t ON f.town = t.id");
        Checks.same("100 2", sql.one("SELECT COUNT(*), COUNT(DISTINCT name) FROM flink.joined"), "rows");
    }

    private static void catalog() throws Exception {
        sql.run("CREATE TABLE flink.listed (id INT NOT NULL, t TINYINT, b BOOLEAN, n DECIMAL(10, 2), m DATETIME, s STRING) DUPLICATE KEY (id)" + TAIL);
        StreamTableEnvironment environment = tables(environment());
        environment.executeSql("CREATE CATALOG doris WITH ('type' = 'doris', 'fenodes' = '" + server.http() + "', 'jdbc-url' = 'jdbc:mysql://127.0.0.1:"
                + server.mysqlPort() + "', 'username' = 'root', 'password' = '', 'default-database' = 'flink', 'sink.label-prefix' = 'catalog')");
        environment.executeSql("USE CATALOG doris");
        Checks.holds(List.of(environment.listDatabases()).contains("flink"), "databases");
        environment.executeSql("USE flink");
        Checks.holds(List.of(environment.listTables()).contains("listed"), "tables");
        // The DATA_TYPE of a STRING is varchar, as in Doris.
        Checks.same("[`id` INT, `t` TINYINT, `b` BOOLEAN, `n` DECIMAL(10, 2), `m` TIMESTAMP(0), `s` VARCHAR(2147483643)]",
                environment.from("listed").getResolvedSchema().getColumns().toString(), "columns");
        await(environment, "INSERT INTO listed VALUES (1, CAST(2 AS TINYINT), TRUE, CAST(3.25 AS DECIMAL(10, 2)), TIMESTAMP '2024-01-01 00:00:00', 'x')");
        Checks.same("1 2 1 3.25 x", sql.one("SELECT id, t, b, n, s FROM flink.listed"), "row");
    }

    // Reading, in the connector's mode for Arrow Flight SQL.

    private static String reading(String table, String... more) {
        List<String> options = new ArrayList<>(List.of("source.use-flight-sql", "true", "source.flight-sql-port", String.valueOf(server.flightPort())));
        options.addAll(List.of(more));
        return with(table, options.toArray(new String[0]));
    }

    private static StreamTableEnvironment batch() {
        return StreamTableEnvironment.create(StreamExecutionEnvironment.createLocalEnvironment(1), EnvironmentSettings.inBatchMode());
    }

    private static String rows(TableEnvironment environment, String query) throws Exception {
        List<String> rows = new ArrayList<>();
        try (org.apache.flink.util.CloseableIterator<org.apache.flink.types.Row> found = environment.executeSql(query).collect()) {
            found.forEachRemaining(row -> rows.add(row.toString()));
        }
        return String.join(" ", rows);
    }

    /** Makes a table of rows 0 to count - 1. */
    private static void filled(String table, long count) throws Exception {
        duplicateTable(table);
        sql.run("CREATE TABLE IF NOT EXISTS flink.digits (d INT NOT NULL) DUPLICATE KEY (d) DISTRIBUTED BY HASH (d) BUCKETS 1 PROPERTIES ('replication_num' = '1')",
                "TRUNCATE TABLE flink.digits", "INSERT INTO flink.digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
                "INSERT INTO flink." + table + " SELECT id, CONCAT('row ', id) FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d AS id "
                + "FROM flink.digits a, flink.digits b, flink.digits c, flink.digits d, flink.digits e, flink.digits f) ids WHERE id < " + count);
        exactly(table, count);
    }

    private static void readTypes() throws Exception {
        sql.run("CREATE TABLE flink.read_types (id INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, g LARGEINT, f FLOAT, d DOUBLE, n DECIMAL(20, 4), "
                + "c CHAR(4), v VARCHAR(100), x STRING, a DATE, m DATETIME(6), z DATETIME, r ARRAY<INT>, p MAP<STRING, INT>, o STRUCT<k: INT, w: STRING>, j JSON) "
                + "UNIQUE KEY (id)" + TAIL,
                "INSERT INTO flink.read_types VALUES (1, TRUE, -128, 32767, 9223372036854775807, 99999999999999999999999999999999999999, 1.5, -2.25, "
                + "1234567890123456.7891, 'abcd', 'ä€😀 \\'q\\'', 'line\\nfeed', '2000-02-29', '2024-02-29 23:59:58.123456', '1999-12-31 00:00:00', [1, NULL, 3], "
                + "{'a': 1}, {7, 'seven'}, '{\"k\": [1, 2]}')",
                "INSERT INTO flink.read_types (id, v) VALUES (2, 'only')");
        StreamTableEnvironment environment = batch();
        environment.executeSql("CREATE TABLE source (id INT, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, g STRING, f FLOAT, d DOUBLE, n DECIMAL(20, 4), c STRING, "
                + "v STRING, x STRING, a DATE, m TIMESTAMP(6), z TIMESTAMP(0), r ARRAY<INT>, p MAP<STRING, INT>, o ROW<k INT, w STRING>, j STRING)" + reading("read_types"));
        Checks.same("+I[1, true, -128, 32767, 9223372036854775807, 99999999999999999999999999999999999999, 1.5, -2.25, 1234567890123456.7891, abcd, ä€😀 'q', "
                + "line\nfeed, 2000-02-29, 2024-02-29T23:59:58.123456, 1999-12-31T00:00, [1, null, 3], {a=1}, +I[7, seven], {\"k\": [1, 2]}] "
                + "+I[2, null, null, null, null, null, null, null, null, null, only, null, null, null, null, null, null, null, null]",
                rows(environment, "SELECT * FROM source ORDER BY id"), "rows");
    }

    private static void readWithCondition() throws Exception {
        filled("read_where", 1000);
        StreamTableEnvironment environment = batch();
        environment.executeSql("CREATE TABLE source (id BIGINT, text STRING)" + reading("read_where"));
        Checks.same("+I[990, 999, 10]", rows(environment, "SELECT MIN(id), MAX(id), COUNT(*) FROM source WHERE id >= 990"), "rows of a condition");
        Checks.same("+I[row 17]", rows(environment, "SELECT text FROM source WHERE id = 17 AND text = 'row 17'"), "one row");
        Checks.same("+I[row 8]", rows(environment, "SELECT text FROM source WHERE text LIKE 'row 8' OR id IN (8)"), "a condition on a text");
        Checks.same("+I[0]", rows(environment, "SELECT COUNT(*) FROM source WHERE id IS NULL"), "no row");
        Checks.same("+I[7]", rows(environment, "SELECT COUNT(*) FROM (SELECT * FROM source LIMIT 7)"), "a limit");
        environment.executeSql("CREATE TABLE filtered (text STRING, id BIGINT)" + reading("read_where", "doris.filter.query", "id < 5"));
        Checks.same("+I[5, 10]", rows(environment, "SELECT COUNT(*), SUM(id) FROM filtered"), "a condition of the options");
    }

    private static void readAndWrite() throws Exception {
        filled("read_from", 200_000);
        duplicateTable("written_to");
        StreamTableEnvironment environment = batch();
        environment.executeSql("CREATE TABLE source (id BIGINT, text STRING)" + reading("read_from"));
        environment.executeSql("CREATE TABLE sink (id BIGINT, text STRING)" + with("written_to", "sink.enable.batch-mode", "true"));
        await(environment, "INSERT INTO sink SELECT id, text FROM source");
        exactly("written_to", 200_000);
    }

    private static void catalogRead() throws Exception {
        filled("listed_rows", 500);
        StreamTableEnvironment environment = batch();
        environment.executeSql("CREATE CATALOG reader WITH ('type' = 'doris', 'fenodes' = '" + server.http() + "', 'jdbc-url' = 'jdbc:mysql://127.0.0.1:"
                + server.mysqlPort() + "', 'username' = 'root', 'password' = '', 'default-database' = 'flink', 'sink.label-prefix' = 'reader')");
        // The catalog does not know these options.
        Checks.same("+I[500, 124750]", rows(environment, "SELECT COUNT(*), SUM(id) FROM reader.flink.listed_rows /*+ OPTIONS ('source.use-flight-sql' = 'true', "
                + "'source.flight-sql-port' = '" + server.flightPort() + "') */"), "rows");
    }

    private static DorisSource<List<?>> source(String table) {
        DorisReadOptions read = DorisReadOptions.builder().setUseFlightSql(true).setFlightSqlPort(server.flightPort()).build();
        return DorisSource.<List<?>>builder().setDorisOptions(options(table)).setDorisReadOptions(read)
                .setDeserializer(new SimpleListDeserializationSchema()).build();
    }

    /** Copies rows from a table to another one, not faster than a few thousand a second. */
    private static JobClient copy(StreamExecutionEnvironment environment, String from, String to) throws Exception {
        environment.fromSource(source(from), WatermarkStrategy.noWatermarks(), "rows").uid("rows")
                .map(row -> {
                    if ((Long) row.get(0) % 20 == 0) {
                        Thread.sleep(1);
                    }
                    return row.get(0) + "\t" + row.get(1);
                }).returns(Types.STRING).uid("lines")
                .map(new Stumble(to, 0, 0)).uid("map").sinkTo(sink(to, new Properties(), false, WriteMode.STREAM_LOAD_BATCH)).uid("sink").name(to);
        return environment.executeAsync(to);
    }

    private static void readSnapshot() throws Exception {
        filled("read_meanwhile", 100_000);
        duplicateTable("copied");
        JobClient client = copy(environment(), "read_meanwhile", "copied");
        until(() -> Stumble.seen("copied") > 1000, "rows that are read");
        sql.run("INSERT INTO flink.read_meanwhile VALUES (1000000, 'late')", "DELETE FROM flink.read_meanwhile WHERE id < 50");
        Checks.holds(!ended(client), "the job was ready before the table changed");
        client.getJobExecutionResult().get(120, TimeUnit.SECONDS);
        // The rows of the moment when the query began.
        exactly("copied", 100_000);
    }

    private static void killedDuringRead() throws Exception {
        filled("read_killed", 100_000);
        sql.run("CREATE TABLE flink.copied_on (id BIGINT NOT NULL, text VARCHAR(100)) UNIQUE KEY (id)" + TAIL);
        StreamExecutionEnvironment environment = environment("restart-strategy.type", "fixed-delay",
                "restart-strategy.fixed-delay.attempts", "100", "restart-strategy.fixed-delay.delay", "300 ms");
        JobClient client = copy(environment, "read_killed", "copied_on");
        for (int kill = 1; kill <= 2; kill++) {
            long before = Stumble.seen("copied_on");
            until(() -> Stumble.seen("copied_on") > before + 5000, "rows before a kill");
            Checks.holds(!ended(client), "the job was ready before it was interrupted");
            server.kill();
            server.start();
        }
        client.getJobExecutionResult().get(120, TimeUnit.SECONDS);
        Checks.holds(Stumble.seen("copied_on") > 100_000, "the read was not begun again");
        exactly("copied_on", 100_000);
    }
}
