import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;

/** The program of the Group Commit manual; only the address comes from the command line. */
public class GroupCommitInsertBatch {
    private static final String JDBC_DRIVER = "com.mysql.jdbc.Driver";
    private static final String URL_PATTERN = "jdbc:mysql://%s:%d/%s?useServerPrepStmts=true&useLocalSessionState=true&rewriteBatchedStatements=true&cachePrepStmts=true&prepStmtCacheSqlLimit=99999&prepStmtCacheSize=50&sessionVariables=group_commit=async_mode";
    private static final String HOST = "127.0.0.1";
    private static int PORT = 9087;
    private static String DB = "db";
    private static final String TBL = "dt";
    private static final String USER = "root";
    private static final String PASSWD = "";
    private static final int INSERT_BATCH_SIZE = 10;
    /** What the manual's text adds to the URL, if anything. */
    private static String more = "";

    public static void main(String[] arguments) throws Exception {
        PORT = Integer.parseInt(arguments[0]);
        DB = arguments[1];
        more = arguments.length > 2 ? arguments[2] : "";
        groupCommitInsertBatch();
        System.out.println("ok");
    }

    private static void groupCommitInsertBatch() throws Exception {
        Class.forName(JDBC_DRIVER);
        // add rewriteBatchedStatements=true and cachePrepStmts=true in JDBC url
        // set session variables by sessionVariables=group_commit=async_mode in JDBC url
        try (Connection conn = DriverManager.getConnection(
                String.format(URL_PATTERN + more, HOST, PORT, DB), USER, PASSWD)) {

            String query = "insert into " + TBL + " values(?, ?, ?)";
            try (PreparedStatement stmt = conn.prepareStatement(query)) {
                for (int j = 0; j < 5; j++) {
                    // 10 rows per insert
                    for (int i = 0; i < INSERT_BATCH_SIZE; i++) {
                        stmt.setInt(1, i);
                        stmt.setString(2, "name" + i);
                        stmt.setInt(3, i + 10);
                        stmt.addBatch();
                    }
                    int[] result = stmt.executeBatch();
                    if (result.length != INSERT_BATCH_SIZE) {
                        throw new AssertionError("results of " + result.length + " rows");
                    }
                }
            }
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }
}
