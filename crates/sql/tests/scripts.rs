//! Each script runs with the access path that the planner chooses and with every other one forced:
//! answers and the rows of the store must be the same.

mod random;
mod script;
mod session;

use script::{Target, run_script, scripts};
use session::Session;
use sql::bind::Choice;
use sql::ir::Space;

impl Target for Session {
    fn rows(&mut self, text: &str) -> values::Result<Vec<Vec<String>>> {
        self.run(text).map(|answer| answer.rows)
    }

    fn state(&self) -> Vec<(Space, Vec<u8>, Vec<u8>)> {
        Session::state(self)
    }
}

/// The ways to run a script. Those of equality and names are long, and differ by whether there is a
/// look-up or a map at all; that of casts has no rows.
fn choices(name: &str) -> Vec<Choice> {
    if name.starts_with("casts.") {
        return vec![Choice::Best];
    }
    if name.starts_with("equality_") || name.starts_with("names_") {
        return vec![Choice::Best, Choice::Loop];
    }
    let keys = (0..3).map(Choice::Only);
    [Choice::Best, Choice::Scan, Choice::Loop, Choice::Backward].into_iter().chain(keys).collect()
}

#[test]
fn scripts_have_their_answers_by_every_access_path() {
    for (name, script) in scripts() {
        let mut states = Vec::new();
        for choice in choices(&name) {
            let mut session = Session::new();
            session.choice = choice;
            session = run_script(&format!("{name} ({choice:?})"), &script, session);
            let reopened = session.reopened();
            let tables = |catalog: &sql::catalog::Catalog| -> Vec<_> {
                catalog.tables().map(|table| (**table).clone()).collect()
            };
            assert_eq!(tables(&reopened), tables(&session.catalog));
            let views = |catalog: &sql::catalog::Catalog| -> Vec<_> {
                catalog.views().map(|view| (**view).clone()).collect()
            };
            assert_eq!(views(&reopened), views(&session.catalog));
            let comments = |catalog: &sql::catalog::Catalog| -> Vec<_> {
                catalog.comments().map(|comment| (**comment).clone()).collect()
            };
            assert_eq!(comments(&reopened), comments(&session.catalog));
            states.push(session.state());
        }
        assert!(
            states.windows(2).all(|pair| pair[0] == pair[1]),
            "{name}: rows differ by access path"
        );
    }
}
