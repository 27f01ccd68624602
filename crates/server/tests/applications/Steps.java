/** Steps of a scenario: each is told on a line that scripts/applications.sh counts. */
public final class Steps {
    /** What a step does. */
    public interface Body {
        void run() throws Throwable;
    }

    private Steps() {}

    /** Where the server is, for drivers. */
    public static String url() {
        return "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/nvcaracal";
    }

    /** Runs one step, tells what came of it, and answers whether it passed. */
    public static boolean step(String name, Body body) {
        try {
            body.run();
        } catch (Throwable error) {
            System.out.println("failed " + name + ": " + firstLine(error));
            if (System.getenv("STEPS_TRACE") != null) {
                error.printStackTrace();
            }
            return false;
        }
        System.out.println("ok " + name);
        return true;
    }

    /** Fails unless both are equal. */
    public static void same(Object found, Object expected) {
        if (!java.util.Objects.equals(found, expected)) {
            throw new AssertionError(found + " instead of " + expected);
        }
    }

    private static String firstLine(Throwable error) {
        Throwable root = error;
        while (root.getCause() != null && !(root instanceof java.sql.SQLException)) {
            root = root.getCause();
        }
        String said = String.valueOf(root.getMessage()).strip();
        return said.lines().findFirst().orElse(root.toString());
    }
}
