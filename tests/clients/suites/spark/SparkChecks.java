import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;

// The connector's Arrow format is left out: its jar has Arrow under another name than Spark's writer of Arrow expects.

/** The Spark connector, and Spark's reader of Delta tables, against a server: SparkChecks BINARY [CHECK...] */
public class SparkChecks {
    private static final String TAIL = " DISTRIBUTED BY HASH (id) BUCKETS 2 PROPERTIES ('replication_num' = '1')";
    private static final long ROWS = 30_000;

    private static Server server;
    private static Sql sql;
    private static SparkSession spark;
    private static Path scratch;

    public static void main(String[] arguments) throws Exception {
        server = Server.start(arguments[0], "FLUSH_AGE_MS=500");
        sql = new Sql(server.mysqlPort());
        sql.run("CREATE DATABASE spark");
        scratch = Files.createTempDirectory("spark-suite");
        spark = SparkSession.builder().master("local[2]").appName("suite").config("spark.ui.enabled", "false")
                .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.warehouse.dir", scratch.resolve("warehouse").toString())
                .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
                .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
                .config("spark.sql.catalog.doris", "org.apache.doris.spark.catalog.DorisTableCatalog")
                .config("spark.sql.catalog.doris.doris.fenodes", server.http())
                .config("spark.sql.catalog.doris.doris.query.port", String.valueOf(server.mysqlPort()))
                .config("spark.sql.catalog.doris.doris.user", "root").config("spark.sql.catalog.doris.doris.password", "")
                .getOrCreate();
        spark.sparkContext().setLogLevel("OFF");
        Checks checks = new Checks("spark", List.of(arguments).subList(1, arguments.length));
        checks.check("write_csv", () -> write("csv_plain"));
        checks.check("write_csv_gz", () -> write("csv_gz", "doris.sink.properties.compress_type", "gzip"));
        checks.check("write_json", () -> write("json_plain", "doris.sink.properties.format", "json"));
        checks.check("write_two_phase_commit", () -> write("two_phase", "doris.sink.enable-2pc", "true"));
        checks.check("write_group_commit_sync", () -> write("group_sync", "doris.sink.properties.group_commit", "sync_mode"));
        checks.check("write_group_commit_async", () -> write("group_async", "doris.sink.properties.group_commit", "async_mode"));
        checks.check("write_group_commit_json",
                () -> write("group_json", "doris.sink.properties.group_commit", "sync_mode", "doris.sink.properties.format", "json"));
        checks.check("write_small_batches", () -> write("small", "doris.sink.batch.size", "1000"));
        checks.check("write_through_other_port", () -> write("be_port", "doris.benodes", server.http()));
        checks.check("types_csv", () -> types("csv"));
        checks.check("types_json", () -> types("json"));
        checks.check("failed_task_with_two_phase_commit_leaves_nothing", SparkChecks::failedTask);
        checks.check("server_is_killed_and_write_is_retried", SparkChecks::killed);
        checks.check("overwrite_truncates", SparkChecks::overwrite);
        checks.check("schema_by_rest", SparkChecks::schema);
        checks.check("sql_catalog", SparkChecks::catalog);
        checks.check("sql_view_insert", SparkChecks::view);
        checks.check("streaming_with_restart", SparkChecks::streaming);
        checks.check("read_types", SparkChecks::readTypes);
        checks.check("read_with_conditions", SparkChecks::readWithConditions);
        checks.check("read_by_sql_and_write", SparkChecks::readAndWrite);
        checks.check("server_is_killed_during_read", SparkChecks::killedDuringRead);
        checks.check("delta_duplicate_table", SparkChecks::deltaDuplicate);
        checks.check("delta_unique_table_with_deletes", SparkChecks::deltaUnique);
        checks.check("delta_partitioned_table", SparkChecks::deltaPartitioned);
        checks.check("delta_history_and_time_travel", SparkChecks::deltaHistory);
        checks.check("delta_types", SparkChecks::deltaTypes);
        checks.check("delta_streaming_source", SparkChecks::deltaStream);
        spark.stop();
        try (Stream<Path> paths = Files.walk(scratch)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        }
        checks.finish();
    }

    private static DataFrameWriter<Row> to(Dataset<Row> rows, String table, String... options) {
        DataFrameWriter<Row> writer = rows.write().format("doris").option("doris.fenodes", server.http())
                .option("doris.query.port", String.valueOf(server.mysqlPort()))
                .option("doris.table.identifier", "spark." + table).option("user", "root").option("password", "");
        for (int i = 0; i < options.length; i += 2) {
            writer = writer.option(options[i], options[i + 1]);
        }
        return writer.mode(SaveMode.Append);
    }

    private static Dataset<Row> rows(long from, long to) {
        return spark.range(from, to, 1, 2).selectExpr("id", "concat('row ', id) AS text", "CAST(id / 4 AS DECIMAL(12, 2)) AS n");
    }

    private static void table(String name) throws Exception {
        sql.run("CREATE TABLE spark." + name + " (id BIGINT NOT NULL, text VARCHAR(100), n DECIMAL(12, 2)) DUPLICATE KEY (id)" + TAIL);
    }

    private static void exactly(String table, long count) throws Exception {
        sql.await(count + " " + count + " " + (count - 1), "SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM spark." + table);
        Checks.same("row 8 2.00", sql.one("SELECT text, n FROM spark." + table + " WHERE id = 8"), "values");
        Checks.same(spark.range(0, count).selectExpr("SUM(CAST(id / 4 AS DECIMAL(12, 2)))").first().get(0).toString(),
                sql.one("SELECT SUM(n) FROM spark." + table), "sum");
    }

    private static void write(String table, String... options) throws Exception {
        table(table);
        to(rows(0, ROWS), table, options).save();
        exactly(table, ROWS);
    }

    private static void types(String format) throws Exception {
        String table = "types_" + format;
        sql.run("CREATE TABLE spark." + table + " (id INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, f FLOAT, d DOUBLE, "
                + "n DECIMAL(20, 4), v VARCHAR(100), x STRING, a DATE, m DATETIME(6), r ARRAY<INT>, p MAP<STRING, INT>, "
                + "o STRUCT<k: INT, w: STRING>) UNIQUE KEY (id)" + TAIL);
        Dataset<Row> rows = spark.sql("SELECT 1 AS id, true AS b, CAST(-128 AS TINYINT) AS t, CAST(32767 AS SMALLINT) AS s, "
                + "9223372036854775807 AS l, CAST(1.5 AS FLOAT) AS f, CAST(-2.25 AS DOUBLE) AS d, CAST('1234567890123456.7891' AS DECIMAL(20, 4)) AS n, "
                + "'ä€😀 \"q\" tab' AS v, 'a,b;c' AS x, DATE '2000-02-29' AS a, TIMESTAMP '2024-02-29 23:59:58.123456' AS m, "
                + "array(1, 2, 3) AS r, map('a', 1, 'b', 2) AS p, named_struct('k', 7, 'w', 'seven') AS o "
                + "UNION ALL SELECT 2, null, null, null, null, null, null, null, 'only', null, null, null, null, null, null");
        to(rows.coalesce(1), table, "doris.sink.properties.format", format).save();
        Checks.same("1 -128 32767 9223372036854775807 1.5 -2.25 1234567890123456.7891 2000-02-29 2024-02-29 23:59:58.123456",
                sql.one("SELECT b, t, s, l, f, d, n, a, m FROM spark." + table + " WHERE id = 1"), "values");
        Checks.same("ä€😀 \"q\" tab|a,b;c", sql.one("SELECT CONCAT(v, '|', x) FROM spark." + table + " WHERE id = 1"), "texts");
        Checks.same("3 2 7 seven", sql.one("SELECT r[3], p['b'], STRUCT_ELEMENT(o, 'k'), STRUCT_ELEMENT(o, 'w') FROM spark." + table
                + " WHERE id = 1"), "nested values");
        Checks.same("1", sql.one("SELECT COUNT(*) FROM spark." + table + " WHERE id = 2 AND b IS NULL AND l IS NULL AND n IS NULL AND x IS NULL"
                + " AND a IS NULL AND m IS NULL AND r IS NULL AND p IS NULL AND o IS NULL AND v = 'only'"), "row of nulls");
    }

    private static void failedTask() throws Exception {
        table("failed");
        Dataset<Row> rows = spark.range(0, 10_000, 1, 2).map((MapFunction<Long, Long>) id -> {
            if (id == 9_000) {
                throw new IllegalStateException("stumbled");
            }
            return id;
        }, Encoders.LONG()).selectExpr("value AS id", "concat('row ', value) AS text", "CAST(value / 4 AS DECIMAL(12, 2)) AS n");
        try {
            to(rows, "failed", "doris.sink.enable-2pc", "true").save();
            throw new AssertionError("the write passed");
        } catch (AssertionError error) {
            throw error;
        } catch (Exception expected) {
            // The task that was ready has pre-committed, and the driver aborts it.
        }
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM spark.failed"), "rows");
        to(rows(0, 10_000), "failed", "doris.sink.enable-2pc", "true").save();
        exactly("failed", 10_000);
    }

    private static void killed() throws Exception {
        table("killed");
        AtomicInteger kills = new AtomicInteger();
        Thread killer = new Thread(() -> {
            try {
                Thread.sleep(1500);
                server.kill();
                server.start();
                kills.incrementAndGet();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        Dataset<Row> slow = spark.range(0, 600, 1, 2).map((MapFunction<Long, Long>) id -> {
            Thread.sleep(10);
            return id;
        }, Encoders.LONG()).selectExpr("value AS id", "concat('row ', value) AS text", "CAST(value / 4 AS DECIMAL(12, 2)) AS n");
        killer.start();
        boolean failed = false;
        try {
            to(slow, "killed", "doris.sink.enable-2pc", "true").save();
        } catch (Exception expected) {
            failed = true;
        }
        killer.join();
        Checks.same(1, kills.get(), "kills");
        Checks.holds(failed, "the write survived the kill, so none was tested");
        Checks.same(0L, sql.number("SELECT COUNT(*) FROM spark.killed"), "rows of the failed write");
        to(rows(0, 600), "killed", "doris.sink.enable-2pc", "true").save();
        exactly("killed", 600);
    }

    private static void overwrite() throws Exception {
        table("replaced");
        to(rows(0, 2000), "replaced").save();
        to(rows(0, 500), "replaced").mode(SaveMode.Overwrite).save();
        exactly("replaced", 500);
    }

    private static void schema() throws Exception {
        sql.run("CREATE TABLE spark.shaped (id BIGINT NOT NULL, b BOOLEAN, t TINYINT, n DECIMAL(10, 2), a DATE, m DATETIME(3), v VARCHAR(9), x STRING, "
                + "l LARGEINT, j JSON, r ARRAY<INT>) DUPLICATE KEY (id)" + TAIL);
        Dataset<Row> read = spark.read().format("doris").option("doris.fenodes", server.http()).option("doris.table.identifier", "spark.shaped")
                .option("user", "root").option("password", "").load();
        Checks.same("id:bigint,b:boolean,t:tinyint,n:decimal(10,2),a:date,m:timestamp,v:string,x:string,l:string,j:string,r:string",
                String.join(",", Stream.of(read.schema().fields()).map(field -> field.name() + ":" + field.dataType().simpleString()).toList()),
                "schema");
    }

    // The connector names the columns of a load after the query's, so those need the table's names.
    private static void catalog() throws Exception {
        table("listed");
        Checks.holds(spark.sql("SHOW DATABASES IN doris").collectAsList().toString().contains("[spark]"), "databases");
        Checks.holds(spark.sql("SHOW TABLES IN doris.spark").collectAsList().toString().contains("listed"), "tables");
        Checks.holds(spark.sql("DESCRIBE TABLE doris.spark.listed").collectAsList().toString().contains("decimal(12,2)"), "columns");
        spark.sql("INSERT INTO doris.spark.listed SELECT id, concat('row ', id) AS text, CAST(id / 4 AS DECIMAL(12, 2)) AS n FROM range(1000)");
        exactly("listed", 1000);
    }

    private static void view() throws Exception {
        table("viewed");
        spark.sql("CREATE TEMPORARY VIEW viewed USING doris OPTIONS ('fenodes' = '" + server.http() + "', 'table.identifier' = 'spark.viewed', "
                + "'user' = 'root', 'password' = '')");
        spark.sql("INSERT INTO viewed SELECT id, concat('row ', id) AS text, CAST(id / 4 AS DECIMAL(12, 2)) AS n FROM range(1000)");
        exactly("viewed", 1000);
    }

    private static void streaming() throws Exception {
        table("streamed");
        Path input = Files.createDirectories(scratch.resolve("input"));
        String checkpoint = scratch.resolve("checkpoint").toString();
        for (int round = 0; round < 3; round++) {
            rows(round * 1000L, (round + 1) * 1000L).coalesce(1).write().mode(SaveMode.Append).json(input.toString());
            if (round == 1) {
                server.kill();
                server.start();
            }
            // A new query in each round goes on where the last one stopped.
            StreamingQuery query = spark.readStream().schema("id BIGINT, text STRING, n DECIMAL(12, 2)").json(input.toString()).writeStream()
                    .format("doris").option("checkpointLocation", checkpoint).option("doris.fenodes", server.http())
                    .option("doris.table.identifier", "spark.streamed").option("user", "root").option("password", "")
                    .option("doris.sink.enable-2pc", "true").outputMode("append").trigger(Trigger.AvailableNow()).start();
            Checks.holds(query.awaitTermination(TimeUnit.SECONDS.toMillis(60)), "the stream does not end");
            exactly("streamed", (round + 1) * 1000L);
        }
    }

    // Reading by the connector, in its mode for Arrow Flight SQL.

    private static Dataset<Row> read(String table, String... options) {
        org.apache.spark.sql.DataFrameReader reader = spark.read().format("doris").option("doris.fenodes", server.http())
                .option("doris.table.identifier", "spark." + table).option("user", "root").option("password", "").option("doris.read.mode", "arrow")
                .option("doris.read.arrow-flight-sql.port", String.valueOf(server.flightPort()));
        for (int i = 0; i < options.length; i += 2) {
            reader = reader.option(options[i], options[i + 1]);
        }
        return reader.load();
    }

    private static void readTypes() throws Exception {
        sql.run("CREATE TABLE spark.read_types (id INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, g LARGEINT, f FLOAT, d DOUBLE, n DECIMAL(20, 4), "
                + "c CHAR(4), v VARCHAR(100), x STRING, a DATE, m DATETIME(6), z DATETIME, r ARRAY<INT>, p MAP<STRING, INT>, o STRUCT<k: INT, w: STRING>, j JSON) "
                + "UNIQUE KEY (id)" + TAIL,
                "INSERT INTO spark.read_types VALUES (1, TRUE, -128, 32767, 9223372036854775807, 99999999999999999999999999999999999999, 1.5, -2.25, "
                + "1234567890123456.7891, 'abcd', 'ä€😀 \\'q\\'', 'line\\nfeed', '2000-02-29', '2024-02-29 23:59:58.123456', '1999-12-31 00:00:00', [1, NULL, 3], "
                + "{'a': 1}, {7, 'seven'}, '{\"k\": [1, 2]}')",
                "INSERT INTO spark.read_types (id, v) VALUES (2, 'only')");
        List<Row> rows = read("read_types").orderBy("id").collectAsList();
        Checks.same(2, rows.size(), "rows");
        Checks.same("[1,true,-128,32767,9223372036854775807,99999999999999999999999999999999999999,1.5,-2.25,1234567890123456.7891,abcd,ä€😀 'q',line\nfeed,"
                + "2000-02-29,2024-02-29 23:59:58.123456,1999-12-31 00:00:00.0,[1,null,3],Map(a -> 1),{\"k\":7,\"w\":\"seven\"},{\"k\": [1, 2]}]", rows.get(0).toString(), "values");
        Checks.same("[2,null,null,null,null,null,null,null,null,null,only,null,null,null,null,null,null,null,null]", rows.get(1).toString(), "row of nulls");
    }

    private static void readWithConditions() throws Exception {
        table("read_where");
        to(rows(0, ROWS), "read_where").save();
        exactly("read_where", ROWS);
        Dataset<Row> rows = read("read_where");
        Checks.same(ROWS, rows.count(), "count");
        Checks.same(10L, rows.where("id >= " + (ROWS - 10)).count(), "rows of a condition");
        Checks.same("[row 17,4.25]", rows.where("id = 17 AND text = 'row 17'").select("text", "n").first().toString(), "one row");
        Checks.same(3L, rows.where("text IN ('row 1', 'row 2', 'row 3')").count(), "a list");
        Checks.same(111L, rows.where("text LIKE 'row 77%'").count(), "a pattern");
        Checks.same(0L, rows.where("n IS NULL").count(), "no row");
        Checks.same(5, rows.limit(5).collectAsList().size(), "a limit");
        Checks.same("[" + ROWS + ",112496250.00]", rows.selectExpr("COUNT(*)", "SUM(n)").first().toString(), "sums");
        // Pieces of a batch, and a table without rows.
        Checks.same(ROWS, read("read_where", "doris.batch.size", "100").select("id").distinct().count(), "small batches");
        table("read_nothing");
        Checks.same(0L, read("read_nothing").count(), "rows of an empty table");
    }

    private static void readAndWrite() throws Exception {
        table("read_from");
        table("written_to");
        to(rows(0, 200_000), "read_from").save();
        exactly("read_from", 200_000);
        spark.sql("CREATE TEMPORARY VIEW read_from USING doris OPTIONS ('fenodes' = '" + server.http() + "', 'table.identifier' = 'spark.read_from', "
                + "'user' = 'root', 'password' = '', 'doris.read.mode' = 'arrow', 'doris.read.arrow-flight-sql.port' = '" + server.flightPort() + "')");
        to(spark.sql("SELECT id, text, n FROM read_from"), "written_to").save();
        exactly("written_to", 200_000);
        Checks.same("100000", spark.sql("SELECT COUNT(*) FROM read_from a JOIN read_from b ON a.id = b.id + 100000").first().get(0).toString(), "a join with itself");
    }

    /** A read that is interrupted fails, and never returns a part of the rows as if it were all. */
    private static void killedDuringRead() throws Exception {
        table("read_killed");
        to(rows(0, 200_000), "read_killed").save();
        exactly("read_killed", 200_000);
        AtomicInteger kills = new AtomicInteger();
        Thread killer = new Thread(() -> {
            try {
                while (SEEN.get() < 2_000) {
                    Thread.sleep(5);
                }
                server.kill();
                server.start();
                kills.incrementAndGet();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        killer.start();
        String outcome;
        try {
            outcome = "read " + read("read_killed").select("id").map((MapFunction<Row, Long>) row -> {
                if (SEEN.incrementAndGet() % 10 == 0) {
                    Thread.sleep(1);
                }
                return row.getLong(0);
            }, Encoders.LONG()).agg(org.apache.spark.sql.functions.count("*")).first();
        } catch (Exception error) {
            outcome = "failed";
        }
        killer.join();
        Checks.same(1, kills.get(), "kills");
        Checks.same("failed", outcome, "the read that was interrupted after " + SEEN.get() + " rows");
        Checks.same(200_000L, read("read_killed").select("id").distinct().count(), "rows afterwards");
    }

    private static final java.util.concurrent.atomic.AtomicLong SEEN = new java.util.concurrent.atomic.AtomicLong();

    // The Delta tables, read by Spark itself.

    private static Path location(String table) throws Exception {
        long end = System.currentTimeMillis() + 60_000;
        while (true) {
            try (Stream<Path> paths = Files.walk(server.data())) {
                List<Path> found = paths.filter(path -> path.endsWith("_delta_log") && path.getParent().getFileName().toString().startsWith(table + "-"))
                        .map(Path::getParent).toList();
                if (found.size() == 1) {
                    return found.get(0);
                }
            } catch (java.io.UncheckedIOException | IOException gone) {
                // A file was removed during the walk.
            }
            Checks.holds(System.currentTimeMillis() < end, "no Delta table of " + table);
            Thread.sleep(100);
        }
    }

    /** Waits until Spark reads what the server answers to the same query. */
    private static Path same(String table, String query) throws Exception {
        Path location = location(table);
        long end = System.currentTimeMillis() + 60_000;
        while (true) {
            String expected = sql.one(query.replace("%s", "spark." + table));
            Row row = spark.sql(query.replace("%s", "delta.`" + location + "`")).first();
            StringBuilder found = new StringBuilder();
            for (int i = 0; i < row.length(); i++) {
                found.append(i > 0 ? " " : "").append(row.get(i));
            }
            if (expected.equals(found.toString())) {
                return location;
            }
            Checks.holds(System.currentTimeMillis() < end, "Spark reads " + found + ", the server " + expected);
            Thread.sleep(200);
        }
    }

    private static void deltaDuplicate() throws Exception {
        table("delta_rows");
        for (int i = 0; i < 5; i++) {
            to(rows(i * 1000L, (i + 1) * 1000L), "delta_rows", "doris.sink.properties.group_commit", "sync_mode").save();
        }
        exactly("delta_rows", 5000);
        same("delta_rows", "SELECT COUNT(*), COUNT(DISTINCT id), MAX(id), SUM(n), MIN(text) FROM %s");
        same("delta_rows", "SELECT COUNT(*), SUM(id) FROM %s WHERE id BETWEEN 1500 AND 3499 AND text LIKE 'row 2%'");
    }

    private static void deltaUnique() throws Exception {
        sql.run("CREATE TABLE spark.delta_keys (id BIGINT NOT NULL, v BIGINT) UNIQUE KEY (id)" + TAIL,
                "INSERT INTO spark.delta_keys SELECT id, 0 FROM spark.delta_rows");
        same("delta_keys", "SELECT COUNT(*), SUM(v), MAX(id) FROM %s");
        sql.run("INSERT INTO spark.delta_keys SELECT id, id FROM spark.delta_rows WHERE id < 1000", "DELETE FROM spark.delta_keys WHERE id >= 4500",
                "UPDATE spark.delta_keys SET v = -1 WHERE id = 7");
        Checks.same("4500", sql.one("SELECT COUNT(*) FROM spark.delta_keys"), "rows");
        same("delta_keys", "SELECT COUNT(*), SUM(v), MAX(id), COUNT(DISTINCT id) FROM %s");
        server.kill();
        server.start();
        same("delta_keys", "SELECT COUNT(*), SUM(v), MAX(id), COUNT(DISTINCT id) FROM %s");
    }

    private static void deltaPartitioned() throws Exception {
        sql.run("CREATE TABLE spark.delta_days (id BIGINT NOT NULL, day DATE NOT NULL) DUPLICATE KEY (id) PARTITION BY RANGE (day) ("
                + "PARTITION p1 VALUES LESS THAN ('2024-02-01'), PARTITION p2 VALUES LESS THAN ('2024-03-01'))" + TAIL,
                "INSERT INTO spark.delta_days VALUES (1, '2024-01-01'), (2, '2024-01-31'), (3, '2024-02-01'), (4, '2024-02-29')");
        same("delta_days", "SELECT COUNT(*), MIN(day), MAX(day), SUM(id) FROM %s");
        sql.run("ALTER TABLE spark.delta_days DROP PARTITION p1");
        Checks.same("2", sql.one("SELECT COUNT(*) FROM spark.delta_days"), "rows");
        same("delta_days", "SELECT COUNT(*), MIN(day), MAX(day), SUM(id) FROM %s");
    }

    private static void deltaHistory() throws Exception {
        sql.run("CREATE TABLE spark.delta_past (id BIGINT NOT NULL, v BIGINT) DUPLICATE KEY (id)" + TAIL);
        Path location = null;
        for (int i = 1; i <= 3; i++) {
            sql.run("INSERT INTO spark.delta_past VALUES (" + i + ", " + i + ")");
            location = same("delta_past", "SELECT COUNT(*), SUM(id) FROM %s");
        }
        List<Row> history = spark.sql("DESCRIBE HISTORY delta.`" + location + "`").collectAsList();
        Checks.holds(history.size() >= 3, "versions: " + history.size());
        long first = -1;
        for (Row entry : history) {
            long version = entry.getLong(0);
            long rows = spark.sql("SELECT COUNT(*) FROM delta.`" + location + "` VERSION AS OF " + version).first().getLong(0);
            first = rows == 1 ? version : first;
            Checks.holds(rows <= 3, "rows of version " + version + ": " + rows);
        }
        Checks.holds(first >= 0, "no version has the first row alone");
        Checks.same("delta", spark.sql("DESCRIBE DETAIL delta.`" + location + "`").first().getString(0), "format");
    }

    private static void deltaTypes() throws Exception {
        sql.run("CREATE TABLE spark.delta_types (id INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 4), "
                + "v VARCHAR(100), a DATE, m DATETIME(6), r ARRAY<INT>, p MAP<STRING, INT>, o STRUCT<k: INT, w: STRING>) DUPLICATE KEY (id)" + TAIL,
                "INSERT INTO spark.delta_types VALUES (1, TRUE, -128, 32767, 9223372036854775807, 1.5, -2.25, 1234567890123456.7891, 'ä€😀', "
                + "'2000-02-29', '2024-02-29 23:59:58.123456', [1, 2, 3], {'a': 1, 'b': 2}, {7, 'seven'}), "
                + "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
        Path location = same("delta_types", "SELECT COUNT(*), COUNT(b), SUM(t), SUM(s), MAX(l), MAX(f), MAX(d), MAX(n), MAX(v), MAX(a) FROM %s");
        Row row = spark.sql("SELECT r[2], p['b'], o.k, o.w, CAST(m AS STRING), b FROM delta.`" + location + "` WHERE id = 1").first();
        Checks.same("[3,2,7,seven,2024-02-29 23:59:58.123456,true]", row.toString(), "values");
    }

    private static void deltaStream() throws Exception {
        table("delta_source");
        to(rows(0, 1000), "delta_source").save();
        Path location = same("delta_source", "SELECT COUNT(*), SUM(n) FROM %s");
        String out = scratch.resolve("copied").toString();
        for (int round = 1; round <= 2; round++) {
            StreamingQuery query = spark.readStream().format("delta").load(location.toString()).writeStream().format("parquet")
                    .option("path", out).option("checkpointLocation", scratch.resolve("copied-checkpoint").toString())
                    .trigger(Trigger.AvailableNow()).start();
            Checks.holds(query.awaitTermination(TimeUnit.SECONDS.toMillis(60)), "the stream does not end");
            Checks.same(round * 1000L, spark.read().parquet(out).select("id").distinct().count(), "rows");
            Checks.same(round * 1000L, spark.read().parquet(out).count(), "rows with doubles");
            if (round == 1) {
                to(rows(1000, 2000), "delta_source").save();
                same("delta_source", "SELECT COUNT(*), SUM(n) FROM %s");
            }
        }
    }
}
