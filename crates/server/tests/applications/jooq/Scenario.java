import static org.jooq.impl.DSL.avg;
import static org.jooq.impl.DSL.count;
import static org.jooq.impl.DSL.excluded;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.foreignKey;
import static org.jooq.impl.DSL.multiset;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.primaryKey;
import static org.jooq.impl.DSL.row;
import static org.jooq.impl.DSL.rowNumber;
import static org.jooq.impl.DSL.select;
import static org.jooq.impl.DSL.sum;
import static org.jooq.impl.DSL.table;
import static org.jooq.impl.DSL.unique;
import static org.jooq.impl.DSL.val;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.List;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Meta;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.codegen.GenerationTool;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;
import org.jooq.meta.jaxb.Configuration;
import org.jooq.meta.jaxb.Database;
import org.jooq.meta.jaxb.Generator;
import org.jooq.meta.jaxb.Jdbc;
import org.jooq.meta.jaxb.Target;

/** jOOQ: definitions, code made of the catalog, queries, blocks. */
public final class Scenario {
    private static final Table<Record> PERSON = table(name("person"));
    private static final Field<Integer> ID = field(name("person", "id"), SQLDataType.INTEGER);
    private static final Field<String> NAME = field(name("person", "name"), SQLDataType.VARCHAR(40));
    private static final Field<String> EMAIL = field(name("person", "email"), SQLDataType.CLOB);
    private static final Table<Record> VISIT = table(name("visit"));
    private static final Field<Integer> OF = field(name("visit", "person_id"), SQLDataType.INTEGER);
    private static final Field<Double> SCORE = field(name("visit", "score"), SQLDataType.DOUBLE);

    private static void generate() throws Exception {
        GenerationTool.generate(new Configuration()
            .withJdbc(new Jdbc().withUrl(Steps.url()).withUser("nvcaracal").withPassword(""))
            .withGenerator(new Generator()
                .withDatabase(new Database().withName("org.jooq.meta.postgres.PostgresDatabase")
                    .withInputSchema("public"))
                .withTarget(new Target().withPackageName("made").withDirectory(System.getenv("ROOM")))));
        String made = String.join("\n", java.nio.file.Files.readAllLines(
            Path.of(System.getenv("ROOM"), "made", "tables", "Person.java")));
        for (String word : List.of("SQLDataType.VARCHAR(40).nullable(false)", "identity(true)", "MOOD",
                "PERSON_EMAIL", "JSONB")) {
            if (!made.contains(word)) {
                throw new AssertionError("the code has no " + word);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        Connection c = DriverManager.getConnection(Steps.url(), "nvcaracal", "");
        DSLContext db = DSL.using(c, SQLDialect.POSTGRES);
        Steps.step("create", () -> {
            db.createType("mood").asEnum("sad", "ok").execute();
            db.createTableIfNotExists(PERSON)
                .column(ID, SQLDataType.INTEGER.identity(true))
                .column(NAME, SQLDataType.VARCHAR(40).nullable(false).defaultValue("x"))
                .column(EMAIL, SQLDataType.CLOB)
                .column("about", SQLDataType.JSONB)
                .column("at", SQLDataType.TIMESTAMPWITHTIMEZONE)
                .constraints(primaryKey(ID), unique(EMAIL)).execute();
            db.execute("ALTER TABLE person ADD mood mood DEFAULT 'ok'");
            db.createTable(VISIT).column("id", SQLDataType.BIGINT.identity(true)).column(OF).column(SCORE)
                .constraints(primaryKey("id"), foreignKey(OF).references(PERSON, ID).onDeleteCascade())
                .execute();
            db.createIndexIfNotExists("visit_person").on(VISIT, OF, SCORE.desc()).execute();
        });
        Steps.step("a second start", () -> db.createTableIfNotExists(PERSON).column(ID).execute());
        Steps.step("alter", () -> {
            db.alterTable(VISIT).addColumn("place", SQLDataType.VARCHAR(10).defaultValue("here")).execute();
            db.alterTable(VISIT).alterColumn("place").setNotNull().execute();
            db.alterTable(VISIT).renameColumn("place").to("spot").execute();
            db.commentOnTable(VISIT).is("visits").execute();
            db.createOrReplaceView("few").as(select(ID).from(PERSON)).execute();
        });
        Steps.step("generated code", Scenario::generate);
        Steps.step("the catalog", () -> {
            Meta meta = db.meta();
            Steps.same(meta.filterSchemas(s -> s.getName().equals("public")).getTables("person").get(0)
                .getPrimaryKey().getFields().size(), 1);
        });
        Steps.step("insert with returning", () -> Steps.same(
            db.insertInto(PERSON, NAME, EMAIL).values("Ada", "a@b").values("Bob", null)
                .returningResult(ID).fetch(ID), List.of(1, 2)));
        Steps.step("batch", () -> Steps.same(db.batch(
            db.insertInto(VISIT, OF, SCORE).values((Integer) null, null))
                .bind(1, 1.0).bind(1, 2.0).bind(2, 3.0).execute().length, 3));
        Steps.step("groups and windows", () -> {
            Steps.same(db.select(NAME, count(), sum(SCORE), avg(SCORE)).from(PERSON).join(VISIT)
                .on(OF.eq(ID)).groupBy(NAME).having(count().gt(1)).fetchOne().value2(), 2);
            Steps.same(db.select(rowNumber().over().partitionBy(OF).orderBy(SCORE)).from(VISIT)
                .fetch(0).toString(), "[1, 2, 1]");
        });
        Steps.step("multiset", () -> Steps.same(db.select(NAME,
            multiset(select(SCORE).from(VISIT).where(OF.eq(ID)).orderBy(SCORE))).from(PERSON)
            .orderBy(ID).fetch().get(0).value2().size(), 2));
        Steps.step("row values", () -> Steps.same(db.fetchCount(PERSON,
            row(ID, NAME).in(row(1, "Ada"), row(2, "Cy"))), 1));
        Steps.step("a nested row", () -> Steps.same(db.select(row(ID, NAME)).from(PERSON).orderBy(ID)
            .limit(1).fetchOne().value1().value2(), "Ada"));
        Steps.step("upsert", () -> Steps.same(db.insertInto(PERSON, NAME, EMAIL).values("Bea", "a@b")
            .onConflict(EMAIL).doUpdate().set(NAME, excluded(NAME)).returning(NAME).fetchOne(NAME), "Bea"));
        Steps.step("merge", () -> Steps.same(db.mergeInto(PERSON).using(select(val(1).as("k")))
            .on(ID.eq(field(name("k"), Integer.class))).whenMatchedThenUpdate().set(NAME, "Cy").execute(), 1));
        Steps.step("WITH RECURSIVE", () -> Steps.same(db.withRecursive("t", "n").as(
            select(val(1)).unionAll(select(field(name("t", "n"), Integer.class).plus(1))
                .from(table(name("t"))).where(field(name("t", "n"), Integer.class).lt(5))))
            .selectFrom(table(name("t"))).fetch().size(), 5));
        Steps.step("a lazy cursor", () -> db.transaction(t -> {
            int seen = 0;
            try (var rows = t.dsl().selectFrom(VISIT).fetchSize(1).fetchLazy()) {
                while (rows.hasNext()) {
                    rows.fetchNext();
                    seen++;
                }
            }
            Steps.same(seen, 3);
        }));
        Steps.step("transactions", () -> {
            db.transaction(t -> {
                t.dsl().update(PERSON).set(NAME, "kept").where(ID.eq(1)).execute();
                try {
                    t.dsl().transaction(inner -> {
                        inner.dsl().deleteFrom(VISIT).execute();
                        throw new IllegalStateException();
                    });
                } catch (IllegalStateException error) {
                    Steps.same(t.dsl().fetchCount(VISIT), 3);
                }
            });
            Steps.same(db.fetchCount(VISIT), 3);
        });
        Steps.step("a lock", () -> db.transaction(t ->
            t.dsl().selectFrom(PERSON).where(ID.eq(1)).forUpdate().skipLocked().fetch()));
        Steps.step("a key that is taken", () -> {
            try {
                db.insertInto(PERSON, EMAIL).values("a@b").execute();
            } catch (DataAccessException error) {
                Steps.same(error.sqlState(), "23505");
                return;
            }
            throw new AssertionError("no error");
        });
        Steps.step("drop", () -> {
            db.dropViewIfExists("few").execute();
            db.dropTable(VISIT).cascade().execute();
            db.dropTable(PERSON).execute();
            db.dropType("mood").execute();
        });
        System.exit(0);
    }
}
