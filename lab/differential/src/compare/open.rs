//! Faults that are known and not mended yet: `open.txt`. A change that mends one removes its line.

/// The list. Each line is a label of a difference (or `*`), words of the statement, and the fault.
const OPEN: &str = include_str!("../../open.txt");

/// The fault of the list that a difference is: one with this label, in a statement with this text.
pub(crate) fn open_fault(label: &str, text: &str) -> Option<&'static str> {
    entries(OPEN).find_map(|(known, words, fault)| {
        let is_label = known == "*" || known == label;
        (is_label && text.contains(words)).then_some(fault)
    })
}

fn entries(list: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let parts: Vec<_> = line.split(" | ").map(str::trim).collect();
        match parts[..] {
            [label, words, fault] => (label, words, fault),
            _ => panic!("a line of open.txt is not `label | words | fault`: {line}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_list_is_whole() {
        for (label, words, fault) in entries(OPEN) {
            assert!(!label.is_empty() && !words.is_empty() && !fault.is_empty());
        }
    }

    #[test]
    fn comments_are_no_entries() {
        let found: Vec<_> = entries("# note\n\ntag | SELECT a | a fault\n").collect();
        assert_eq!(found, [("tag", "SELECT a", "a fault")]);
    }
}
