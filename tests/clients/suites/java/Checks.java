import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Named checks of one suite: each prints a line, and the last line counts them. What clients print should go elsewhere. */
public final class Checks {
    /** A check that throws what it found wrong. */
    public interface Check {
        void run() throws Exception;
    }

    /** The exit code of a program whose checks all ran, and not all passed. */
    private static final int MISSED = 3;

    private final PrintStream out = System.out;
    private final String suite;
    private final String prefix;
    private final List<String> wanted;
    private final List<String> missed = new ArrayList<>();
    private int all;

    /** Makes checks of which only the wanted ones run, or all if none is named. */
    public Checks(String suite, List<String> wanted) {
        this(suite, "", wanted);
    }

    /** Makes checks whose names are printed with a prefix, because the same ones run with something else, too. */
    public Checks(String suite, String prefix, List<String> wanted) {
        this.suite = suite;
        this.prefix = prefix;
        this.wanted = wanted;
    }

    /** Runs one check, and goes on with the next whatever it does. */
    public void check(String name, Check check) {
        if (!wanted.isEmpty() && !wanted.contains(name)) {
            return;
        }
        all++;
        try {
            check.run();
            out.println("ok " + prefix + name);
        } catch (Throwable error) {
            missed.add(name);
            out.println("MISS " + prefix + name + ": " + reason(error));
            if ("yes".equals(System.getenv("SUITE_TRACES"))) {
                error.printStackTrace(out);
            }
        }
        out.flush();
    }

    /** Prints the count and ends the program; its exit code says whether all passed. */
    public void finish() {
        out.println(suite + ": " + (all - missed.size()) + " of " + all);
        out.flush();
        System.exit(missed.isEmpty() ? 0 : MISSED);
    }

    public static void same(Object expected, Object actual, String about) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(about + ": expected " + expected + ", got " + actual);
        }
    }

    public static void holds(boolean condition, String about) {
        if (!condition) {
            throw new AssertionError(about);
        }
    }

    /** Joins the messages of an error and its causes in one line. */
    private static String reason(Throwable error) {
        List<String> parts = new ArrayList<>();
        for (Throwable cause = error; cause != null && parts.size() < 8; cause = cause.getCause()) {
            String text = cause.getClass().getSimpleName() + ": " + cause.getMessage();
            if (cause instanceof java.sql.SQLException sql) {
                text += " (" + sql.getErrorCode() + ")";
            }
            parts.add(text.strip().replaceAll("\\s+", " "));
        }
        return String.join(" <- ", parts);
    }
}
