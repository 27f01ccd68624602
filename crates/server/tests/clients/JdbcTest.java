// JDBC with PostgreSQL's own driver: values, batches, blocks, errors, COPY, what it asks of the
// catalog, which must be what it is told by PostgreSQL 15: GOLDEN, which `write` writes.
//
// Usage: java -cp postgresql.jar JdbcTest.java PORT GOLDEN [write]
//        (scripts/clients.sh starts the server)
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.postgresql.PGConnection;

public class JdbcTest {
    static String url;
    static Path golden;
    static boolean isWritten;
    static final String DROP =
        "DROP VIEW IF EXISTS x_shown; DROP TABLE IF EXISTS a, v, x_child, x_parent, x_other";

    interface Body {
        void run(Connection connection) throws Exception;
    }

    static void test(String name, Body body) throws Exception {
        try (Connection connection = DriverManager.getConnection(url, "nvcaracal", "")) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(DROP);
            }
            body.run(connection);
            connection.setAutoCommit(true);
            connection.createStatement().execute(DROP);
            System.out.println("ok: " + name);
        } catch (Throwable error) {
            throw new Exception(name, error);
        }
    }

    static void same(Object found, Object expected) {
        if (!java.util.Objects.equals(found, expected)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    static void fails(String state, java.util.concurrent.Callable<?> body) throws Exception {
        try {
            body.call();
        } catch (SQLException error) {
            same(error.getSQLState(), state);
            return;
        }
        throw new AssertionError("no error " + state);
    }

    static String all(Statement statement, String query) throws SQLException {
        List<String> rows = new ArrayList<>();
        try (ResultSet found = statement.executeQuery(query)) {
            int columns = found.getMetaData().getColumnCount();
            while (found.next()) {
                List<String> row = new ArrayList<>();
                for (int at = 1; at <= columns; at++) row.add(found.getString(at));
                rows.add(String.join("|", row.stream().map(String::valueOf).toList()));
            }
        }
        return String.join(" ", rows);
    }

    static void values(Connection connection) throws Exception {
        connection.createStatement().execute(
            "CREATE TABLE v (id int PRIMARY KEY, b boolean, i8 bigint, f8 double precision,"
            + " n numeric(20,4), t text, y bytea, d date, tz timestamptz, u uuid, j jsonb)");
        var at = OffsetDateTime.of(2024, 1, 2, 3, 4, 5, 678_000_000, ZoneOffset.UTC);
        var uuid = UUID.fromString("12345678-1234-5678-1234-567812345678");
        String insert = "INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb)";
        try (PreparedStatement write = connection.prepareStatement(insert)) {
            Object[] values = {1, true, Long.MAX_VALUE, -0.1, new BigDecimal("-12345678901234.5678"),
                "it's \u20ac", new byte[] {0, -1, 7}, LocalDate.of(2024, 2, 29), at, uuid,
                "{\"a\": [1, null]}"};
            for (int place = 1; place <= values.length; place++) {
                write.setObject(place, values[place - 1]);
            }
            same(write.executeUpdate(), 1);
        }
        // From the fifth time on the driver asks for values in binary.
        try (PreparedStatement read = connection.prepareStatement("SELECT * FROM v WHERE id = ?")) {
            for (int round = 0; round < 12; round++) {
                read.setInt(1, 1);
                ResultSet row = read.executeQuery();
                same(row.next(), true);
                same(row.getBoolean("b"), true);
                same(row.getLong("i8"), Long.MAX_VALUE);
                same(row.getDouble("f8"), -0.1);
                same(row.getBigDecimal("n"), new BigDecimal("-12345678901234.5678"));
                same(row.getString("t"), "it's \u20ac");
                same(row.getBytes("y").length, 3);
                same(row.getObject("d", LocalDate.class), LocalDate.of(2024, 2, 29));
                same(row.getObject("tz", OffsetDateTime.class).toInstant(), at.toInstant());
                same(row.getObject("u"), uuid);
                same(row.getString("j"), "{\"a\": [1, null]}");
            }
        }
    }

    static void batches(Connection connection) throws Exception {
        Statement plain = connection.createStatement();
        plain.execute("CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int)");
        try (PreparedStatement write = connection.prepareStatement(
                "INSERT INTO a (n) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int n = 0; n < 500; n++) {
                write.setInt(1, n);
                write.addBatch();
            }
            same(write.executeBatch().length, 500);
            ResultSet keys = write.getGeneratedKeys();
            int count = 0;
            while (keys.next()) same(keys.getInt(1), ++count);
            same(count, 500);
        }
        same(all(plain, "SELECT count(*), sum(n) FROM a"), "500|124750");
        // A cursor of the protocol: rows come by 50.
        connection.setAutoCommit(false);
        try (Statement read = connection.createStatement()) {
            read.setFetchSize(50);
            ResultSet rows = read.executeQuery("SELECT n FROM a ORDER BY n");
            int count = 0;
            while (rows.next()) same(rows.getInt(1), count++);
            same(count, 500);
        }
        connection.commit();
    }

    static void blocks(Connection connection) throws Exception {
        Statement plain = connection.createStatement();
        plain.execute("CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0))");
        connection.setAutoCommit(false);
        same(plain.executeUpdate("INSERT INTO a VALUES (1, 1)"), 1);
        Savepoint savepoint = connection.setSavepoint();
        fails("23505", () -> plain.executeUpdate("INSERT INTO a VALUES (1, 1)"));
        fails("25P02", () -> all(plain, "SELECT 1"));
        connection.rollback(savepoint);
        same(plain.executeUpdate("INSERT INTO a VALUES (2, 2)"), 1);
        connection.commit();
        try (PreparedStatement write =
                connection.prepareStatement("INSERT INTO a VALUES (?, 1) ON CONFLICT DO NOTHING")) {
            for (int id = 1; id <= 4; id++) {
                write.setInt(1, id);
                write.addBatch();
            }
            same(Arrays.toString(write.executeBatch()), "[0, 0, 1, 1]");
            write.setInt(1, 5);
            same(write.executeUpdate(), 1);
            write.setInt(1, 6);
            same(write.execute(), false);
            same(write.getUpdateCount(), 1);
        }
        same(plain.executeUpdate("UPDATE a SET n = n + 1 WHERE id > 2"), 4);
        connection.rollback();
        same(plain.executeUpdate("DELETE FROM a"), 2);
        connection.rollback();
        same(all(plain, "SELECT * FROM a ORDER BY id"), "1|1 2|2");
        connection.rollback();
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        connection.setReadOnly(true);
        fails("25006", () -> plain.executeUpdate("DELETE FROM a"));
        connection.rollback();
        connection.setReadOnly(false);
        connection.setAutoCommit(true);
        fails("23514", () -> plain.executeUpdate("INSERT INTO a VALUES (3, 0)"));
        fails("42P01", () -> all(plain, "SELECT * FROM nothing"));
        fails("22012", () -> all(plain, "SELECT 1 / 0"));
    }

    static void copies(Connection connection) throws Exception {
        connection.createStatement().execute("CREATE TABLE a (id int PRIMARY KEY, t text)");
        var copy = connection.unwrap(PGConnection.class).getCopyAPI();
        same(copy.copyIn("COPY a FROM STDIN", new StringReader("1\tx\n2\t\\N\n")), 2L);
        connection.setAutoCommit(false);
        var out = new StringWriter();
        same(copy.copyOut("COPY a TO STDOUT (FORMAT csv)", out), 2L);
        same(out.toString(), "1,x\n2,\n");
        fails("23505", () -> copy.copyIn("COPY a FROM STDIN", new StringReader("1\tx\n")));
        connection.rollback();
    }

    // All that is told of each row, but for what depends on statistics.
    static void list(List<String> lines, String title, ResultSet rows) throws SQLException {
        lines.add("--- " + title);
        ResultSetMetaData about = rows.getMetaData();
        while (rows.next()) {
            List<String> row = new ArrayList<>();
            for (int at = 1; at <= about.getColumnCount(); at++) {
                String name = about.getColumnLabel(at).toUpperCase();
                if (name.equals("CARDINALITY") || name.equals("PAGES")) continue;
                row.add(name + "=" + rows.getString(at));
            }
            lines.add(String.join(" ", row));
        }
        rows.close();
    }

    static void metadata(Connection connection) throws Exception {
        Statement plain = connection.createStatement();
        // The index is there before the foreign key, which would have one of its own here.
        for (String text : List.of(
            "CREATE TABLE x_parent (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
            + " t varchar(7) UNIQUE, n numeric(10, 3) NOT NULL DEFAULT 1.5,"
            + " at timestamptz DEFAULT now(), CHECK (n > 0))",
            "CREATE TABLE x_other (x bigint, y text, c char(3), f real, d double precision,"
            + " b bytea, s serial, ok boolean, day date, moment timestamp(3), u uuid, j json,"
            + " k jsonb, small smallint, i interval, PRIMARY KEY (y, x))",
            "CREATE TABLE x_child (id int, a int REFERENCES x_parent ON DELETE CASCADE,"
            + " x bigint, y text, PRIMARY KEY (a, id))",
            "CREATE UNIQUE INDEX x_by_id ON x_child (id DESC, a)",
            "CREATE INDEX x_by_y_x ON x_child (y, x)",
            "ALTER TABLE x_child ADD CONSTRAINT x_to_other FOREIGN KEY (y, x)"
            + " REFERENCES x_other (y, x) ON UPDATE SET NULL",
            "CREATE VIEW x_shown AS SELECT id, t, n * 2 AS more FROM x_parent")) {
            plain.execute(text);
        }
        DatabaseMetaData about = connection.getMetaData();
        same(about.getDatabaseProductName(), "PostgreSQL");
        List<String> lines = new ArrayList<>();
        list(lines, "getSchemas", about.getSchemas());
        list(lines, "getTableTypes", about.getTableTypes());
        list(lines, "getTables", about.getTables(null, "public", "x\\_%",
            new String[] {"TABLE", "VIEW", "SEQUENCE", "INDEX"}));
        list(lines, "getColumns", about.getColumns(null, "public", "x\\_%", "%"));
        for (String table : List.of("x_parent", "x_other", "x_child", "x_shown")) {
            list(lines, "getPrimaryKeys " + table, about.getPrimaryKeys(null, "public", table));
            list(lines, "getIndexInfo " + table,
                about.getIndexInfo(null, "public", table, false, false));
            list(lines, "getImportedKeys " + table, about.getImportedKeys(null, "public", table));
            list(lines, "getExportedKeys " + table, about.getExportedKeys(null, "public", table));
            list(lines, "getBestRowIdentifier " + table, about.getBestRowIdentifier(null, "public",
                table, DatabaseMetaData.bestRowSession, false));
        }
        list(lines, "getCrossReference", about.getCrossReference(null, "public", "x_parent",
            null, "public", "x_child"));
        if (isWritten) {
            Files.write(golden, lines);
            return;
        }
        List<String> expected = Files.readAllLines(golden);
        for (int at = 0; at < Math.min(lines.size(), expected.size()); at++) {
            same(lines.get(at), expected.get(at));
        }
        same(lines.size(), expected.size());
    }

    public static void main(String[] arguments) throws Exception {
        url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/nvcaracal";
        golden = Path.of(arguments[1]);
        isWritten = arguments.length > 2 && arguments[2].equals("write");
        test("values come back as they went", JdbcTest::values);
        test("batches, keys that were generated, rows part by part", JdbcTest::batches);
        test("blocks, savepoints, errors", JdbcTest::blocks);
        test("COPY", JdbcTest::copies);
        test("what the driver asks of the catalog", JdbcTest::metadata);
    }
}
