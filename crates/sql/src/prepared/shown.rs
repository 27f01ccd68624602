//! Steps of a plan as lines, as PostgreSQL's EXPLAIN has them.

/// A step, with those that it takes its rows from.
pub(super) struct Step {
    pub(super) title: String,
    pub(super) details: Vec<String>,
    pub(super) below: Vec<Step>,
}

impl Step {
    pub(super) fn new(title: impl Into<String>, below: Vec<Step>) -> Step {
        Step { title: title.into(), details: Vec::new(), below }
    }

    /// With a line below its title, if there is something to say.
    pub(super) fn with(mut self, what: &str, text: Option<String>) -> Step {
        self.details.extend(text.map(|text| format!("{what}: {text}")));
        self
    }

    /// All lines. Steps are as deep as queries and joins may be.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.push(0, &mut lines);
        lines
    }

    fn push(&self, depth: usize, lines: &mut Vec<String>) {
        const INDENT: usize = 6;
        let blanks = |count: usize| " ".repeat(count);
        match depth {
            0 => lines.push(self.title.clone()),
            _ => lines.push(format!("{}->  {}", blanks(depth * INDENT - 4), self.title)),
        }
        let details = self.details.iter();
        lines.extend(details.map(|detail| format!("{}{detail}", blanks(depth * INDENT + 2))));
        self.below.iter().for_each(|step| step.push(depth + 1, lines));
    }
}
