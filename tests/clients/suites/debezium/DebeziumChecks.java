import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/** Changes of a MariaDB by Debezium through Kafka and ROUTINE LOAD: DebeziumChecks BINARY [CHECK...] */
public class DebeziumChecks {
    private static final String SUMS = "SELECT COUNT(*), SUM(id), SUM(points), SUM(balance), SUM(LENGTH(name)), COUNT(born), MAX(born), MAX(seen) FROM ";

    private static Server server;
    private static Sql sql;
    private static Kafka kafka;
    private static Source source;
    private static Path scratch;

    /** The engine, from its start to its stop. */
    private static final class Engine implements AutoCloseable {
        private final ExecutorService executor = Executors.newSingleThreadExecutor();
        private final DebeziumEngine<ChangeEvent<String, String>> engine;
        private final AtomicReference<String> failure = new AtomicReference<>();
        final AtomicLong events = new AtomicLong();

        Engine(String name, boolean flat) {
            Properties properties = new Properties();
            properties.setProperty("name", name);
            properties.setProperty("connector.class", "io.debezium.connector.mysql.MySqlConnector");
            properties.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
            properties.setProperty("offset.storage.file.filename", scratch.resolve(name + ".offsets").toString());
            properties.setProperty("offset.flush.interval.ms", "500");
            properties.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
            properties.setProperty("schema.history.internal.file.filename", scratch.resolve(name + ".history").toString());
            properties.setProperty("database.hostname", "127.0.0.1");
            properties.setProperty("database.port", String.valueOf(source.port()));
            properties.setProperty("database.user", "root");
            properties.setProperty("database.password", "");
            properties.setProperty("database.server.id", flat ? "801" : "802");
            properties.setProperty("database.include.list", "shop");
            properties.setProperty("table.include.list", "shop." + name);
            properties.setProperty("topic.prefix", name);
            properties.setProperty("decimal.handling.mode", "string");
            properties.setProperty("time.precision.mode", "isostring");
            properties.setProperty("include.schema.changes", "false");
            properties.setProperty("converter.schemas.enable", "false");
            if (flat) {
                properties.setProperty("transforms", "unwrap");
                properties.setProperty("transforms.unwrap.type", "io.debezium.transforms.ExtractNewRecordState");
                properties.setProperty("transforms.unwrap.delete.tombstone.handling.mode", "rewrite");
            }
            engine = DebeziumEngine.create(Json.class).using(properties).notifying(event -> {
                if (event.value() != null && event.destination().endsWith("." + name)) {
                    kafka.send(name, event.key(), event.value());
                    events.incrementAndGet();
                }
            }).using((success, message, error) -> failure.set(success ? null : message + ": " + error)).build();
            executor.execute(engine);
        }

        /** Waits until so many changes are captured, unless the engine fails. */
        void awaitEvents(long count) throws InterruptedException {
            long end = System.currentTimeMillis() + 60_000;
            while (events.get() < count) {
                Checks.same(null, failure.get(), "failure of the engine");
                Checks.holds(System.currentTimeMillis() < end, "only " + events.get() + " changes were captured");
                Thread.sleep(50);
            }
        }

        @Override
        public void close() throws IOException {
            engine.close();
            executor.shutdown();
            try {
                Checks.holds(executor.awaitTermination(60, TimeUnit.SECONDS), "the engine does not stop");
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            kafka.flush();
            Checks.same(null, failure.get(), "failure of the engine");
        }
    }

    public static void main(String[] arguments) throws Exception {
        server = Server.start(arguments[0], "EGRESS=127.0.0.0/8");
        sql = new Sql(server.mysqlPort());
        sql.run("CREATE DATABASE shop");
        scratch = Files.createTempDirectory("debezium-suite");
        Checks checks = new Checks("debezium", List.of(arguments).subList(1, arguments.length));
        System.setOut(System.err);
        Runtime.getRuntime().addShutdownHook(new Thread(DebeziumChecks::end));
        source = new Source(scratch, freePort());
        kafka = new Kafka(scratch.resolve("kafka"), freePort(), freePort());
        source.run("CREATE DATABASE shop");
        checks.check("flat_changes_with_kills", () -> changes("flat", true));
        checks.check("envelopes_with_kills", () -> changes("enveloped", false));
        checks.finish();
    }

    private static void end() {
        if (kafka != null) {
            kafka.close();
        }
        if (source != null) {
            source.close();
        }
        try (Stream<Path> paths = Files.walk(scratch)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException ignored) {
            // What is left is in the directory of temporary files.
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private static void changes(String name, boolean flat) throws Exception {
        source.run("CREATE TABLE shop." + name + " (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100) NOT NULL, points INT, "
                + "balance DECIMAL(12, 2), born DATE, seen DATETIME(3))");
        sql.run("CREATE TABLE shop." + name + " (id BIGINT NOT NULL, name VARCHAR(100), points INT, balance DECIMAL(12, 2), born DATE, "
                + "seen DATETIME(3)) UNIQUE KEY (id) DISTRIBUTED BY HASH (id) BUCKETS 1 PROPERTIES ('replication_num' = '1')");
        kafka.create(name);
        insert(name, 1, 3000);
        // Debezium's text of a date ends with the zone, as in 2000-02-29Z.
        String columns = flat
                ? "COLUMNS(id, name, points, balance, day, seen, __deleted, born = LEFT(day, 10)), DELETE ON __deleted = 'true' PROPERTIES ('format' = 'json', "
                + "'jsonpaths' = '[\"$.id\", \"$.name\", \"$.points\", \"$.balance\", \"$.born\", \"$.seen\", \"$.__deleted\"]', "
                : "COLUMNS(op, old_id, new_id, name, points, balance, day, seen, id = IFNULL(new_id, old_id), "
                + "born = LEFT(day, 10)), DELETE ON op = 'd' PROPERTIES ('format' = 'json', "
                + "'jsonpaths' = '[\"$.op\", \"$.before.id\", \"$.after.id\", \"$.after.name\", \"$.after.points\", \"$.after.balance\", "
                + "\"$.after.born\", \"$.after.seen\"]', ";
        sql.run("CREATE ROUTINE LOAD shop.load_" + name + " ON " + name + " WITH MERGE " + columns + "'max_batch_interval' = '1') "
                + "FROM KAFKA ('kafka_broker_list' = '" + kafka.address() + "', 'kafka_topic' = '" + name
                + "', 'property.kafka_default_offsets' = 'OFFSET_BEGINNING')");
        long events;
        try (Engine engine = new Engine(name, flat)) {
            // The snapshot, then changes while the server is killed twice.
            engine.awaitEvents(3000);
            same(name);
            for (int round = 0; round < 4; round++) {
                insert(name, 3001 + round * 500, 3500 + round * 500);
                source.run("UPDATE shop." + name + " SET points = points + 1, name = CONCAT(name, 'ä') WHERE id % 7 = " + round,
                        "DELETE FROM shop." + name + " WHERE id % 11 = " + round);
                if (round % 2 == 1) {
                    server.kill();
                    server.start();
                }
            }
            same(name);
            events = engine.events.get();
        }
        // Changes while the engine is stopped, and a kill of the broker.
        source.run("UPDATE shop." + name + " SET points = NULL, born = NULL WHERE id % 5 = 0", "DELETE FROM shop." + name + " WHERE id % 13 = 0");
        kafka.kill();
        kafka.start();
        try (Engine engine = new Engine(name, flat)) {
            insert(name, 6001, 7000);
            same(name);
            Checks.holds(engine.events.get() < events, "the engine began at the beginning instead of going on");
        }
        Checks.holds(source.one("SELECT COUNT(*) FROM shop." + name + " WHERE points IS NULL").compareTo("0") > 0, "no NULL was tested");
        Checks.holds(sql.one("SELECT COUNT(*) FROM shop." + name).equals(source.one("SELECT COUNT(*) FROM shop." + name)), "counts");
        sql.run("STOP ROUTINE LOAD FOR shop.load_" + name);
    }

    private static void insert(String name, int from, int to) throws Exception {
        StringBuilder rows = new StringBuilder();
        for (int id = from; id <= to; id++) {
            rows.append(rows.length() > 0 ? ", " : "").append('(').append(id).append(", 'row \"").append(id).append("\"', ").append(id % 100)
                    .append(", ").append(id).append(".25, '2000-02-29', '2024-02-29 23:59:58.").append(100 + id % 900).append("')");
        }
        source.run("INSERT INTO shop." + name + " (id, name, points, balance, born, seen) VALUES " + rows);
    }

    /** Waits until the table is the same as its source. */
    private static void same(String name) throws Exception {
        String expected = source.one(SUMS + "shop." + name);
        try {
            sql.await(expected, SUMS + "shop." + name);
        } catch (AssertionError error) {
            throw new AssertionError(error.getMessage() + "; job: " + sql.one("SHOW ROUTINE LOAD FOR shop.load_" + name));
        }
    }
}
