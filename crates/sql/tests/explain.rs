//! What EXPLAIN says of plans: how rows are found, joined, grouped and sorted.

mod session;

use session::Session;
use sql::bind::Options;
use sql::{explain, parse, prepare};

/// Compares the lines of a statement's plan.
fn check(text: &str, expected: &[&str]) {
    let mut session = Session::new();
    for definition in [
        "CREATE TABLE customer (id int PRIMARY KEY, name text, city text)",
        "CREATE INDEX customer_city ON customer (city, name)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customer, total int)",
        "CREATE VIEW parisian AS SELECT id, name FROM customer WHERE city = 'Paris'",
    ] {
        session.run(definition).unwrap();
    }
    let statement = parse::parse(&format!("EXPLAIN {text}")).unwrap().remove(0);
    let inner = statement.explained().unwrap().unwrap();
    let plan = prepare(&session.catalog, &inner, &Options::default()).unwrap().plan;
    assert_eq!(explain(&session.catalog, &plan), expected, "{text}");
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
