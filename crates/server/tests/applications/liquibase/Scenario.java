import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.ClassLoaderResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.Table;

/** Liquibase: change sets, a second start, a tag and the way back, a snapshot. */
public final class Scenario {
    private static Liquibase liquibase() throws Exception {
        Connection c = DriverManager.getConnection(Steps.url(), "nvcaracal", "");
        Database database =
            DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
        return new Liquibase("changes.xml", new ClassLoaderResourceAccessor(), database);
    }

    private static String value(String query) throws Exception {
        try (Connection c = DriverManager.getConnection(Steps.url(), "nvcaracal", "");
                Statement s = c.createStatement(); ResultSet r = s.executeQuery(query)) {
            return r.next() ? r.getString(1) : null;
        }
    }

    private static void update() throws Exception {
        try (Liquibase liquibase = liquibase()) {
            liquibase.update(new Contexts(), new LabelExpression());
        }
    }

    private static int unrun() throws Exception {
        try (Liquibase liquibase = liquibase()) {
            return liquibase.listUnrunChangeSets(new Contexts(), new LabelExpression()).size();
        }
    }

    public static void main(String[] arguments) {
        java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.SEVERE);
        Steps.step("update to a tag", () -> {
            try (Liquibase liquibase = liquibase()) {
                liquibase.update("one", new Contexts(), new LabelExpression());
            }
        });
        Steps.step("update", Scenario::update);
        Steps.step("a second start finds nothing", () -> {
            Steps.same(unrun(), 0);
            update();
        });
        Steps.step("rows", () -> {
            Steps.same(value("SELECT count(*) FROM person"), "2");
            Steps.same(value("SELECT score FROM visit"), "3");
        });
        Steps.step("a snapshot", () -> {
            try (Liquibase liquibase = liquibase()) {
                Database database = liquibase.getDatabase();
                DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(
                    database.getDefaultSchema(), database, new SnapshotControl(database));
                Table person = snapshot.get(new Table(null, "public", "person"));
                Steps.same(person.getColumns().stream().map(Column::getName).sorted().toList().toString(),
                    "[at, called, email, id]");
                Steps.same(snapshot.get(ForeignKey.class).size(), 1);
                Steps.same(snapshot.get(Index.class).stream().map(Index::getName)
                    .filter("visit_by_score"::equals).count(), 1L);
            }
        });
        Steps.step("a difference to itself is none", () -> {
            try (Liquibase one = liquibase(); Liquibase two = liquibase()) {
                DiffResult result = one.diff(one.getDatabase(), two.getDatabase(), CompareControl.STANDARD);
                Steps.same(result.areEqual(), true);
            }
        });
        Steps.step("the documents of the changes", () -> {
            try (Liquibase liquibase = liquibase()) {
                liquibase.validate();
                Steps.same(liquibase.isSafeToRunUpdate(), true);
            }
        });
        Steps.step("back to the tag", () -> {
            try (Liquibase liquibase = liquibase()) {
                liquibase.rollback("one", new Contexts(), new LabelExpression());
            }
            Steps.same(value("SELECT count(*) FROM pg_tables WHERE tablename = 'visit'"), "0");
        });
        Steps.step("update again", Scenario::update);
        Steps.step("drop all", () -> {
            try (Liquibase liquibase = liquibase()) {
                liquibase.dropAll();
            }
            Steps.same(value("SELECT count(*) FROM pg_tables WHERE tablename = 'person'"), "0");
        });
    }
}
