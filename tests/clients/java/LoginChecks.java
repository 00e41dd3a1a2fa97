import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;

/**
 * Logins of Connector/J.
 *
 * <pre>
 * LoginChecks PORT CA USER:PASSWORD:WAY ...
 * </pre>
 *
 * WAY is {@code plain} (no TLS), {@code key} (no TLS, and the driver may ask for the server's key) or {@code tls} (the server's
 * certificate is checked against CA, and its name). Prints a line per login: the cipher, {@code -} for none, or the number of the error.
 */
public final class LoginChecks {
    private LoginChecks() {}

    public static void main(String[] arguments) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (FileInputStream file = new FileInputStream(arguments[1])) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        Path trust = Files.createTempFile("trust", ".p12");
        try (FileOutputStream file = new FileOutputStream(trust.toFile())) {
            store.store(file, "changeit".toCharArray());
        }
        for (int number = 2; number < arguments.length; number++) {
            String[] one = arguments[number].split(":", -1);
            String address = "jdbc:mysql://localhost:" + arguments[0] + "/?" + way(one[2], trust);
            try (Connection connection = DriverManager.getConnection(address, one[0], one[1]);
                    ResultSet rows = connection.createStatement().executeQuery("SHOW STATUS LIKE 'Ssl_cipher'")) {
                rows.next();
                String cipher = rows.getString(2);
                System.out.println(cipher.isEmpty() ? "-" : cipher);
            } catch (SQLException error) {
                System.out.println(error.getErrorCode() == 0 ? error.getMessage().split("\n")[0] : error.getErrorCode());
            }
        }
        Files.delete(trust);
    }

    private static String way(String way, Path trust) {
        switch (way) {
            case "plain":
                return "sslMode=DISABLED";
            case "key":
                return "sslMode=DISABLED&allowPublicKeyRetrieval=true";
            default:
                return "sslMode=VERIFY_IDENTITY&trustCertificateKeyStoreType=PKCS12&trustCertificateKeyStorePassword=changeit"
                        + "&trustCertificateKeyStoreUrl=" + trust.toUri();
        }
    }
}
