//! The system catalog: what reads it is not logged, and sees the catalog that its block commits on.

use crate::client::{Client, memory};
use crate::script::shown;
use server::store::Modes;
use values::Result;

const WRITES: Modes = Modes { keeps_snapshot: false, is_read_only: false };
const READS: Modes = Modes { keeps_snapshot: false, is_read_only: true };
const TABLES: &str = "SELECT count(*) FROM pg_class WHERE relname LIKE 'own%' AND relkind = 'r'";

fn code<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().state().code().to_owned()
}

#[test]
fn what_is_logged_reads_no_catalog_and_no_session() {
    let mut client = Client::new(&memory());
    client.run("CREATE TABLE own (name text PRIMARY KEY)").unwrap();
    for statement in [
        "INSERT INTO own SELECT relname FROM pg_class",
        "INSERT INTO own VALUES (current_setting('TimeZone'))",
        "UPDATE own SET name = 'own'::regclass::text",
        "DELETE FROM own WHERE name ~ current_setting('TimeZone')",
        "CREATE TABLE other (a text DEFAULT current_setting('TimeZone'))",
        "ALTER TABLE own ADD COLUMN other text DEFAULT current_setting('TimeZone')",
        "ALTER TABLE own ALTER COLUMN name SET DEFAULT current_setting('TimeZone')",
        "ALTER TABLE own ADD CHECK (name ~ current_setting('TimeZone'))",
    ] {
        let refused = client.run(statement).expect_err(statement);
        assert_eq!(refused.state().code(), "0A000", "{statement}");
    }
    assert_eq!(client.value("SELECT count(*) FROM own"), "0");
    assert_eq!(client.value(TABLES), "1");
}

#[test]
fn a_block_commits_with_the_catalog_that_it_was_told() {
    let store = memory();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    other.run("CREATE TABLE own (a int PRIMARY KEY)").unwrap();
    let told = |client: &mut Client, expected: &str| {
        let answer = client.within(TABLES).unwrap();
        assert_eq!(shown(&answer.rows[0]), [expected]);
    };
    // Nothing is defined meanwhile.
    one.begin(WRITES);
    told(&mut one, "1");
    one.within("INSERT INTO own VALUES (1)").unwrap();
    assert_eq!(one.commit().unwrap().tag, "COMMIT");
    // Another table is.
    one.begin(WRITES);
    told(&mut one, "1");
    other.run("CREATE TABLE own2 (a int PRIMARY KEY)").unwrap();
    one.within("INSERT INTO own VALUES (2)").unwrap();
    assert_eq!(code(one.commit()), "40001");
    assert_eq!(one.value("SELECT count(*) FROM own"), "1");
    // A block that writes nothing does not conflict.
    one.begin(WRITES);
    told(&mut one, "2");
    other.run("CREATE TABLE own3 (a int PRIMARY KEY)").unwrap();
    assert_eq!(one.commit().unwrap().tag, "COMMIT");
}

#[test]
fn a_block_that_writes_reads_tables_beside_the_catalog_of_its_moment() {
    let store = memory();
    let (mut client, mut other) = (Client::new(&store), Client::new(&store));
    client.run("CREATE TABLE own (a int PRIMARY KEY)").unwrap();
    let both = "SELECT count(*) FROM own, pg_class WHERE relname = 'own'";
    let changes = [
        (None, "COMMIT"),
        (Some("INSERT INTO own VALUES (1)"), "40001"),
        (Some("CREATE TABLE others (a int PRIMARY KEY)"), "40001"),
    ];
    for (change, expected) in changes {
        client.begin(WRITES);
        assert_eq!(shown(&client.within(both).unwrap().rows[0]), ["0"]);
        client.within("INSERT INTO own VALUES (2)").unwrap();
        assert_eq!(shown(&client.within(both).unwrap().rows[0]), ["1"]);
        if let Some(change) = change {
            other.run(change).unwrap();
        }
        match client.commit() {
            Ok(answer) => assert_eq!(answer.tag, expected),
            error => assert_eq!(code(error), expected),
        }
        other.run("DELETE FROM own").unwrap();
    }
    // What a row decides is asked of no plan.
    client.begin(WRITES);
    let asked = "SELECT pg_get_constraintdef(a::oid) FROM own";
    assert_eq!(code(client.within(asked)), "0A000");
    client.block(server::store::BlockOperation::RollBack).unwrap();
    client.begin(READS);
    assert_eq!(shown(&client.within(both).unwrap().rows[0]), ["0"]);
    client.commit().unwrap();
    assert_eq!(client.value(both), "0");
}

#[test]
fn names_may_have_their_database_before_them() {
    let mut client = Client::new(&memory());
    for statement in [
        "CREATE TABLE nvcaracal.public.own (a serial PRIMARY KEY, b int)",
        "INSERT INTO \"nvcaracal\".\"public\".\"own\" (b) VALUES (2)",
        "UPDATE nvcaracal.public.own SET b = nvcaracal.public.own.b + 1",
        "CREATE INDEX own_b ON nvcaracal.public.own (b)",
        "ALTER TABLE nvcaracal.public.own ADD CHECK (b > 0)",
        "COMMENT ON TABLE nvcaracal.public.own IS 'x'",
        "COMMENT ON COLUMN nvcaracal.public.own.b IS 'y'",
        "COMMENT ON DATABASE nvcaracal IS 'z'",
    ] {
        client.run(statement).unwrap();
    }
    assert_eq!(client.value("SELECT nvcaracal.public.own.b FROM nvcaracal.public.own"), "3");
    assert_eq!(client.value("SELECT nextval('nvcaracal.public.own_a_seq')"), "2");
    let comments = "SELECT obj_description('nvcaracal.public.own'::regclass, 'pg_class') || \
                    col_description('own'::regclass, 2) || \
                    shobj_description(5, 'pg_database')";
    assert_eq!(client.value(comments), "xyz");
    assert_eq!(client.value("SELECT count(*) FROM nvcaracal.pg_catalog.pg_shdescription"), "1");
    for name in ["other.public.own", "nvcaracal.other.own"] {
        let refused = code(client.run(&format!("SELECT * FROM {name}")));
        assert!(["0A000", "42P01"].contains(&refused.as_str()), "{name}: {refused}");
    }
    client.run("COMMENT ON DATABASE nvcaracal IS NULL").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM pg_shdescription"), "0");
}
