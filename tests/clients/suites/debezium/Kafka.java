import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** A Kafka broker in a process of its own, with a directory of its own. */
final class Kafka implements AutoCloseable {
    private final Path directory;
    private final int port;
    private Process process;
    private KafkaProducer<String, String> producer;

    Kafka(Path directory, int port, int controller) throws Exception {
        this.directory = Files.createDirectories(directory);
        this.port = port;
        Files.writeString(directory.resolve("server.properties"), String.join("\n", "process.roles=broker,controller", "node.id=1",
                "controller.quorum.voters=1@127.0.0.1:" + controller, "listeners=PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller,
                "advertised.listeners=PLAINTEXT://127.0.0.1:" + port, "controller.listener.names=CONTROLLER",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "log.dirs=" + directory.resolve("logs"),
                "offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
                "auto.create.topics.enable=false", ""));
        int code = java("kafka.tools.StorageTool", "format", "-t", "8XUwXa9qSyi9tSOquGtauQ", "-c", directory.resolve("server.properties").toString())
                .start().waitFor();
        Checks.same(0, code, "exit code of the formatting");
        start();
    }

    private ProcessBuilder java(String... arguments) {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx512m", "-cp",
                System.getProperty("java.class.path")));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("broker.log").toFile()));
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    void start() throws Exception {
        process = java("kafka.Kafka", "server.properties").start();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            admin.describeCluster().nodes().get();
        }
    }

    void kill() throws Exception {
        process.destroyForcibly();
        process.waitFor();
    }

    void create(String topic) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1))).all().get();
        }
    }

    /** Sends a message to the partition of its key. */
    void send(String topic, String key, String value) {
        if (producer == null) {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", address());
            properties.put("delivery.timeout.ms", "120000");
            properties.put("max.in.flight.requests.per.connection", "1");
            producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        }
        producer.send(new ProducerRecord<>(topic, key, value));
    }

    void flush() {
        if (producer != null) {
            producer.flush();
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
