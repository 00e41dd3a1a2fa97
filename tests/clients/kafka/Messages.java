import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Makes topics and messages, one command a line on standard input, and says "ok" or "error: …" for each.
 *
 * <pre>
 * create TOPIC PARTITIONS
 * partitions TOPIC COUNT                   adds partitions until there are so many
 * json TOPIC FROM TO PARTITIONS [CODEC]    {"id": n, "text": "row n"}, round robin over the first partitions
 * csv TOPIC FROM TO PARTITIONS [CODEC]     n,row n
 * json100, csv100                          the same in messages of 100 bytes
 * json/TABLES, csv100/TABLES, …            the same for the tables t0, t1, …, each in its turn: t0|{"id": …
 * say TOPIC PARTITION TEXT                 one message
 * delete TOPIC
 * </pre>
 */
public final class Messages {
    private final String brokers;
    private KafkaProducer<byte[], byte[]> producer;
    private String codec = "";

    private Messages(String brokers) {
        this.brokers = brokers;
    }

    public static void main(String[] arguments) throws Exception {
        Messages messages = new Messages(arguments[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                messages.run(line.split(" ", 4));
                System.out.println("ok");
            } catch (Exception error) {
                System.out.println("error: " + String.valueOf(error).replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    private void run(String[] words) throws Exception {
        String topic = words[1];
        String[] kind = words[0].split("/");
        switch (kind[0]) {
            case "create":
                admin(admin -> admin.createTopics(List.of(new NewTopic(topic, Integer.parseInt(words[2]), (short) 1))).all().get());
                break;
            case "partitions":
                admin(admin -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get());
                break;
            case "delete":
                admin(admin -> admin.deleteTopics(List.of(topic)).all().get());
                break;
            case "say":
                send("none", topic, Integer.parseInt(words[2]), words[3]);
                producer.flush();
                break;
            case "json":
            case "csv":
            case "json100":
            case "csv100":
                String[] rest = words[3].split(" ");
                String codec = rest.length > 2 ? rest[2] : "none";
                int partitions = Integer.parseInt(rest[1]);
                int tables = kind.length > 1 ? Integer.parseInt(kind[1]) : 0;
                for (long id = Long.parseLong(words[2]); id < Long.parseLong(rest[0]); id++) {
                    String table = tables > 0 ? "t" + id / partitions % tables + "|" : "";
                    send(codec, topic, (int) (id % partitions), table + row(kind[0], id));
                }
                producer.flush();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String row(String format, long id) {
        boolean isJson = format.startsWith("json");
        String begin = isJson ? "{\"id\": " + id + ", \"text\": \"row " + id : id + ",row " + id;
        String end = isJson ? "\"}" : "";
        int padding = format.endsWith("100") ? 100 - begin.length() - end.length() : 0;
        return begin + "x".repeat(Math.max(padding, 0)) + end;
    }

    private void send(String codec, String topic, int partition, String text) {
        if (producer == null || !codec.equals(this.codec)) {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", brokers);
            settings.put("key.serializer", ByteArraySerializer.class.getName());
            settings.put("value.serializer", ByteArraySerializer.class.getName());
            settings.put("enable.idempotence", "true");
            // A broker that starts again may accept the second of two batches before the first, which it then refuses for ever.
            settings.put("max.in.flight.requests.per.connection", "1");
            settings.put("compression.type", codec);
            settings.put("linger.ms", "5");
            if (producer != null) {
                producer.close();
            }
            producer = new KafkaProducer<>(settings);
            this.codec = codec;
        }
        producer.send(new ProducerRecord<>(topic, partition, null, text.getBytes(StandardCharsets.UTF_8)));
    }

    private interface Ask {
        void of(Admin admin) throws Exception;
    }

    private void admin(Ask ask) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) brokers))) {
            ask.of(admin);
        }
    }
}
