//! What EXPLAIN says of plans: how rows are found, joined, grouped and sorted.

mod session;

use session::Session;
use sql::bind::Options;
use sql::{Measured, explain, parse, prepare};
use std::time::Duration;

const DEFINITIONS: [&str; 9] = [
    "CREATE TABLE customer (id int PRIMARY KEY, name text, city text)",
    "CREATE INDEX customer_city ON customer (city, name)",
    "CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customer, total int)",
    "CREATE TABLE account (id int PRIMARY KEY, email text, rank int, gone date)",
    "CREATE UNIQUE INDEX account_email ON account (lower(email)) WHERE gone IS NULL",
    "CREATE INDEX account_rank ON account (rank) WHERE rank > 10",
    "CREATE INDEX account_sum ON account ((rank + id))",
    "CREATE INDEX account_named ON account (rank) WHERE email IS NOT NULL AND gone IS NULL",
    "CREATE VIEW parisian AS SELECT id, name FROM customer WHERE city = 'Paris'",
];

/// The lines of a statement's plan.
fn lines(text: &str) -> Vec<String> {
    rows(text, None)
}

/// The rows of EXPLAIN's answer, where a run came to this.
fn rows(text: &str, measured: Option<Measured>) -> Vec<String> {
    let mut session = Session::new();
    for definition in DEFINITIONS {
        session.run(definition).unwrap();
    }
    let statement = parse::parse(&format!("EXPLAIN {text}")).unwrap().remove(0);
    let (asked, inner) = statement.explained().unwrap().unwrap();
    let plan = prepare(&session.catalog, &inner, &Options::default()).unwrap().plan;
    explain(&session.catalog, &plan).rows(&asked, Duration::from_micros(1_500), measured)
}

/// Compares the lines of a statement's plan.
fn check(text: &str, expected: &[&str]) {
    assert_eq!(lines(text), expected, "{text}");
}

#[test]
fn rows_of_one_table() {
    check("SELECT 1", &["Result"]);
    check("SELECT * FROM customer", &["Seq Scan on customer"]);
    check(
        "SELECT * FROM customer WHERE id = 7 AND name <> 'x'",
        &[
            "Index Scan using customer_pkey on customer",
            "  Index Cond: (id = 7)",
            "  Filter: ((id = 7) AND (name <> 'x'::text))",
        ],
    );
}

/// How the rows of table `account` with a condition are found.
fn check_account(condition: &str, index: Option<(&str, &str)>) {
    let lines = lines(&format!("SELECT id FROM account WHERE {condition}"));
    let found = match index {
        None => lines[0] == "Seq Scan on account",
        Some((name, "")) => lines[0] == format!("Index Scan using {name} on account"),
        Some((name, condition)) => {
            lines[0] == format!("Index Scan using {name} on account")
                && lines[1] == format!("  Index Cond: ({condition})")
        }
    };
    assert!(found, "{condition}: {lines:?}");
}

#[test]
fn partial_indexes_are_used_where_they_have_all_rows() {
    let email = "lower(email) = 'x'::text";
    check_account("lower(email) = 'x' AND gone IS NULL", Some(("account_email", email)));
    check_account("gone IS NULL AND id > 0 AND 'x' = lower(email)", Some(("account_email", email)));
    check_account("lower(email) = 'x'", None);
    check_account("lower(email) = 'x' AND gone IS NOT NULL", None);
    check_account("lower(email) = 'x' OR gone IS NULL", None);
    check_account("rank = 5 AND email > 'x' AND gone IS NULL", Some(("account_named", "rank = 5")));
    check_account("rank = 5 AND gone IS NULL", Some(("account_email", "")));
    check_account("gone IS NULL", Some(("account_email", "")));
    check_account("rank = 11", Some(("account_rank", "rank = 11")));
    check_account("rank > 20 AND rank < 30", Some(("account_rank", "rank > 20 AND rank < 30")));
    check_account("rank = 10", None);
    check_account("rank >= 10", None);
    check_account("rank > $1", None);
    check_account("rank > $1 AND rank > 10", Some(("account_rank", "rank > $1")));
}

#[test]
fn indexes_over_expressions_are_used_for_equal_ones() {
    check_account("rank + id = 7", Some(("account_sum", "(rank + id) = 7")));
    check_account("rank + id >= $1", Some(("account_sum", "(rank + id) >= $1")));
    check_account("id + rank = 7", None);
    check_account("rank + id + 1 = 7", None);
    check_account("rank = 7 - id", None);
}

#[test]
fn parts_that_write_are_below_the_statement() {
    check(
        "WITH gone AS (DELETE FROM orders WHERE id = 1 RETURNING total) SELECT * FROM gone",
        &[
            "CTE Scan on part 1",
            "  ->  CTE 1",
            "        ->  Delete on orders",
            "              ->  Index Scan using orders_pkey on orders",
            "                    Index Cond: (id = 1)",
            "                    Filter: (id = 1)",
        ],
    );
}

#[test]
fn joins_groups_and_orders() {
    check(
        "SELECT city, count(*) FROM customer WHERE city >= 'M' GROUP BY city ORDER BY 2 LIMIT 3",
        &[
            "Limit",
            "  ->  Sort",
            "        Sort Key: count(*)",
            "        ->  HashAggregate",
            "              Group Key: city",
            "              ->  Index Scan using customer_city on customer",
            "                    Index Cond: (city >= 'M'::text)",
            "                    Filter: (city >= 'M'::text)",
        ],
    );
    check(
        "SELECT c.name, o.total FROM customer c JOIN orders o ON o.customer_id = c.id",
        &[
            "Nested Loop",
            "  Filter: (orders.customer_id = customer.id)",
            "  ->  Seq Scan on customer",
            "  ->  Index Scan using orders_customer_id_fkey_idx on orders",
            "        Index Cond: (customer_id = customer.id)",
        ],
    );
    // Expressions of one table that equal some of others are hashed, as columns are.
    check(
        "SELECT 1 FROM customer c JOIN (SELECT total + 1 AS next FROM orders) o \
         ON o.next = c.id * 2",
        &[
            "Hash Join",
            "  Hash Cond: ((customer.id * 2) = (orders.total + 1))",
            "  ->  Seq Scan on customer",
            "  ->  Seq Scan on orders",
        ],
    );
    check(
        "SELECT name FROM parisian WHERE id < 9 UNION ALL SELECT 'x'",
        &[
            "Append",
            "  ->  Index Scan using customer_city on customer",
            "        Index Cond: (city = 'Paris'::text)",
            "        Filter: ((city = 'Paris'::text) AND (id < 9))",
            "  ->  Result",
        ],
    );
    check(
        "SELECT name, (SELECT max(total) FROM orders) FROM customer ORDER BY name DESC",
        &[
            "Sort",
            "  Sort Key: name DESC",
            "  ->  Seq Scan on customer",
            "        ->  SubPlan 1",
            "              ->  Aggregate",
            "                    ->  Seq Scan on orders",
        ],
    );
}

#[test]
fn statements_that_write() {
    check(
        "INSERT INTO customer VALUES (1, 'x', 'y') ON CONFLICT DO NOTHING",
        &["Insert on customer", "  Conflict Resolution: NOTHING", "  ->  Result"],
    );
    check(
        "UPDATE customer SET name = 'y' WHERE city = 'Paris'",
        &[
            "Update on customer",
            "  ->  Index Scan using customer_city on customer",
            "        Index Cond: (city = 'Paris'::text)",
            "        Filter: (city = 'Paris'::text)",
        ],
    );
    check(
        "DELETE FROM orders WHERE id > 7",
        &[
            "Delete on orders",
            "  ->  Index Scan using orders_pkey on orders",
            "        Index Cond: (id > 7)",
            "        Filter: (id > 7)",
        ],
    );
}

#[test]
fn options_are_those_of_postgresql() {
    let state = |text: &str| {
        let found = parse::parse(text).unwrap()[0].explained();
        found.map_or_else(|error| error.state().code().to_owned(), |_| "ok".to_owned())
    };
    assert_eq!(state("EXPLAIN (COSTS OFF, VERBOSE, BUFFERS, SETTINGS, SUMMARY) SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN (ANALYZE false, FORMAT text) SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN ANALYZE VERBOSE SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN (ANALYZE, TIMING off, WAL) SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN (FORMAT json) SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN (FORMAT 'yaml') SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN (FORMAT xml) SELECT 1"), "0A000");
    assert_eq!(state("EXPLAIN (FORMAT other) SELECT 1"), "22023");
    assert_eq!(state("EXPLAIN (TIMING) SELECT 1"), "22023");
    assert_eq!(state("EXPLAIN (WAL) SELECT 1"), "22023");
    assert_eq!(state("EXPLAIN (ANALYZE 2) SELECT 1"), "42601");
    assert_eq!(state("EXPLAIN (NOTHING) SELECT 1"), "42601");
}

#[test]
fn a_run_is_shown() {
    let measured = Measured { rows: 3, time: Duration::from_micros(2_050), steps: Some(7) };
    let shown = rows("(ANALYZE, SUMMARY off, TIMING off) SELECT * FROM customer", Some(measured));
    assert_eq!(shown, ["Seq Scan on customer (actual rows=3 loops=1)"]);
    let shown = rows("ANALYZE SELECT * FROM customer", Some(measured));
    assert_eq!(
        shown,
        [
            "Seq Scan on customer (actual time=0.000..2.050 rows=3 loops=1)",
            "Planning Time: 1.500 ms",
            "Steps: 7",
            "Execution Time: 2.050 ms",
        ]
    );
}

#[test]
fn plans_are_values_of_json_and_yaml() {
    let text = "SELECT name FROM customer WHERE id > 7 AND name <> '\"' ORDER BY name DESC, city";
    let json = "[
  {
    \"Plan\": {
      \"Node Type\": \"Sort\",
      \"Sort Key\": [
        \"name DESC\",
        \"city\"
      ],
      \"Plans\": [
        {
          \"Node Type\": \"Index Scan\",
          \"Scan Direction\": \"Forward\",
          \"Index Name\": \"customer_pkey\",
          \"Relation Name\": \"customer\",
          \"Index Cond\": \"(id > 7)\",
          \"Filter\": \"((id > 7) AND (name <> '\\\"'::text))\"
        }
      ]
    }
  }
]";
    assert_eq!(rows(&format!("(FORMAT JSON) {text}"), None), [json]);
    // PostgreSQL leaves a blank behind the name of what has lines of its own.
    let yaml = [
        "- Plan: ",
        "    Node Type: \"Aggregate\"",
        "    Strategy: \"Hashed\"",
        "    Actual Rows: 3",
        "    Actual Loops: 1",
        "    Group Key: ",
        "      - \"city\"",
        "    Plans: ",
        "      - Node Type: \"Seq Scan\"",
        "        Relation Name: \"customer\"",
        "  Planning Time: 1.500",
        "  Triggers: ",
        "  Execution Time: 2.000",
    ];
    let measured = Measured { rows: 3, time: Duration::from_millis(2), steps: None };
    let text = "(FORMAT YAML, ANALYZE, TIMING false) SELECT city FROM customer GROUP BY city";
    assert_eq!(rows(text, Some(measured)), [yaml.join("\n")]);
}

#[test]
fn conditions_of_inner_queries_and_joins_are_shown() {
    check(
        "WITH c AS MATERIALIZED (SELECT city, count(*) AS n FROM customer GROUP BY city) \
         SELECT * FROM c WHERE n > 3",
        &[
            "HashAggregate",
            "  Group Key: city",
            "  Filter: (count(*) > 3)",
            "  ->  Seq Scan on customer",
        ],
    );
    check(
        "SELECT * FROM customer c WHERE EXISTS (SELECT FROM orders o \
         WHERE o.total > c.id + 1)",
        &[
            "Seq Scan on customer",
            "  Filter: (EXISTS(SubPlan 1))",
            "  ->  SubPlan 1",
            "        ->  Seq Scan on orders",
            "              Filter: (total > (customer.id + 1))",
        ],
    );
    check(
        "SELECT * FROM customer c JOIN orders o ON o.total = c.id + 1 AND o.id > c.id",
        &[
            "Hash Join",
            "  Hash Cond: ((customer.id + 1) = orders.total)",
            "  Filter: (orders.id > customer.id)",
            "  ->  Seq Scan on customer",
            "  ->  Seq Scan on orders",
        ],
    );
}

/// Compares the first lines of a statement's plan, below LIMIT and what writes.
fn check_found(text: &str, expected: &[&str]) {
    let lines = lines(text);
    let is_above = |line: &&String| {
        let above = ["Limit", "Update on", "Delete on", "Foreign Keys"];
        above.iter().any(|above| line.trim_start().starts_with(above))
    };
    let begin = lines.iter().take_while(is_above).count();
    let found = lines[begin..].iter().map(|line| line.trim_start().trim_start_matches("->  "));
    let found: Vec<&str> = found.take(expected.len()).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn text_that_begins_with_constants_is_a_range() {
    let by = "Index Scan using customer_city on customer";
    let condition = "Index Cond: (city >= 'Pa'::text AND city < 'Pb'::text)";
    check_found("SELECT * FROM customer WHERE city LIKE 'Pa%s'", &[by, condition]);
    check_found("DELETE FROM customer WHERE city LIKE 'Pa_'", &[by, condition]);
    let condition = "Index Cond: (city = 'P%'::text AND name >= 'x'::text AND name < 'y'::text)";
    check_found(
        r"SELECT * FROM customer WHERE city LIKE 'P\%' AND name LIKE 'x%'",
        &[by, condition],
    );
    check_found("SELECT * FROM customer WHERE city LIKE '%Pa'", &["Seq Scan on customer"]);
    check_found("SELECT * FROM customer WHERE city ILIKE 'Pa%'", &["Seq Scan on customer"]);
    check_found("SELECT * FROM customer WHERE city NOT LIKE 'Pa%'", &["Seq Scan on customer"]);
}

#[test]
fn several_values_are_looked_up() {
    let by = "Index Scan using customer_pkey on customer";
    let check = |condition: &str, found: &str, shown: &str| {
        for text in [
            format!("SELECT * FROM customer WHERE {condition}"),
            format!("UPDATE customer SET name = 'x' WHERE {condition}"),
            format!("DELETE FROM customer WHERE {condition}"),
        ] {
            check_found(&text, &[found, &format!("Index Cond: ({shown})")]);
        }
    };
    check("id IN (1, 2)", by, "id = ANY (ARRAY[1, 2])");
    check("id = ANY ($1)", by, "id = ANY ($1)");
    check("id = 1 OR 2 = id", by, "(id = 1) OR (2 = id)");
    check("id = $1::bigint", by, "id = $1");
    check("id IN (SELECT total FROM orders)", by, "id = ANY (SubPlan 1)");
    let by = "Index Scan using customer_city on customer";
    let two = "((city = 'a'::text) AND (name = 'b'::text)) OR ((city = 'c'::text) AND (name = \
               'd'::text))";
    check("(city, name) IN (('a', 'b'), ('c', 'd'))", by, two);
    let prefix = "city = ANY (ARRAY['a'::text, 'b'::text]) AND name > 'c'::text";
    check("city IN ('a', 'b') AND name > 'c'", by, prefix);
    check_account("rank IN (3, 4)", None);
    check_account("lower(email) IN ('x', 'y') AND gone IS NULL", Some(("account_email", "")));
    check_found("SELECT * FROM customer WHERE id NOT IN (1, 2)", &["Seq Scan on customer"]);
    check_found("SELECT * FROM customer WHERE id = 1 OR name = 'x'", &["Seq Scan on customer"]);
    check_found("SELECT * FROM customer WHERE id::text = '1'", &["Seq Scan on customer"]);
    check_found("SELECT * FROM customer WHERE id::smallint = 1", &["Seq Scan on customer"]);
}

#[test]
fn tables_that_are_written_are_looked_up_by_rows_of_others() {
    let orders = "Index Scan using orders_pkey on orders";
    check(
        "UPDATE orders SET total = n FROM (VALUES (1, 2), (3, 4)) v (k, n) WHERE id = k",
        &[
            "Update on orders",
            "  ->  Nested Loop",
            "        Filter: (orders.id = column1)",
            "        ->  Values Scan",
            &format!("        ->  {orders}"),
            "              Index Cond: (id = column1)",
        ],
    );
    check(
        "WITH c AS (SELECT id FROM orders WHERE customer_id = 5 ORDER BY id LIMIT 1 FOR UPDATE) \
         DELETE FROM orders USING c WHERE orders.id = c.id",
        &[
            "Delete on orders",
            "  ->  Nested Loop",
            "        ->  Limit",
            "              ->  LockRows",
            "                    ->  Index Scan using orders_customer_id_fkey_idx on orders",
            "                          Index Cond: (customer_id = 5)",
            "                          Filter: (customer_id = 5)",
            &format!("        ->  {orders}"),
            "              Index Cond: (id = ...)",
        ],
    );
    // What is skipped is no condition that a statement has.
    check(
        "SELECT name FROM customer WHERE city = 'a' AND name > 'b' ORDER BY id LIMIT 1 \
         FOR UPDATE SKIP LOCKED",
        &[
            "Limit",
            "  ->  LockRows",
            "        ->  Index Scan using customer_city on customer",
            "              Index Cond: (city = 'a'::text AND name > 'b'::text)",
            "              Filter: ((city = 'a'::text) AND (name > 'b'::text))",
        ],
    );
}

#[test]
fn orders_and_ends_are_those_of_keys() {
    let ordered = |rest: &str, expected: &str| {
        check_found(&format!("SELECT * FROM customer {rest}"), &[expected]);
    };
    ordered("ORDER BY id LIMIT 5", "Index Scan using customer_pkey on customer");
    ordered("ORDER BY id DESC", "Index Scan Backward using customer_pkey on customer");
    ordered("ORDER BY city, name LIMIT $1", "Index Scan using customer_city on customer");
    ordered("ORDER BY city, id LIMIT 1", "Index Scan using customer_city on customer");
    ordered("ORDER BY city DESC LIMIT 1", "Index Scan Backward using customer_city on customer");
    ordered("WHERE city = 'x' ORDER BY name", "Index Scan using customer_city on customer");
    // To read all rows by another key takes longer than to sort them.
    ordered("ORDER BY city", "Sort");
    ordered("ORDER BY city NULLS FIRST LIMIT 1", "Sort");
    ordered("ORDER BY city, name DESC LIMIT 1", "Sort");
    ordered("WHERE id = 7 ORDER BY name", "Index Scan using customer_pkey on customer");
    let join = "JOIN orders o ON o.customer_id = customer.id";
    ordered(&format!("{join} ORDER BY customer.id LIMIT 1"), "Nested Loop");
    ordered(&format!("{join} ORDER BY customer.city LIMIT 1"), "Nested Loop");
    ordered(&format!("{join} ORDER BY o.id LIMIT 1"), "Sort");
    check(
        "SELECT max(id) FROM customer",
        &[
            "Aggregate",
            "  ->  Limit",
            "        ->  Index Scan Backward using customer_pkey on customer",
        ],
    );
    check_found("SELECT min(id), max(city) FROM customer", &["Nested Loop"]);
    check_found("SELECT max(name) FROM customer", &["Aggregate", "Seq Scan on customer"]);
    let page = "SELECT * FROM customer WHERE (city, name) > ($1, $2) ORDER BY city, name LIMIT 9";
    let by = "Index Scan using customer_city on customer";
    check_found(page, &[by, "Index Cond: ((city, name) > ($1, $2))"]);
    let page = "SELECT * FROM customer WHERE id > 5 OR id = 5 AND name > 'x' ORDER BY id LIMIT 9";
    let by = "Index Scan using customer_pkey on customer";
    check_found(page, &[by, "Index Cond: (id >= 5)"]);
}

#[test]
fn rows_that_exist_are_looked_up_or_in_a_set() {
    let text = "SELECT 1 FROM customer c WHERE NOT EXISTS \
                (SELECT FROM orders o WHERE o.customer_id = c.id)";
    check(
        text,
        &[
            "Seq Scan on customer",
            "  Filter: (NOT EXISTS(SubPlan 1))",
            "  ->  SubPlan 1",
            "        ->  Index Scan using orders_customer_id_fkey_idx on orders",
            "              Index Cond: (customer_id = customer.id)",
            "              Filter: (customer_id = customer.id)",
        ],
    );
    // No index is of these: the set has each value once.
    check(
        "SELECT 1 FROM customer c WHERE EXISTS (SELECT FROM orders WHERE total = length(c.name))",
        &[
            "Seq Scan on customer",
            "  Filter: ((length(name) = ANY (SubPlan 1)) IS TRUE)",
            "  ->  SubPlan 1",
            "        ->  Unique",
            "              ->  Seq Scan on orders",
            "                    Filter: (total IS NOT NULL)",
        ],
    );
    // The set leads to the rows of a key.
    check_found(
        "DELETE FROM orders WHERE EXISTS (SELECT FROM account WHERE account.rank = orders.id)",
        &["Index Scan using orders_pkey on orders", "Index Cond: ((id = ANY (SubPlan 1)) IS TRUE)"],
    );
    check(
        "SELECT 1 FROM customer c WHERE name IN \
         (SELECT o.total::text FROM orders o WHERE o.customer_id = c.id)",
        &[
            "Seq Scan on customer",
            "  Filter: (EXISTS(SubPlan 1))",
            "  ->  SubPlan 1",
            "        ->  Index Scan using orders_customer_id_fkey_idx on orders",
            "              Index Cond: (customer_id = customer.id)",
            "              Filter: ((customer_id = customer.id) AND ((total)::text = \
             customer.name))",
        ],
    );
}

/// The steps of a statement in a table of 20,000 rows; `get` is a look-up of one row.
#[test]
fn statements_read_the_rows_of_their_keys_and_no_others() {
    let mut session = Session::new();
    for text in [
        "CREATE TABLE job (id int PRIMARY KEY, state text, rank int, at timestamp)",
        "CREATE INDEX job_rank ON job (rank DESC, id) WHERE state = 'ready'",
        "CREATE INDEX job_at ON job (at)",
        "INSERT INTO job SELECT n, CASE WHEN n % 2 = 0 THEN 'ready' ELSE 'done' END, n % 3, \
         timestamp '2024-01-01' + n % 100 * interval '1 hour' FROM generate_series(1, 20000) n",
    ] {
        session.run(text).unwrap();
    }
    let mut steps = |text: &str| {
        session.run(text).unwrap();
        session.memory.steps_done()
    };
    let get = steps("SELECT * FROM job WHERE id = 77");
    let list: Vec<String> = (1..=100).map(|n| (n * 190).to_string()).collect();
    let list = list.join(", ");
    let found = steps(&format!("SELECT * FROM job WHERE id IN ({list})"));
    assert!(found <= 200 * get, "{found} steps, where one row takes {get}");
    for (text, most) in [
        (format!("SELECT * FROM job WHERE id = ANY ('{{{list}}}'::int[])"), 200 * get),
        ("SELECT * FROM job ORDER BY id LIMIT 5".to_owned(), 100),
        ("SELECT * FROM job ORDER BY id DESC LIMIT 5".to_owned(), 100),
        ("SELECT * FROM job ORDER BY at DESC LIMIT 5".to_owned(), 500),
        ("SELECT * FROM job LIMIT 5".to_owned(), 100),
        ("SELECT min(id), max(id), max(at) FROM job".to_owned(), 500),
        (
            "SELECT * FROM job WHERE (at, id) > ('2024-01-02', 9999) ORDER BY at, id LIMIT 5"
                .to_owned(),
            200,
        ),
        ("SELECT id FROM job WHERE state = 'ready' ORDER BY rank DESC, id LIMIT 1".to_owned(), 50),
        ("SELECT id FROM job WHERE state = 'ready' ORDER BY rank LIMIT 1".to_owned(), 50),
        (
            "SELECT count(*) FROM generate_series(1, 100) n WHERE EXISTS \
             (SELECT FROM job WHERE state || id = 'x' || n)"
                .to_owned(),
            500_000,
        ),
        ("DELETE FROM job WHERE id IN (SELECT n FROM generate_series(5, 8) n)".to_owned(), 500),
        ("UPDATE job SET state = 'x' FROM (VALUES (3), (4)) v (k) WHERE id = k".to_owned(), 500),
        (
            "UPDATE job SET state = 'done' WHERE id = (SELECT id FROM job WHERE state = 'ready' \
          ORDER BY rank DESC, id LIMIT 1)"
                .to_owned(),
            200,
        ),
    ] {
        let found = steps(&text);
        assert!(found <= most, "{found} steps: {text}");
    }
}
