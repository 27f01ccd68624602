//! Schemas that change from one program to the next (O-91 to O-95).

use std::path::Path;

use nvcaracal::{
    Data, Database, HashTable, Index, Options, Procedure, Sequence, Stop, Table, Transaction,
    WriteSet, plain,
};

use crate::common::{copy, refusal};

/// The first program.
mod first {
    use super::*;

    plain! {
        pub(crate) struct Seat { pub(crate) cents: u64 }
    }
    #[derive(Debug, Clone, PartialEq, Data)]
    pub(crate) struct Note {
        pub(crate) text: String,
    }

    #[derive(Debug, Clone, PartialEq, Data)]
    pub(crate) struct Build {
        pub(crate) from: u32,
        pub(crate) to: u32,
    }

    pub(crate) const SEATS: Table<u32, Seat> = Table::ordered("seats");
    pub(crate) const NOTES: HashTable<u32, Note> = Table::hash("notes").with_value_bytes(40);
    pub(crate) const IDS: Sequence = Sequence::new("ids");

    impl Procedure for Build {
        const NAME: &'static str = "build";
        type Output = u64;

        fn sequences(&self, sequences: &mut nvcaracal::Sequences) -> Result<(), nvcaracal::Abort> {
            sequences.allocate(IDS);
            Ok(())
        }

        fn write_set(&self, set: &mut WriteSet) {
            for seat in self.from..self.to {
                set.insert(SEATS, seat);
                set.insert(NOTES, seat);
            }
        }

        fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
            for seat in self.from..self.to {
                tx.insert(SEATS, seat, &Seat { cents: u64::from(seat) * 100 })?;
                tx.insert(NOTES, seat, &Note { text: format!("note {seat}") })?;
            }
            Ok(tx.sequence_number(0))
        }
    }

    pub(crate) fn options() -> Options {
        base().table(SEATS).table(NOTES).sequence(IDS).procedure::<Build>()
    }
}

/// The next one: a field more in each type, longer notes, an index, another procedure.
mod second {
    use super::*;

    plain! {
        pub(crate) struct Seat was first::Seat { pub(crate) cents: u64, pub(crate) user: u64 }
    }

    #[derive(Debug, Clone, PartialEq, Data)]
    #[data(was = first::Note)]
    pub(crate) struct Note {
        pub(crate) text: String,
        pub(crate) by: Option<String>,
    }

    #[derive(Debug, Clone, PartialEq, Data)]
    pub(crate) struct Take {
        pub(crate) seat: u32,
        pub(crate) user: u64,
    }

    #[derive(Debug, Clone, PartialEq, Data)]
    pub(crate) struct Sign {
        pub(crate) seat: u32,
    }

    impl From<first::Seat> for Seat {
        fn from(first::Seat { cents }: first::Seat) -> Self {
            Self { cents, user: 0 }
        }
    }

    impl From<first::Note> for Note {
        fn from(first::Note { text }: first::Note) -> Self {
            Self { text, by: None }
        }
    }

    pub(crate) const SEATS: Table<u32, Seat> = Table::ordered("seats");
    pub(crate) const NOTES: HashTable<u32, Note> = Table::hash("notes").with_value_bytes(400);
    pub(crate) const BY_USER: Index<u64, u32, Seat> = SEATS.index("by user", |_, s| Some(s.user));

    impl Procedure for Take {
        const NAME: &'static str = "take";
        type Output = Option<u64>;

        fn run(&self, tx: &mut Transaction) -> Result<Option<u64>, Stop> {
            let Some(seat) = tx.get(SEATS, self.seat)? else { return Ok(None) };
            tx.update(SEATS, self.seat, &Seat { user: self.user, ..seat })?;
            let note = tx.get(NOTES, self.seat)?.map_or(String::new(), |note| note.text);
            let note = Note { text: note.repeat(20), by: Some("second".into()) };
            tx.insert(NOTES, self.seat, &note)?;
            Ok(Some(seat.user))
        }
    }

    /// Declares what it writes by what it finds; its pieces run apart.
    impl Procedure for Sign {
        const NAME: &'static str = "sign";
        type Output = ();
        const PIECES: bool = true;

        fn write_set(&self, set: &mut WriteSet) {
            if set.get(NOTES, self.seat).is_some_and(|note| note.by.is_none()) {
                set.update_piece(NOTES, self.seat, 0);
            }
        }

        fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
            Ok(())
        }

        fn piece(&self, piece: &mut nvcaracal::Piece) -> Result<nvcaracal::PieceResult, Stop> {
            let note = piece.value::<Note>()?.expect("it is there");
            piece.update(&Note { by: Some("a piece".into()), ..note })?;
            Ok(nvcaracal::PieceResult::NONE)
        }
    }

    pub(crate) fn options() -> Options {
        let tables = base().table(SEATS).table(NOTES).sequence(first::IDS).index(BY_USER);
        tables.procedure::<Take>().procedure::<Sign>()
    }
}

fn base() -> Options {
    Database::options().workers(2).data_bytes_max(1 << 30).checkpoint_every(1_000_000)
}

/// A store of the first program.
fn built(dir: &Path, seats: u32) {
    let db = first::options().open(dir).unwrap();
    assert_eq!(db.call(first::Build { from: 0, to: seats }).unwrap(), 0);
    db.close().unwrap();
}

/// O-93, O-94: values that the program before has written are read with what they did not have, in
/// every way of reading; what is written is of the new type, and both are there after a kill.
#[test]
fn o_93_fields_are_added_and_rows_read_as_what_they_are() {
    use second::{BY_USER, NOTES, Note, SEATS, Seat};
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    built(&alive, 1000);
    let db = second::options().open(&alive).unwrap();
    let old = |seat: u32| Seat { cents: u64::from(seat) * 100, user: 0 };
    let before = db.snapshot().unwrap();
    for seat in [3, 500] {
        assert_eq!(db.get(SEATS, seat).unwrap(), Some(old(seat)));
        assert_eq!(db.call(second::Take { seat, user: 7 }).unwrap(), Some(0));
        assert_eq!(db.get(SEATS, seat).unwrap(), Some(Seat { user: 7, ..old(seat) }));
    }
    db.call(second::Sign { seat: 4 }).unwrap();
    assert_eq!(before.get(SEATS, 3).unwrap(), Some(old(3)));
    db.check_indexes().unwrap();

    let assert_whole = |db: &Database| {
        let now = db.snapshot().unwrap();
        let seats: Vec<_> = now.range(SEATS, ..).collect::<Result<_, _>>().unwrap();
        assert_eq!(seats.len(), 1000);
        for (number, seat) in seats {
            let user = if [3, 500].contains(&number) { 7 } else { 0 };
            assert_eq!(seat, Seat { user, ..old(number) });
        }
        let of_seven = now.range_by(BY_USER, 7..).map(|row| row.unwrap().0);
        assert_eq!(of_seven.collect::<Vec<_>>(), [3, 500]);
        let again = Note { text: "note 500".repeat(20), by: Some("second".into()) };
        assert_eq!(now.get(NOTES, 500).unwrap(), Some(again));
        let notes = now.all(NOTES).filter(|row| row.as_ref().unwrap().1.by.is_none());
        assert_eq!(notes.count(), 997);
        let signed = Note { text: "note 4".into(), by: Some("a piece".into()) };
        assert_eq!(now.get(NOTES, 4).unwrap(), Some(signed));
        db.check_indexes().unwrap();
    };
    assert_whole(&db);
    copy(&alive, &killed);
    db.close().unwrap();
    for dir in [&alive, &killed] {
        let db = second::options().open(dir).unwrap();
        assert_eq!(db.recovery().epochs_replayed > 0, dir == &killed);
        assert_whole(&db);
        db.close().unwrap();
        let error = refusal(dir, first::options());
        assert!(error.is_schema() && error.to_string().contains("user: u64"), "{error}");
        assert_whole(&second::options().open(dir).unwrap());
    }
}

/// O-91, O-108: a log is of the program that wrote it. It is replayed under the schema that it was
/// written for, and every change takes place then; without its procedures the open is refused, and
/// every byte stays as it was.
#[test]
fn o_91_a_log_is_replayed_before_any_change_of_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = first::options().open(&alive).unwrap();
    db.call(first::Build { from: 0, to: 10 }).unwrap();
    db.call(first::Build { from: 20, to: 30 }).unwrap();
    copy(&alive, &killed);
    drop(db);
    const LONGER: HashTable<u32, first::Note> = Table::hash("notes").with_value_bytes(41);
    const BY_CENTS: Index<u64, u32, first::Seat> =
        first::SEATS.index("by cents", |_, seat| Some(seat.cents));
    let rest = || base().table(first::NOTES).sequence(first::IDS).procedure::<first::Build>();
    let others = || base().table(first::SEATS).sequence(first::IDS).procedure::<first::Build>();
    let ignored = base().ignore_table("seats").ignore_table("notes").ignore_table("ids");
    let error = refusal(&killed, ignored);
    let (text, words) = (error.to_string(), "procedure \"build\" is not registered");
    assert!(error.is_schema() && text.contains(words) && text.contains("close it"), "{text}");
    const PLACES: Table<u32, first::Seat> = Table::ordered("places");
    for (number, (options, rows)) in [
        (rest().table(second::SEATS), 40),
        (rest().table(PLACES).rename_table("seats", "places"), 40),
        (rest().drop_table("seats"), 20),
        (rest().ignore_table("seats"), 40),
        (others().table(LONGER), 40),
        (first::options().index(BY_CENTS), 40),
    ]
    .into_iter()
    .enumerate()
    {
        let changed = dir.path().join(number.to_string());
        copy(&killed, &changed);
        let db = options.clone().open(&changed).unwrap();
        assert_eq!((db.recovery().epochs_replayed, db.recovery().rows), (2, rows + 1), "{number}");
        match number {
            0 => assert_eq!(db.get(second::SEATS, 25).unwrap().unwrap().cents, 2500),
            1 => assert_eq!(db.get(PLACES, 25).unwrap().unwrap().cents, 2500),
            2 | 3 => assert!(db.get(first::SEATS, 25).unwrap_err().is_mistake()),
            4 => assert_eq!(db.get(LONGER, 25).unwrap().unwrap().text, "note 25"),
            _ => assert_eq!(db.snapshot().unwrap().range_by(BY_CENTS, 2500..).count(), 5),
        }
        drop(db);
        check(&changed);
        assert_eq!(options.open(&changed).unwrap().recovery().epochs_replayed, 0, "{number}");
    }
    // What is new is no change for the calls of the log.
    let db = first::options().table(ADDED).procedure::<Add>().open(&killed).unwrap();
    assert_eq!(db.recovery().epochs_replayed, 2);
    assert_eq!(db.call(Add { key: 1 }).unwrap(), None);
    assert_eq!(db.call(first::Build { from: 40, to: 41 }).unwrap(), 2);
    assert_eq!(db.snapshot().unwrap().count(first::SEATS, ..).unwrap(), 21);
}

const ADDED: Table<u64, u64> = Table::ordered("added");

#[derive(Debug, Clone, PartialEq, Data)]
struct Add {
    key: u64,
}

impl Procedure for Add {
    const NAME: &'static str = "add";
    type Output = Option<u64>;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ADDED, self.key);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Option<u64>, Stop> {
        let before = tx.get(ADDED, self.key)?;
        tx.insert(ADDED, self.key, &(before.unwrap_or(0) + 1))?;
        Ok(before)
    }
}

/// O-92: tables and sequences are renamed and dropped, new ones come in their places, and at every
/// further open of the same program nothing is left to do.
#[test]
fn o_92_tables_are_renamed_and_dropped() {
    const PLACES: Table<u32, first::Seat> = Table::ordered("places");
    const NEW: HashTable<[u8; 40], String> = Table::hash("new").with_value_bytes(5000);
    let dir = tempfile::tempdir().unwrap();
    built(dir.path(), 300);
    let options = || {
        let base = base().table(PLACES).table(NEW).table(ADDED).procedure::<Add>();
        base.rename_table("seats", "places").drop_table("notes").drop_table("ids")
    };
    for open in 0..3 {
        let db = options().open(dir.path()).unwrap();
        assert_eq!(db.get(PLACES, 7).unwrap(), Some(first::Seat { cents: 700 }));
        assert_eq!(db.snapshot().unwrap().count(PLACES, ..).unwrap(), 300);
        assert_eq!(db.snapshot().unwrap().all(NEW).count(), 0);
        assert_eq!(db.call(Add { key: 1 }).unwrap(), (open > 0).then_some(open));
        assert!(db.get(first::NOTES, 7).unwrap_err().is_mistake());
        assert_eq!(db.stats().rows, 301);
        db.close().unwrap();
        let report = check(dir.path());
        let names: Vec<_> = report.rows.iter().map(|(name, rows)| (name.as_str(), *rows)).collect();
        assert_eq!(names, [("places", 300), ("new", 0), ("added", 1)], "{:?}", report.problems);
    }
    // O-111: the first program would make its tables anew.
    let text = refusal(dir.path(), first::options()).to_string();
    for words in [
        "table \"seats\" is renamed to \"places\"",
        "table \"notes\" was dropped",
        "table \"ids\" was dropped",
        "table \"places\" of u32 -> Seat { cents: u64 }: register it",
        "table \"new\"",
        "table \"added\"",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let anew = || {
        let others = ["places", "new", "added"].into_iter();
        let options = others.fold(first::options(), |options, name| options.ignore_table(name));
        ["seats", "notes", "ids"]
            .into_iter()
            .fold(options, |options, name| options.reuse_name(name))
    };
    let db = anew().open(dir.path()).unwrap();
    assert_eq!(db.get(first::SEATS, 7).unwrap(), None);
    assert_eq!(db.call(first::Build { from: 5, to: 6 }).unwrap(), 0, "the sequence began again");
    db.close().unwrap();
    let error = refusal(dir.path(), options());
    assert!(error.to_string().contains("there is a table of that name"), "{error}");
    assert_eq!(check(dir.path()).rows[0], ("places".into(), 300));
}

fn check(dir: &Path) -> storage::check::CheckReport {
    let options = pmem::FileOptions::new(1 << 30, 1 << 30);
    let file = pmem::File::open(dir, &options).unwrap();
    let report = storage::check::check(pmem::AnyDevice::new(file)).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    report
}

/// O-92: a table that comes and goes takes the same space each time, with its external values.
#[test]
fn o_92_a_dropped_table_leaves_its_space_to_the_next() {
    const LONG: HashTable<u64, Vec<u8>> = Table::hash("long").with_value_bytes(3000);
    const OTHER: Table<(u64, u64), String> = Table::ordered("other");
    #[derive(Debug, Clone, PartialEq, Data)]
    struct Fill {
        twice: bool,
    }
    impl Procedure for Fill {
        const NAME: &'static str = "fill";
        type Output = ();

        fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
            for key in 0..500u64 {
                tx.insert(LONG, key, &vec![key as u8; 2000 + key as usize])?;
            }
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();
    for round in 0..6 {
        let db = base().table(LONG).reuse_name("long").drop_table("other").procedure::<Fill>();
        let db = db.open(dir.path()).unwrap();
        assert_eq!(db.snapshot().unwrap().all(LONG).count(), 0, "round {round}");
        // The second time every row has a stale value, too.
        db.call(Fill { twice: false }).unwrap();
        db.checkpoint().unwrap();
        db.call(Fill { twice: true }).unwrap();
        let stored = db.get(LONG, 17).unwrap();
        assert_eq!(stored, Some(vec![17; 2017]));
        db.close().unwrap();
        check(dir.path());
        let other = base().table(OTHER).reuse_name("other").drop_table("long");
        other.open(dir.path()).unwrap().close().unwrap();
        check(dir.path());
        sizes.push(super::common::image_bytes(dir.path()));
    }
    assert_eq!(sizes[1], sizes[5], "{sizes:?}");
}

/// O-95: a table whose rows have a shared heap is made with it, has values of all lengths, and
/// keeps it under a program that leaves rows open.
#[test]
fn o_95_a_shared_heap_belongs_to_its_table() {
    const NOTES: Table<u64, String> =
        Table::ordered("notes").with_row_bytes(256).with_shared_heap_bytes(168);
    const OPEN: Table<u64, String> = Table::ordered("notes");
    #[derive(Debug, Clone, PartialEq, Data)]
    struct Put {
        bytes: u64,
    }
    impl Procedure for Put {
        const NAME: &'static str = "put";
        type Output = ();

        fn write_set(&self, set: &mut WriteSet) {
            set.insert(NOTES, 7);
        }

        fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
            tx.insert(NOTES, 7, &"x".repeat(self.bytes as usize))
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for notes in [NOTES, OPEN, NOTES] {
        let db = base().table(notes).procedure::<Put>().open(dir.path()).unwrap();
        for bytes in [8, 150, 90, 90, 700, 160, 1, 168] {
            db.call(Put { bytes }).unwrap();
            assert_eq!(db.get(notes, 7).unwrap().map(|note| note.len()), Some(bytes as usize));
        }
        db.close().unwrap();
        check(dir.path());
    }
    let halves = base().table(Table::<u64, String>::ordered("notes").with_row_bytes(256));
    let text = refusal(dir.path(), halves).to_string();
    assert!(text.contains("shared_heap_bytes: 168"), "{text}");
}

/// Rows are not taken for something else: neither after a kill nor after a close.
#[test]
fn what_would_be_read_as_something_else_is_refused_with_both_names() {
    mod other {
        use super::*;
        plain! {
            pub(crate) struct Seat { pub(crate) cents: f64 }
            pub(crate) struct Cents { pub(crate) price: u64 }
        }
    }
    const FLOATS: Table<u32, f64> = Table::ordered("seats");
    const SEATS: Table<u32, other::Seat> = Table::ordered("seats");
    const CENTS: Table<u32, other::Cents> = Table::ordered("seats");
    const KEYS: Table<i32, first::Seat> = Table::ordered("seats");
    const LONG_KEYS: Table<u64, first::Seat> = Table::ordered("seats");
    const HASHED: HashTable<u32, first::Seat> = Table::hash("seats");
    const ROWS: Table<u32, first::Seat> = Table::ordered("seats").with_row_bytes(512);
    const SHARED: Table<u32, first::Seat> = Table::ordered("seats").with_shared_heap_bytes(64);
    const SHORT: HashTable<u32, first::Note> = Table::hash("notes").with_value_bytes(39);
    const TEXT: HashTable<u32, String> = Table::hash("notes").with_value_bytes(40);
    let dir = tempfile::tempdir().unwrap();
    built(dir.path(), 10);
    let stored = "u32 -> Seat { cents: u64 }";
    for (options, words) in [
        (base().table(FLOATS), [stored, "u32 -> f64"]),
        (base().table(SEATS), [stored, "u32 -> Seat { cents: f64 }"]),
        (base().table(CENTS), [stored, "u32 -> Cents { price: u64 }"]),
        (base().table(KEYS), [stored, "i32 -> Seat { cents: u64 }"]),
        (base().table(LONG_KEYS), [stored, "u64 -> Seat { cents: u64 }"]),
        (base().table(TEXT), ["u32 -> Note { text: String }", "u32 -> String"]),
        (base().table(HASHED), ["index: Ordered", "index: Hash"]),
        (base().table(ROWS), ["row_bytes: 64", "row_bytes: 512"]),
        (base().table(SHARED), ["shared_heap_bytes: 0", "shared_heap_bytes: 64"]),
        (base().table(SHORT), ["value_bytes_max: 40", "value_bytes_max: 39"]),
    ] {
        let error = refusal(dir.path(), options);
        let text = error.to_string();
        assert!(error.is_schema(), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    // The name of a struct is no matter.
    mod renamed {
        nvcaracal::plain! { pub(crate) struct Place { pub(crate) cents: u64 } }
    }
    const PLACES: Table<u32, renamed::Place> = Table::ordered("seats");
    let db = base().table(PLACES).ignore_table("notes").ignore_table("ids").open(dir.path());
    let db = db.unwrap();
    assert_eq!(db.get(PLACES, 3).unwrap(), Some(renamed::Place { cents: 300 }));
}

/// O-94: a conversion that panics fails the call that reads, or the open that builds an index; the
/// rows stay what they are.
#[test]
fn o_94_a_conversion_that_panics_fails_who_reads() {
    plain! {
        struct Free was first::Seat { is_free: u64 }
    }
    #[derive(Debug, Clone, PartialEq, Data)]
    struct Look {
        seat: u32,
    }
    impl From<first::Seat> for Free {
        fn from(first::Seat { cents }: first::Seat) -> Self {
            Self { is_free: 700 / (700 - cents) }
        }
    }
    const SEATS: Table<u32, Free> = Table::ordered("seats");
    const FREE: Index<u64, u32, Free> = SEATS.index("free", |_, seat| Some(seat.is_free));
    impl Procedure for Look {
        const NAME: &'static str = "look";
        type Output = u64;

        fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
            Ok(tx.get(SEATS, self.seat)?.map_or(0, |seat| seat.is_free))
        }
    }
    let dir = tempfile::tempdir().unwrap();
    built(dir.path(), 8);
    let tables = || base().table(SEATS).ignore_table("notes").ignore_table("ids");
    let options = || tables().procedure::<Look>();
    let error = refusal(dir.path(), options().index(FREE));
    assert!(error.to_string().contains("divide by zero"), "{error}");
    let db = options().open(dir.path()).unwrap();
    assert_eq!(db.call(Look { seat: 6 }).unwrap(), 7);
    let error = db.call(Look { seat: 7 }).unwrap_err();
    assert!(error.is_failed() && error.to_string().contains("divide by zero"), "{error}");
    assert_eq!(db.call(Look { seat: 0 }).unwrap(), 1);
}

/// One name is for one thing: the next open would drop or rename what this one made.
#[test]
fn a_name_that_goes_is_not_used_again() {
    let open = |options: Options| {
        let error = options.open_device(nvcaracal::DeviceSpec::Dram).err();
        error.unwrap_or_else(|| panic!("two things of one name"))
    };
    for options in [
        first::options().drop_table("seats"),
        first::options().rename_table("seats", "places"),
        base().rename_table("a", "b").drop_table("b"),
        base().rename_table("a", "b").rename_table("b", "c"),
        base().rename_table("a", "b").rename_table("a", "c"),
        base().drop_table("a").drop_table("a"),
        base().drop_table("a").ignore_table("a"),
        first::options().ignore_table("seats"),
    ] {
        let error = open(options);
        assert!(error.is_mistake() && error.to_string().contains("one thing only"), "{error}");
    }
}

/// O-92: procedures come in any order, and calls of the log find theirs.
#[test]
fn o_92_procedures_have_the_numbers_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = first::options().table(ADDED).procedure::<Add>().open(&alive).unwrap();
    db.call(first::Build { from: 0, to: 3 }).unwrap();
    db.call(Add { key: 5 }).unwrap();
    copy(&alive, &killed);
    drop(db);
    let other = || {
        let tables = base().table(ADDED).table(first::SEATS).table(first::NOTES);
        tables.sequence(first::IDS).procedure::<Other>().procedure::<Add>()
    };
    let db = other().procedure::<first::Build>().open(&killed).unwrap();
    assert_eq!(db.recovery().epochs_replayed, 2);
    assert_eq!(db.call(Add { key: 5 }).unwrap(), Some(1));
    assert_eq!(db.call(first::Build { from: 3, to: 4 }).unwrap(), 1);
    assert_eq!(db.call(Other { key: 5 }).unwrap(), 2);
    let killed_again = dir.path().join("again");
    copy(&killed, &killed_again);
    drop(db);
    // Without a log they are numbered anew, and may be others.
    let db = first::options().table(ADDED).procedure::<Other>().procedure::<Add>();
    let db = db.open(&killed_again).unwrap();
    assert_eq!((db.recovery().epochs_replayed, db.call(Other { key: 5 }).unwrap()), (3, 2));
    db.close().unwrap();
    let tables = base().table(ADDED).table(first::SEATS).table(first::NOTES);
    let db = tables.sequence(first::IDS).procedure::<Other>().open(&killed_again).unwrap();
    assert_eq!(db.call(Other { key: 5 }).unwrap(), 2);
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Other {
    key: u64,
}

impl Procedure for Other {
    const NAME: &'static str = "other";
    type Output = u64;

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        Ok(tx.get(ADDED, self.key)?.unwrap_or(0))
    }
}

/// Bytes of a value whose type has versions may be of any: they are not given away.
#[test]
fn bytes_of_values_with_versions_are_not_for_reading() {
    #[derive(Debug, Clone, PartialEq, Data)]
    struct Peek {
        changes: bool,
    }
    impl Procedure for Peek {
        const NAME: &'static str = "peek";
        type Output = bool;

        fn write_set(&self, set: &mut WriteSet) {
            set.update(second::SEATS, 1);
        }

        fn run(&self, tx: &mut Transaction) -> Result<bool, Stop> {
            if self.changes {
                return tx.modify_bytes(second::SEATS, 1, 0..1, |_, part| part[0] = 9);
            }
            Ok(tx.get_bytes(second::SEATS, 1)?.is_some())
        }
    }
    let db = base().table(second::SEATS).procedure::<Peek>();
    let db = db.open_device(nvcaracal::DeviceSpec::Dram).unwrap();
    for changes in [false, true] {
        let error = db.call(Peek { changes }).unwrap_err();
        assert!(error.is_failed() && error.to_string().contains("has versions"), "{error}");
    }
}
