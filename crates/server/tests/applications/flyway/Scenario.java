import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationState;

/** Flyway: migrations, a second start, repeatable ones, a failed one, validation, baseline. */
public final class Scenario {
    private static Flyway flyway(String target) {
        return Flyway.configure().dataSource(Steps.url(), "nvcaracal", "")
            .locations("classpath:migrations").target(target).cleanDisabled(false).load();
    }

    private static String value(String query) throws Exception {
        try (Connection c = DriverManager.getConnection(Steps.url(), "nvcaracal", "");
                Statement s = c.createStatement(); ResultSet r = s.executeQuery(query)) {
            return r.next() ? r.getString(1) : null;
        }
    }

    public static void main(String[] arguments) {
        Steps.step("migrate to a version", () -> Steps.same(flyway("1").migrate().migrationsExecuted, 2));
        Steps.step("migrate", () -> Steps.same(flyway("2").migrate().migrationsExecuted, 1));
        Steps.step("a second start finds nothing", () ->
            Steps.same(flyway("2").migrate().migrationsExecuted, 0));
        Steps.step("validate", () -> flyway("2").validate());
        Steps.step("info", () -> Steps.same(flyway("2").info().current().getState(), MigrationState.SUCCESS));
        Steps.step("rows", () -> Steps.same(value("SELECT count(*) FROM visit_of"), "2"));
        Steps.step("a migration that fails leaves nothing", () -> {
            try {
                flyway("3").migrate();
            } catch (org.flywaydb.core.api.FlywayException error) {
                Steps.same(value("SELECT count(*) FROM pg_class WHERE relname = 'half'"), "0");
                return;
            }
            throw new AssertionError("it does not fail");
        });
        Steps.step("repair", () -> flyway("2").repair());
        Steps.step("baseline of another history", () -> Flyway.configure()
            .dataSource(Steps.url(), "nvcaracal", "").table("other").locations("classpath:none")
            .baselineOnMigrate(true).load().migrate());
        Steps.step("clean", () -> {
            flyway("2").clean();
            Steps.same(value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
        });
        Steps.step("migrate after clean", () -> Steps.same(flyway("2").migrate().migrationsExecuted, 3));
    }
}
