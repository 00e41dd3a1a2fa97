import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * Stream Loads by the JDK's own HTTP client to a port that sends loads on to another one with 307.
 *
 * <pre>
 * StreamLoadChecks PORT DATABASE followed     the client follows by itself
 * StreamLoadChecks PORT DATABASE by_hand      as connectors do: the address is read, and the load sent again with its credentials
 * </pre>
 */
public final class StreamLoadChecks {
    private static final int ROWS = 20_000;

    private StreamLoadChecks() {}

    public static void main(String[] arguments) throws Exception {
        URI uri = URI.create("http://127.0.0.1:" + arguments[0] + "/api/" + arguments[1] + "/dt/_stream_load");
        StringBuilder body = new StringBuilder();
        for (int id = 0; id < ROWS; id++) {
            body.append(id).append(",name").append(id).append(",7\n");
        }
        HttpResponse<String> answer;
        switch (arguments[2]) {
            case "followed":
                answer = send(HttpClient.Redirect.ALWAYS, uri, body.toString());
                break;
            case "by_hand":
                HttpResponse<String> sentOn = send(HttpClient.Redirect.NEVER, uri, body.toString());
                equal(sentOn.statusCode(), 307);
                URI location = URI.create(sentOn.headers().firstValue("location").orElseThrow());
                equal(location.getUserInfo(), "root:");
                URI plain = new URI("http", null, location.getHost(), location.getPort(), location.getPath(), null, null);
                answer = send(HttpClient.Redirect.NEVER, plain, body.toString());
                break;
            default:
                throw new IllegalArgumentException(arguments[2]);
        }
        equal(answer.statusCode(), 200);
        if (!answer.body().contains("\"Status\": \"Success\"") || !answer.body().contains("\"NumberLoadedRows\": " + ROWS)) {
            throw new AssertionError(answer.body());
        }
        System.out.println("ok");
    }

    private static HttpResponse<String> send(HttpClient.Redirect redirect, URI uri, String body)
            throws IOException, InterruptedException {
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(redirect).build();
        String credentials = Base64.getEncoder().encodeToString("root:".getBytes(StandardCharsets.UTF_8));
        HttpRequest request = HttpRequest.newBuilder(uri)
                .header("Authorization", "Basic " + credentials)
                .header("column_separator", ",")
                .expectContinue(true)
                .PUT(HttpRequest.BodyPublishers.ofString(body))
                .build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    private static void equal(Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }
}
