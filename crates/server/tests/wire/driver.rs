//! A driver of PostgreSQL, tokio-postgres, which sends and wants values in binary.

use crate::support::{PATIENCE, Server};
use std::time::SystemTime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, Json, Kind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

async fn connect(server: &Server) -> Client {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(server.address.port())
        .user("nvcaracal")
        .connect_timeout(PATIENCE);
    config.application_name("test");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn text(client: &Client, query: &str) -> Vec<Option<String>> {
    let messages = client.simple_query(query).await.unwrap();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    rows.flat_map(|row| (0..row.len()).map(|at| row.get(at).map(str::to_owned))).collect()
}

#[tokio::test]
async fn values_come_back_as_they_went() {
    let server = Server::start();
    let client = connect(&server).await;
    let columns = "id int PRIMARY KEY, b boolean, i2 smallint, i8 bigint, f4 real, \
                   f8 double precision, t text, v varchar(20), y bytea, at timestamptz, j jsonb";
    client.batch_execute(&format!("CREATE TABLE v ({columns})")).await.unwrap();
    let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(1_700_000_000_123_456);
    let values: Vec<Box<dyn ToSql + Sync>> = vec![
        Box::new(1_i32),
        Box::new(true),
        Box::new(-2_i16),
        Box::new(i64::MAX),
        Box::new(1.5_f32),
        Box::new(-0.1_f64),
        Box::new("it's \u{20ac}"),
        Box::new("short"),
        Box::new(vec![0_u8, 255, 7]),
        Box::new(now),
        Box::new(Json(serde_json::json!({"a": [1, null]}))),
    ];
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value).collect();
    let insert = "INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    assert_eq!(client.execute(insert, &values).await.unwrap(), 1);
    let row = client.query_one("SELECT * FROM v WHERE id = $1", &[&1_i32]).await.unwrap();
    assert!(row.get::<_, bool>("b"));
    assert_eq!(row.get::<_, i16>("i2"), -2);
    assert_eq!(row.get::<_, i64>("i8"), i64::MAX);
    assert_eq!(row.get::<_, f32>("f4"), 1.5);
    assert_eq!(row.get::<_, f64>("f8"), -0.1);
    assert_eq!(row.get::<_, &str>("t"), "it's \u{20ac}");
    assert_eq!(row.get::<_, &str>("v"), "short");
    assert_eq!(row.get::<_, &[u8]>("y"), [0, 255, 7]);
    assert_eq!(row.get::<_, SystemTime>("at"), now);
    assert_eq!(row.get::<_, Json<serde_json::Value>>("j").0, serde_json::json!({"a": [1, null]}));
    let shown = text(&client, "SELECT b, i2, i8, f4, f8, t, v, y, at, j FROM v").await;
    let shown: Vec<&str> = shown.iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(
        shown,
        [
            "t",
            "-2",
            "9223372036854775807",
            "1.5",
            "-0.1",
            "it's \u{20ac}",
            "short",
            "\\x00ff07",
            "2023-11-14 22:13:20.123456+00",
            "{\"a\": [1, null]}"
        ]
    );
    let nulls = client.query_one("SELECT NULL::int, NULL::text, $1::bigint", &[&None::<i64>]).await;
    let nulls = nulls.unwrap();
    assert_eq!(nulls.get::<_, Option<i32>>(0), None);
    assert_eq!(nulls.get::<_, Option<String>>(1), None);
    assert_eq!(nulls.get::<_, Option<i64>>(2), None);
}

#[tokio::test]
async fn statements_have_types_and_errors_have_codes() {
    let server = Server::start();
    let client = connect(&server).await;
    client
        .batch_execute("CREATE TABLE a (id int PRIMARY KEY, n numeric CHECK (n >= 0))")
        .await
        .unwrap();
    let insert = client.prepare("INSERT INTO a (id, n) VALUES ($1, 1) RETURNING id").await.unwrap();
    assert_eq!(insert.params(), [Type::INT4]);
    assert_eq!(insert.columns()[0].type_(), &Type::INT4);
    assert_eq!(client.query_one(&insert, &[&7]).await.unwrap().get::<_, i32>(0), 7);
    let twice = client.query_one(&insert, &[&7]).await.unwrap_err();
    let error = twice.as_db_error().unwrap();
    assert_eq!(error.code(), &SqlState::UNIQUE_VIOLATION);
    assert_eq!(error.constraint(), Some("a_pkey"));
    let wrong = client.prepare("SELECT id, nothing FROM a").await.unwrap_err();
    let error = wrong.as_db_error().unwrap();
    assert_eq!(error.code(), &SqlState::UNDEFINED_COLUMN);
    let position = tokio_postgres::error::ErrorPosition::Original(12);
    assert_eq!(error.position(), Some(&position));
    let check = client.execute("UPDATE a SET n = -1", &[]).await.unwrap_err();
    assert_eq!(check.code(), Some(&SqlState::CHECK_VIOLATION));
}

/// What errors say of the objects that they are about.
#[tokio::test]
async fn errors_name_the_table_the_column_and_the_constraint() {
    let server = Server::start();
    let client = connect(&server).await;
    let made = "CREATE TABLE p (id int PRIMARY KEY, n int UNIQUE, CONSTRAINT few CHECK (n < 9));
        CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, t text);
        INSERT INTO p VALUES (1, 1);
        INSERT INTO c VALUES (1, 1, 'a'), (2, 1, 'a'), (3, NULL, NULL)";
    client.batch_execute(made).await.unwrap();
    for (text, code, table, column, constraint) in [
        ("INSERT INTO p VALUES (NULL, 2)", "23502", Some("p"), Some("id"), None),
        ("INSERT INTO p VALUES (1, 2)", "23505", Some("p"), None, Some("p_pkey")),
        ("INSERT INTO p VALUES (2, 1)", "23505", Some("p"), None, Some("p_n_key")),
        ("INSERT INTO p VALUES (2, 9)", "23514", Some("p"), None, Some("few")),
        ("INSERT INTO c VALUES (4, 2)", "23503", Some("c"), None, Some("c_p_fkey")),
        ("DELETE FROM p", "23503", Some("c"), None, Some("c_p_fkey")),
        ("ALTER TABLE c ALTER p SET NOT NULL", "23502", Some("c"), Some("p"), None),
        ("ALTER TABLE c ADD CONSTRAINT no CHECK (id > 1)", "23514", Some("c"), None, Some("no")),
        ("CREATE UNIQUE INDEX one ON c (t)", "23505", Some("c"), None, Some("one")),
        ("ALTER TABLE c ADD CONSTRAINT one UNIQUE (p)", "23505", Some("c"), None, Some("one")),
        ("INSERT INTO c VALUES ('x')", "22P02", None, None, None),
        ("SELECT nothing FROM c", "42703", None, None, None),
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), code, "{text}");
        assert_eq!(error.schema(), table.map(|_| "public"), "{text}");
        assert_eq!(error.table(), table, "{text}");
        assert_eq!(error.column(), column, "{text}");
        assert_eq!(error.constraint(), constraint, "{text}");
        assert_eq!(error.datatype(), None, "{text}");
    }
}

#[tokio::test]
async fn a_pipeline_keeps_its_order() {
    let server = Server::start();
    let client = std::sync::Arc::new(connect(&server).await);
    client.batch_execute("CREATE TABLE c (id int PRIMARY KEY, n bigint NOT NULL)").await.unwrap();
    client.batch_execute("INSERT INTO c VALUES (1, 0)").await.unwrap();
    let add = client.prepare("UPDATE c SET n = n + 1 WHERE id = 1 RETURNING n").await.unwrap();
    let read = client.prepare("SELECT n FROM c WHERE id = 1").await.unwrap();
    let mut writes = Vec::new();
    let mut reads = Vec::new();
    for _ in 0..500 {
        // The requests are written when they are first polled, in this order.
        let (own, statement) = (client.clone(), add.clone());
        writes.push(tokio::spawn(async move { own.query_one(&statement, &[]).await }));
        let (own, statement) = (client.clone(), read.clone());
        reads.push(tokio::spawn(async move { own.query_one(&statement, &[]).await }));
    }
    let mut last = 0;
    for (write, read) in writes.into_iter().zip(reads) {
        let written: i64 = write.await.unwrap().unwrap().get(0);
        let seen: i64 = read.await.unwrap().unwrap().get(0);
        assert!(written > last, "{written} after {last}");
        assert!(seen >= written, "{seen} read behind {written}");
        last = written;
    }
    assert_eq!(last, 500);
}

#[tokio::test]
async fn a_driver_has_its_transactions_and_savepoints() {
    let server = Server::start();
    let mut client = connect(&server).await;
    client.batch_execute("CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL)").await.unwrap();
    let insert = client.prepare("INSERT INTO a VALUES ($1, $2)").await.unwrap();
    let mut block = client.transaction().await.unwrap();
    assert_eq!(block.execute(&insert, &[&1, &10]).await.unwrap(), 1);
    let inner = block.transaction().await.unwrap();
    assert_eq!(inner.execute(&insert, &[&2, &20]).await.unwrap(), 1);
    let twice = inner.execute(&insert, &[&1, &30]).await.unwrap_err();
    assert_eq!(twice.code(), Some(&SqlState::UNIQUE_VIOLATION));
    inner.rollback().await.unwrap();
    assert_eq!(block.execute(&insert, &[&3, &30]).await.unwrap(), 1);
    let sum: i64 = block.query_one("SELECT sum(n) FROM a", &[]).await.unwrap().get(0);
    assert_eq!(sum, 40);
    block.commit().await.unwrap();
    let block = client.transaction().await.unwrap();
    block.execute("DELETE FROM a", &[]).await.unwrap();
    drop(block);
    assert_eq!(text(&client, "SELECT id FROM a ORDER BY id").await.len(), 2);
    let block = client.build_transaction().read_only(true).start().await.unwrap();
    let refused = block.execute(&insert, &[&9, &9]).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
}

#[tokio::test]
async fn rows_are_copied_in_binary() {
    use futures_util::TryStreamExt;
    use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
    let server = Server::start();
    let client = connect(&server).await;
    client.batch_execute("CREATE TABLE c (id bigint PRIMARY KEY, t text)").await.unwrap();
    let types = [Type::INT8, Type::TEXT];
    let sink = client.copy_in("COPY c FROM STDIN (FORMAT binary)").await.unwrap();
    let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
    for id in 0..3_000_i64 {
        let text = (id % 3 != 0).then(|| format!("row {id}"));
        writer.as_mut().write(&[&id, &text]).await.unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), 3_000);
    let out = client.copy_out("COPY c TO STDOUT (FORMAT binary)").await.unwrap();
    let rows: Vec<_> = BinaryCopyOutStream::new(out, &types).try_collect().await.unwrap();
    assert_eq!(rows.len(), 3_000);
    assert_eq!(rows[2_999].get::<i64>(0), 2_999);
    assert_eq!(rows[2_997].get::<Option<&str>>(1), None);
    assert_eq!(rows[1].get::<Option<&str>>(1), Some("row 1"));
}

/// A definition with parameters and rows, in a block and outside.
#[tokio::test]
async fn a_sequence_goes_on_from_a_parameter() {
    let server = Server::start();
    let mut client = connect(&server).await;
    client.batch_execute("CREATE TABLE t (id serial PRIMARY KEY, a int)").await.unwrap();
    let set = "SELECT setval('t_id_seq', $1, $2) AS now";
    let row = client.query_one(set, &[&41_i64, &true]).await.unwrap();
    assert_eq!((row.columns()[0].name(), row.get::<_, i64>(0)), ("now", 41));
    let insert = "INSERT INTO t (a) VALUES (1) RETURNING id";
    assert_eq!(client.query_one(insert, &[]).await.unwrap().get::<_, i32>(0), 42);
    let block = client.transaction().await.unwrap();
    block.query_one(set, &[&100_i64, &false]).await.unwrap();
    assert_eq!(block.query_one(insert, &[]).await.unwrap().get::<_, i32>(0), 100);
    block.rollback().await.unwrap();
    assert_eq!(client.query_one(insert, &[]).await.unwrap().get::<_, i32>(0), 43);
    let block = client.transaction().await.unwrap();
    block.query_one(insert, &[]).await.unwrap();
    block.query_one(set, &[&200_i64, &true]).await.unwrap();
    block.commit().await.unwrap();
    assert_eq!(client.query_one(insert, &[]).await.unwrap().get::<_, i32>(0), 201);
    let largest = "SELECT setval('t_id_seq', max(id) + $1) FROM t WHERE id < $2";
    let row = client.query_one(largest, &[&1_i32, &200_i32]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 45);
    assert_eq!(client.query_one(insert, &[]).await.unwrap().get::<_, i32>(0), 46);
    let read_only = client.build_transaction().read_only(true).start().await.unwrap();
    let error = read_only.query_one(set, &[&1_i64, &true]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "25006");
}

/// A label of an enum, whose type the driver asks the catalog for.
#[derive(Debug, PartialEq)]
struct Label(String);

type Failed = Box<dyn std::error::Error + Sync + Send>;

fn has_label(ty: &Type, label: &str) -> bool {
    matches!(ty.kind(), Kind::Enum(labels) if labels.iter().any(|own| own == label))
}

impl ToSql for Label {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        assert!(has_label(ty, &self.0), "{ty:?} {self:?}");
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Enum(_))
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Label {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Label, Failed> {
        let label = std::str::from_utf8(raw)?;
        assert!(has_label(ty, label), "{ty:?} {label}");
        Ok(Label(label.to_owned()))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Enum(_))
    }
}

#[tokio::test]
async fn enums_come_back_as_they_went() {
    let server = Server::start();
    let client = connect(&server).await;
    let definitions = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); \
                       CREATE TABLE p (m mood PRIMARY KEY, n mood[])";
    client.batch_execute(definitions).await.unwrap();
    let label = |text: &str| Label(text.to_owned());
    let insert = client.prepare("INSERT INTO p VALUES ($1, $2)").await.unwrap();
    let all = vec![Some(label("happy")), None];
    client.execute(&insert, &[&label("ok"), &all]).await.unwrap();
    client.execute(&insert, &[&label("sad"), &None::<Vec<Label>>]).await.unwrap();
    let query = "SELECT m, n FROM p WHERE m > $1 ORDER BY m";
    let row = client.query_one(query, &[&label("sad")]).await.unwrap();
    assert_eq!(row.get::<_, Label>(0), label("ok"));
    assert_eq!(row.get::<_, Vec<Option<Label>>>(1), all);
    // A statement that was prepared before takes labels that came later.
    client.batch_execute("ALTER TYPE mood ADD VALUE 'great' AFTER 'ok'").await.unwrap();
    let other = connect(&server).await;
    other.execute("INSERT INTO p VALUES ($1, '{great}')", &[&label("great")]).await.unwrap();
    let again = client.execute("UPDATE p SET m = 'happy' WHERE m = 'great'", &[]).await.unwrap();
    assert_eq!(again, 1);
    assert_eq!(text(&client, "SELECT max(m) FROM p").await, [Some("happy".to_owned())]);
}
