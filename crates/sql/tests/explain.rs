//! What EXPLAIN says of plans: how rows are found, joined, grouped and sorted.

mod session;

use session::Session;
use sql::bind::Options;
use sql::{explain, parse, prepare};

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
    let mut session = Session::new();
    for definition in DEFINITIONS {
        session.run(definition).unwrap();
    }
    let statement = parse::parse(&format!("EXPLAIN {text}")).unwrap().remove(0);
    let inner = statement.explained().unwrap().unwrap();
    let plan = prepare(&session.catalog, &inner, &Options::default()).unwrap().plan;
    explain(&session.catalog, &plan)
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
            "  ->  Seq Scan on customer",
            "  ->  Index Scan using orders_customer_id_fkey_idx on orders",
            "        Index Cond: (customer_id = ...)",
        ],
    );
    // Expressions of one table that equal some of others are hashed, as columns are.
    check(
        "SELECT 1 FROM customer c JOIN (SELECT total + 1 AS next FROM orders) o \
         ON o.next = c.id * 2",
        &["Hash Join", "  ->  Seq Scan on customer", "  ->  Seq Scan on orders"],
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
            "        ->  SubPlan",
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
fn what_is_not_measured_is_refused() {
    let state = |text: &str| {
        let found = parse::parse(text).unwrap()[0].explained();
        found.map_or_else(|error| error.state().code().to_owned(), |_| "ok".to_owned())
    };
    assert_eq!(state("EXPLAIN (COSTS OFF, VERBOSE) SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN (ANALYZE false, FORMAT text) SELECT 1"), "ok");
    assert_eq!(state("EXPLAIN ANALYZE SELECT 1"), "0A000");
    assert_eq!(state("EXPLAIN (ANALYZE) SELECT 1"), "0A000");
    assert_eq!(state("EXPLAIN (FORMAT json) SELECT 1"), "0A000");
    assert_eq!(state("EXPLAIN (NOTHING) SELECT 1"), "42601");
}
