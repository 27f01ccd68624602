//! Files that are damaged between writing and reading back.

use nvcaracal::{Database, Stop, Transaction, procedure};

use super::*;

const NOTES: nvcaracal::Table<u32, String> = nvcaracal::Table::ordered("notes");

#[procedure]
fn write_notes(tx: &mut Transaction) -> Result<(), Stop> {
    tx.insert(NOTES, 1, &"first".to_string())?;
    tx.insert(NOTES, 2, &"second".to_string())
}

/// Damages a file's text.
type Damage = fn(String) -> String;

/// Dumps a store into a directory, and damages the file of its table before it is read back.
struct Damaged<'a> {
    directory: &'a Path,
    format: Format,
    damage: Damage,
    no_verify: bool,
}

impl Damaged<'_> {
    fn dump(self, store: &Looked) -> Done {
        let tables: Vec<&Table> = store.tables().iter().collect();
        let unfinished = write_files(store, &tables, self.format, self.directory).unwrap();
        let path = self.directory.join(file_name("notes", self.format));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, (self.damage)(text)).unwrap();
        unfinished.finish(store, self.no_verify)
    }
}

/// What a dump with this damage came to, and whether it has the mark of an unfinished one.
fn dump_damaged(format: Format, damage: Damage, no_verify: bool) -> (Done, bool) {
    let room = tempfile::tempdir().unwrap();
    let (path, directory) = (room.path().join("store"), room.path().join("out"));
    let db = Database::options().table(NOTES).procedure::<WriteNotes>().workers(1);
    let db = db.open(&path).unwrap();
    db.call(WriteNotes {}).unwrap();
    db.close().unwrap();
    let spec = bench::spec_of_path(&path).unwrap();
    let dump = Damaged { directory: &directory, format, damage, no_verify };
    let done = dump
        .dump(&Looked::open(bench::open_device(&spec, Limits::read_only(&spec)).unwrap()).unwrap());
    (done, directory.join(UNFINISHED_NAME).exists())
}

/// A dump is read back and compared by its state hash before it says that it is done: files that
/// say something else keep the mark with which no load takes them. `--no-verify` leaves that out.
#[test]
fn a_dump_that_does_not_read_back_is_refused() {
    let (done, is_unfinished) = dump_damaged(Format::Jsonl, |text| text, false);
    assert!(done.is_ok() && !is_unfinished, "{done:?}");
    let changed: Damage = |text| text.replace("second", "secund");
    let emptied: Damage = |text| text.replace("{\"key\":1,\"value\":\"first\"}", "");
    let cut: Damage = |text| text[..text.len() - 5].to_string();
    for (format, damage) in [
        (Format::Jsonl, changed),
        (Format::Csv, changed),
        (Format::Jsonl, emptied),
        (Format::Jsonl, cut),
        (Format::Csv, cut),
    ] {
        let (done, is_unfinished) = dump_damaged(format, damage, false);
        let failure = done.expect_err("the files say something else");
        assert_eq!(failure.code, 1);
        assert!(is_unfinished, "{failure:?}");
        let (done, is_unfinished) = dump_damaged(format, damage, true);
        assert!(done.is_ok() && !is_unfinished, "{done:?}");
    }
    let (done, _) = dump_damaged(Format::Csv, changed, false);
    let said = done.unwrap_err().messages.concat();
    assert!(said.contains("what was read back from the files") && said.contains("not finished"));
}
