//! Texts whose trees are as deep as the limits allow, and deeper, are answered: what a session does
//! with a statement beside planning it calls nothing for each level of the tree on its own stack.

use crate::rules::RULES;
use crate::support::{Server, query};

#[test]
fn statements_as_deep_as_the_limits_allow_are_answered() {
    let server = Server::start();
    server.client().query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    for rule in RULES {
        for count in [49, 1_300, 3_950] {
            let mut client = server.client();
            client.send(&query(&rule.text(count)));
            let last = client.until_ready().pop();
            let is_answered = last.is_some_and(|said| said.kind == b'Z');
            assert!(is_answered, "{} times {count}", rule.name());
        }
    }
    server.works();
}
