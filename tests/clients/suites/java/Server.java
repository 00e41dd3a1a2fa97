import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A server of its own directory and ports, which a check may kill and start again. */
public final class Server {
    private static final long PATIENCE_MS = 60_000;

    private final String binary;
    private final Path directory;
    private final Map<String, String> settings = new TreeMap<>();
    private final int[] ports;
    private Process process;

    private Server(String binary, Path directory) throws IOException {
        this.binary = binary;
        this.directory = directory;
        this.ports = freePorts(4);
        settings.put("GROUP_COMMIT_INTERVAL_MS_DEFAULT_VALUE", "100");
        settings.put("ARROW_FLIGHT_SQL_PORT", String.valueOf(ports[3]));
    }

    /** Starts a server with settings in the form NAME=VALUE; those marked with `?` are left out if the server has no such setting. */
    public static Server start(String binary, String... settings) throws Exception {
        Path directory = Files.createTempDirectory("tributary-suite");
        Server server = new Server(binary, directory);
        String peer = System.getenv("SUITE_PEER");
        if (peer != null) {
            server.ports[0] = Integer.parseInt(peer);
            return server;
        }
        String known = settings.length == 0 ? "" : server.config();
        for (String setting : settings) {
            boolean optional = setting.startsWith("?");
            String[] parts = setting.substring(optional ? 1 : 0).split("=", 2);
            if (!optional || known.matches("(?s).*\\n#? ?" + parts[0].toLowerCase() + " = .*")) {
                server.settings.put(parts[0], parts[1]);
            } else {
                System.out.println("note: the server has no setting " + parts[0].toLowerCase());
            }
        }
        Runtime.getRuntime().addShutdownHook(new Thread(server::remove));
        server.start();
        return server;
    }

    public int mysqlPort() {
        return ports[0];
    }

    public int httpPort() {
        return ports[1];
    }

    public int flightPort() {
        return ports[3];
    }

    public String http() {
        return "127.0.0.1:" + ports[1];
    }

    public Path data() {
        return directory.resolve("data");
    }

    /** Starts the server on its ports and waits until it is ready. */
    public void start() throws Exception {
        List<String> command = List.of(binary, "serve", "--storage-root-path", data().toString(), "--bind", "127.0.0.1",
                "--query-port", String.valueOf(ports[0]), "--http-port", String.valueOf(ports[1]),
                "--webserver-port", String.valueOf(ports[2]));
        File out = directory.resolve("out").toFile();
        Files.deleteIfExists(out.toPath());
        ProcessBuilder builder = new ProcessBuilder(command).redirectOutput(out)
                .redirectError(ProcessBuilder.Redirect.appendTo(directory.resolve("err").toFile()));
        settings.forEach((name, value) -> builder.environment().put("TRIBUTARY_" + name, value));
        process = builder.start();
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!Files.readString(out.toPath()).contains("tributary ready")) {
            if (!process.isAlive() || System.currentTimeMillis() > end) {
                throw new IOException("the server did not start: " + Files.readString(directory.resolve("err")));
            }
            Thread.sleep(20);
        }
    }

    /** Ends the server with SIGKILL: it writes nothing more. */
    public void kill() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor();
    }

    private String config() throws Exception {
        Process config = new ProcessBuilder(binary, "config").redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String text = new String(config.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        config.waitFor();
        return text;
    }

    private void remove() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException ignored) {
            // The machine's end removes it.
        }
        if (System.getenv("SUITE_KEEP") != null) {
            System.out.println("kept: " + directory);
            return;
        }
        try (Stream<Path> paths = Files.walk(directory)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException ignored) {
            // What is left is in the directory of temporary files.
        }
    }

    private static int[] freePorts(int count) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        int[] ports = new int[count];
        for (int i = 0; i < count; i++) {
            ServerSocket socket = new ServerSocket(0);
            sockets.add(socket);
            ports[i] = socket.getLocalPort();
        }
        for (ServerSocket socket : sockets) {
            socket.close();
        }
        return ports;
    }
}
