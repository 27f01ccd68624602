//! The list of steps that a scenario is, and how a statement is sent.

use super::dice::Dice;
use super::statement::{Extended, Sending, Statement, Step};

/// What a seed makes.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Script {
    pub(crate) topic: &'static str,
    pub(crate) steps: Vec<Step>,
    /// Names of tables whose contents count at the end.
    pub(crate) tables: Vec<String>,
}

impl Script {
    /// Adds a statement by the simple protocol.
    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.steps.push(Step::simple(Statement::text(text)));
    }

    /// Adds a statement by one of the protocols.
    pub(crate) fn push(&mut self, dice: &mut Dice, statement: Statement) {
        let sending = sending(dice, &statement);
        self.steps.push(Step { statements: vec![statement], sending });
    }

    /// Takes row limits and portals that run again out of the scenario.
    pub(crate) fn without_limits(&mut self) {
        for step in &mut self.steps {
            if let Sending::Extended(choices) = &mut step.sending {
                (choices.rows_max, choices.again) = (0, 0);
            }
        }
    }

    /// Names tables whose contents count at the end.
    pub(crate) fn tables_by_name(&mut self, names: &[&str]) {
        self.tables = names.iter().map(|name| (*name).to_owned()).collect();
    }
}

/// How a statement is sent: where each constant stands once, as parameters, too.
fn sending(dice: &mut Dice, statement: &Statement) -> Sending {
    let text = statement.tree.to_sql();
    let is_definition = ["CREATE", "ALTER", "DROP"].iter().any(|word| text.starts_with(word));
    let repeats = ["GROUP BY", "DISTINCT ON"].iter().any(|word| text.contains(word));
    if is_definition || repeats || dice.one_in(2) {
        return Sending::Simple;
    }
    Sending::Extended(Extended {
        are_parameters_binary: dice.one_in(2),
        are_results_binary: dice.one_in(3),
        rows_max: *dice.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 10]),
        again: *dice.pick(&[0, 0, 0, 0, 0, 0, 0, 1]),
    })
}
