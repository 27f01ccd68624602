//! Tables, and the words and numbers that all reports have in common.

use comfy_table::{CellAlignment, presets};
use serde_json::Value;

pub use comfy_table::Table;

use crate::Parameters;

/// The workload's own parameters, as `name value`.
#[must_use]
pub fn scale(parameters: &Parameters) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(&parameters.workload) else {
        return String::new();
    };
    let chosen = |(name, value): &(&String, &Value)| *name != "workload" && !value.is_null();
    let Parameters { row_bytes, shared_heap_bytes, .. } = *parameters;
    let sizes = [("row_bytes", row_bytes), ("shared_heap_bytes", shared_heap_bytes)];
    let sizes = sizes.map(|(name, bytes)| (name.to_string(), Value::from(bytes)));
    let given = sizes.iter().filter(|(_, bytes)| *bytes != 0).map(|(name, of)| (name, of));
    let shown = fields.iter().filter(chosen).chain(given);
    let shown = shown.map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        format!("{} {value}", name.replace('_', " "))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Columns that hold words.
const TEXTS: [&str; 9] =
    ["", "phase", "part", "structure", "where", "unit", "bound by", "work", "variant"];

/// A table with a border; columns of numbers are aligned to the right.
#[must_use]
pub fn table(columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED).set_header(columns.to_vec());
    table.add_rows(rows);
    for (column, name) in table.column_iter_mut().zip(columns) {
        let is_text = TEXTS.contains(name);
        let side = if is_text { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(side);
    }
    table
}

/// What the workload's own check came to.
#[must_use]
pub fn checked(is_checked: bool, problems: usize) -> String {
    match (is_checked, problems) {
        (false, _) => "the workload's check was left out".to_string(),
        (true, 0) => "the workload's check found nothing wrong".to_string(),
        (true, n) => format!("NO: the workload's check has {n} complaints"),
    }
}

/// A number without fraction, in groups of three digits.
#[must_use]
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_from_the_right() {
        for (number, text) in
            [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.4, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
