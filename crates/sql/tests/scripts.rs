//! Scripts in the form of sqllogictest: statements with their answers, errors by SQLSTATE. Each
//! runs with the access path that the planner chooses and with every other one forced: answers and
//! the rows of the store must be the same.

mod session;

use session::Session;
use sql::bind::Choice;
use std::path::Path;

/// One statement of a script and what must come of it.
#[derive(Debug)]
struct Record {
    line: usize,
    text: String,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    Ok,
    Error(String),
    Rows(Vec<String>),
}

/// `statement ok`, `statement error CODE` or `query`, then the text; rows follow `----`.
fn records(script: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = script.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut text = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty() && *line != "----") {
            text += line;
            text.push('\n');
        }
        let mut rows = Vec::new();
        if lines.next_if(|(_, line)| *line == "----").is_some() {
            while let Some((_, row)) = lines.next_if(|(_, line)| !line.is_empty()) {
                rows.push(row.to_owned());
            }
        }
        let expected = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["statement", "ok"] => Expected::Ok,
            ["statement", "error", code] => Expected::Error(code.to_owned()),
            ["query"] => Expected::Rows(rows),
            _ => panic!("line {}: {line}", at + 1),
        };
        records.push(Record { line: at + 1, text, expected });
    }
    records
}

fn check(name: &str, record: &Record, session: &mut Session) {
    let before = session.state();
    let place = format!("{name}:{}: {}", record.line, record.text);
    match (session.run(&record.text), &record.expected) {
        (Ok(_), Expected::Ok) => {}
        (Ok(answer), Expected::Rows(expected)) => {
            let found: Vec<String> = answer.rows.iter().map(|row| row.join("|")).collect();
            assert_eq!(&found, expected, "{place}");
        }
        (Err(error), Expected::Error(code)) => {
            assert_eq!(error.state().code(), code, "{place}{error}");
            assert_eq!(session.state(), before, "an error changed rows: {place}");
        }
        (Err(error), _) => panic!("{place}{error} at {:?}", error.position()),
        (Ok(answer), Expected::Error(code)) => panic!("{place}no error {code} but {answer:?}"),
    }
}

#[test]
fn scripts_have_their_answers_by_every_access_path() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let records = records(&std::fs::read_to_string(&file).unwrap());
        let mut states = Vec::new();
        for choice in
            [Choice::Best, Choice::Scan, Choice::Only(0), Choice::Only(1), Choice::Only(2)]
        {
            let mut session = Session::new();
            session.choice = choice;
            for record in &records {
                check(&format!("{name} ({choice:?})"), record, &mut session);
            }
            let reopened = session.reopened();
            let tables = |catalog: &sql::catalog::Catalog| -> Vec<_> {
                catalog.tables().map(|table| (**table).clone()).collect()
            };
            assert_eq!(tables(&reopened), tables(&session.catalog));
            states.push(session.state());
        }
        assert!(
            states.windows(2).all(|pair| pair[0] == pair[1]),
            "{name}: rows differ by access path"
        );
    }
}
