//! `#[procedure]`: functions as procedures.

use nvcaracal::{
    Data, Database, DeviceSpec, Procedure, Sequence, Stop, Table, Transaction, WriteSet, procedure,
};

const NOTES: Table<u64, Note> = Table::ordered("notes");
const IDS: Sequence = Sequence::new("ids");
const PAGES: Sequence = Sequence::new("pages");

#[derive(Debug, Clone, PartialEq, Data)]
struct Note {
    page: u64,
    text: String,
    tags: Vec<u32>,
}

/// Its attributes are those of the type.
#[procedure(name = "write a note", sequences(IDS, PAGES.at(7)))]
#[derive(Debug, Clone, PartialEq)]
fn write_note(tx: &mut Transaction, text: &str, tags: &[u32], r#as: &Note) -> Result<u64, Stop> {
    let (id, page) = (tx.sequence_number(0), tx.sequence_number(1));
    let text = format!("{text} {}", r#as.text);
    tx.insert(NOTES, id, &Note { page, text, tags: tags.to_vec() })?;
    Ok(id)
}

fn one_note(call: &Tag, set: &mut WriteSet) {
    set.update(NOTES, call.id);
}

mod inner {
    use super::*;

    #[procedure(write_set = one_note)]
    pub(super) fn tag(tx: &mut Transaction, id: u64, mut tags: Vec<u32>) -> Result<u64, Stop> {
        let note = tx.get(NOTES, id)?.ok_or("no such note")?;
        tags.extend(&note.tags);
        let count = tags.len() as u64;
        tx.update(NOTES, id, &Note { tags, ..note })?;
        Ok(count)
    }
}
use inner::Tag;

#[test]
fn a_function_is_a_procedure_whose_arguments_are_fields() {
    assert_eq!((WriteNote::NAME, Tag::NAME), ("write a note", "tag"));
    assert_eq!(Tag::describe(), "Tag { id: u64, tags: Vec<u32> }");
    let options = Database::options().table(NOTES).sequence(IDS).sequence(PAGES);
    let options = options.procedure::<WriteNote>().procedure::<Tag>();
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    let r#as = Note { page: 0, text: "twice".into(), tags: vec![] };
    let call = WriteNote { text: "say".into(), tags: vec![1, 2], r#as };
    assert_eq!(db.call(call.clone()).unwrap(), 0);
    assert_eq!(db.call(call).unwrap(), 1);
    let note = Note { page: 1, text: "say twice".into(), tags: vec![1, 2] };
    assert_eq!(db.get(NOTES, 1).unwrap(), Some(note.clone()));

    for round in 0..3 {
        assert_eq!(db.call(Tag { id: 1, tags: vec![9] }).unwrap(), 3 + round);
    }
    assert_eq!(db.stats().deferred, 0, "it keeps to its write set");
    assert_eq!(db.get(NOTES, 1).unwrap().unwrap().tags, [9, 9, 9, 1, 2]);
    let error = db.call(Tag { id: 5, tags: vec![] }).unwrap_err();
    assert_eq!(error.to_string(), "aborted: no such note");
}
