//! Steps of a plan in the forms of PostgreSQL's EXPLAIN: lines, JSON and YAML.

use crate::parse::{Explain, ExplainFormat};
use std::time::Duration;
use values::Json;

/// A step, with those that it takes its rows from.
#[derive(Debug)]
pub(super) struct Step {
    title: String,
    /// What the title says, as JSON and YAML have it: names and values.
    node: Vec<(&'static str, String)>,
    details: Vec<Detail>,
    below: Vec<Step>,
}

/// What a step says below its title.
#[derive(Debug)]
struct Detail {
    name: &'static str,
    text: Shown,
}

/// A text, or several.
#[derive(Debug)]
enum Shown {
    One(String),
    Several(Vec<String>),
}

/// What a run of a statement came to.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The rows that it answered.
    pub rows: usize,
    /// From its beginning to its answer.
    pub time: Duration,
    /// The steps that it did, if they are known.
    pub steps: Option<u64>,
}

/// The plan of a statement, to be shown.
#[derive(Debug)]
pub struct Explained {
    step: Step,
}

/// A value of JSON and YAML.
enum Tree {
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(&'static str, Tree)>),
}

impl Explained {
    pub(super) fn new(step: Step) -> Explained {
        Explained { step }
    }

    /// The rows of EXPLAIN's answer. `planning` is the time that the plan took, `measured` the run
    /// of ANALYZE.
    pub fn rows(
        &self,
        options: &Explain,
        planning: Duration,
        measured: Option<Measured>,
    ) -> Vec<String> {
        let times = options.has_summary.then_some(planning);
        if options.format == ExplainFormat::Text {
            return self.lines(options, times, measured);
        }
        let mut whole = vec![("Plan", self.step.tree(options, measured.as_ref()))];
        if let Some(planning) = times {
            whole.push(("Planning Time", Tree::Number(milliseconds(planning))));
        }
        if let Some(steps) = measured.and_then(|measured| measured.steps) {
            whole.push(("Steps", Tree::Number(steps.to_string())));
        }
        if measured.is_some() {
            whole.push(("Triggers", Tree::List(Vec::new())));
        }
        if let (Some(measured), true) = (measured, options.has_summary) {
            whole.push(("Execution Time", Tree::Number(milliseconds(measured.time))));
        }
        let mut out = String::new();
        let whole = Tree::List(vec![Tree::Map(whole)]);
        match options.format {
            ExplainFormat::Yaml => whole.write_yaml(0, &mut out),
            _ => whole.write_json(0, &mut out),
        }
        vec![out.trim_start().to_owned()]
    }

    fn lines(
        &self,
        options: &Explain,
        planning: Option<Duration>,
        measured: Option<Measured>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        self.step.push(0, &mut lines);
        let Some(measured) = measured else {
            lines.extend(planning.map(|time| format!("Planning Time: {} ms", milliseconds(time))));
            return lines;
        };
        let time = match options.has_timing {
            true => format!("time=0.000..{} ", milliseconds(measured.time)),
            false => String::new(),
        };
        lines[0] += &format!(" (actual {time}rows={} loops=1)", measured.rows);
        lines.extend(planning.map(|time| format!("Planning Time: {} ms", milliseconds(time))));
        if options.has_summary {
            lines.extend(measured.steps.map(|steps| format!("Steps: {steps}")));
            lines.push(format!("Execution Time: {} ms", milliseconds(measured.time)));
        }
        lines
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{}.{:03}", time.as_millis(), time.subsec_micros() % 1_000)
}

impl Step {
    pub(super) fn new(title: impl Into<String>, below: Vec<Step>) -> Step {
        let title = title.into();
        let node = vec![("Node Type", title.clone())];
        Step { title, node, details: Vec::new(), below }
    }

    /// With what the title says apart.
    pub(super) fn of_node(mut self, node: &[(&'static str, &str)]) -> Step {
        self.node = node.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self
    }

    /// With a line below its title, if there is something to say.
    pub(super) fn with(mut self, name: &'static str, text: Option<String>) -> Step {
        self.details.extend(text.map(|text| Detail { name, text: Shown::One(text) }));
        self
    }

    /// With a line of several texts, if there is something to say.
    pub(super) fn with_list(mut self, name: &'static str, texts: Option<Vec<String>>) -> Step {
        self.details.extend(texts.map(|texts| Detail { name, text: Shown::Several(texts) }));
        self
    }

    /// With one more step that it takes rows from.
    pub(super) fn add(&mut self, step: Step) {
        self.below.push(step);
    }

    /// Appends all lines. Steps are as deep as queries and joins may be.
    fn push(&self, depth: usize, lines: &mut Vec<String>) {
        const INDENT: usize = 6;
        let blanks = |count: usize| " ".repeat(count);
        match depth {
            0 => lines.push(self.title.clone()),
            _ => lines.push(format!("{}->  {}", blanks(depth * INDENT - 4), self.title)),
        }
        for Detail { name, text } in &self.details {
            let text = match text {
                Shown::One(text) => text.clone(),
                Shown::Several(texts) => texts.join(", "),
            };
            lines.push(format!("{}{name}: {text}", blanks(depth * INDENT + 2)));
        }
        self.below.iter().for_each(|step| step.push(depth + 1, lines));
    }

    fn tree(&self, options: &Explain, measured: Option<&Measured>) -> Tree {
        let mut all: Vec<(&'static str, Tree)> =
            self.node.iter().map(|(name, value)| (*name, Tree::Text(value.clone()))).collect();
        if let Some(measured) = measured {
            if options.has_timing {
                all.push(("Actual Startup Time", Tree::Number("0.000".to_owned())));
                all.push(("Actual Total Time", Tree::Number(milliseconds(measured.time))));
            }
            all.push(("Actual Rows", Tree::Number(measured.rows.to_string())));
            all.push(("Actual Loops", Tree::Number("1".to_owned())));
        }
        all.extend(self.details.iter().map(|Detail { name, text }| {
            let text = match text {
                Shown::One(text) => Tree::Text(text.clone()),
                Shown::Several(texts) => {
                    Tree::List(texts.iter().map(|text| Tree::Text(text.clone())).collect())
                }
            };
            (*name, text)
        }));
        if !self.below.is_empty() {
            let below = self.below.iter().map(|step| step.tree(options, None)).collect();
            all.push(("Plans", Tree::List(below)));
        }
        Tree::Map(all)
    }
}

/// A text in quotes of JSON.
fn quoted(text: &str) -> String {
    Json::String(text.into()).to_string()
}

impl Tree {
    fn write_json(&self, depth: usize, out: &mut String) {
        let blanks = |depth: usize| "  ".repeat(depth);
        match self {
            Tree::Number(number) => *out += number,
            Tree::Text(text) => *out += &quoted(text),
            Tree::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    *out += if at == 0 { "\n" } else { ",\n" };
                    *out += &blanks(depth + 1);
                    item.write_json(depth + 1, out);
                }
                *out += &format!("\n{}]", blanks(depth));
            }
            Tree::Map(entries) => {
                out.push('{');
                for (at, (name, value)) in entries.iter().enumerate() {
                    *out += if at == 0 { "\n" } else { ",\n" };
                    *out += &format!("{}{}: ", blanks(depth + 1), quoted(name));
                    value.write_json(depth + 1, out);
                }
                *out += &format!("\n{}}}", blanks(depth));
            }
        }
    }

    /// Appends a value behind `- ` or `name: `; the entries of a map begin there.
    fn write_yaml(&self, depth: usize, out: &mut String) {
        let blanks = |depth: usize| format!("\n{}", "  ".repeat(depth));
        match self {
            Tree::Number(number) => *out += number,
            Tree::Text(text) => *out += &quoted(text),
            Tree::List(items) => {
                for item in items {
                    *out += &blanks(depth);
                    *out += "- ";
                    item.write_yaml(depth + 1, out);
                }
            }
            Tree::Map(entries) => {
                for (at, (name, value)) in entries.iter().enumerate() {
                    if at > 0 {
                        *out += &blanks(depth);
                    }
                    *out += &format!("{name}: ");
                    if let Tree::Map(_) = value {
                        *out += &blanks(depth + 1);
                    }
                    value.write_yaml(depth + 1, out);
                }
            }
        }
    }
}
