//! Secondary indexes: what they hold at every moment, and what unique ones refuse.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nvcaracal::{
    Abort, Data, Database, DeviceSpec, HashTable, Hashed, Index, Options, Part, Piece, PieceResult,
    Procedure, Snapshot, Stop, Table, Transaction, Tuning, WriteSet,
};

#[derive(Debug, Clone, PartialEq, Data)]
struct Seat {
    price: u32,
    owner: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Data)]
struct User {
    name: String,
    city: String,
}

const SEATS: Table<u32, Seat> = Table::ordered("seats");
/// Free seats by price.
const CHEAPEST: Index<u32, u32, Seat> =
    SEATS.index("cheapest", |_, seat| seat.owner.is_none().then_some(seat.price));
const BY_OWNER: Index<u64, u32, Seat> = SEATS.index("by owner", |_, seat| seat.owner);
const USERS: HashTable<u64, User> = Table::hash("users");
const BY_NAME: Index<str, u64, User, Hashed> =
    USERS.unique_index("by name", |_, user| Some(user.name.clone()));
const BY_CITY: Index<(String, u8), u64, User, Hashed> = USERS.index("by city", |id, user| {
    assert_ne!(user.city, "nowhere", "planned");
    Some((user.city.clone(), *id as u8))
});

/// Sets a seat.
#[derive(Debug, Clone, PartialEq, Data)]
struct Set {
    seat: u32,
    price: u32,
    owner: Option<u64>,
}

/// Buys the cheapest seat, and answers with it.
#[derive(Debug, Clone, PartialEq, Data)]
struct Buy {
    user: u64,
}

/// Changes the price of a seat, which it predicts, and aborts or not.
#[derive(Debug, Clone, PartialEq, Data)]
struct Reprice {
    seat: u32,
    price: u32,
    aborts: bool,
}

/// Gives a seat another owner twice, so that its keys are what they were, or not.
#[derive(Debug, Clone, PartialEq, Data)]
struct Pass {
    seat: u32,
    to: u64,
    back: bool,
}

/// Names users, one after the other; no name deletes.
#[derive(Debug, Clone, PartialEq, Data)]
struct Name {
    names: Vec<(u64, Option<String>)>,
    predicts: bool,
}

/// How many free seats there are, and which seats a user has, as a transaction sees it.
#[derive(Debug, Clone, PartialEq, Data)]
struct Count {
    user: u64,
    predicts: bool,
}

impl Procedure for Set {
    const NAME: &'static str = "set";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(SEATS, self.seat, &Seat { price: self.price, owner: self.owner })
    }
}

impl Procedure for Buy {
    const NAME: &'static str = "buy";
    type Output = u32;

    fn run(&self, tx: &mut Transaction) -> Result<u32, Stop> {
        let cheapest = tx.range_by(CHEAPEST, ..).next().transpose()?;
        let (seat, mut bought) = cheapest.ok_or(Abort::new("sold out"))?;
        bought.owner = Some(self.user);
        tx.update(SEATS, seat, &bought)?;
        // Its own write is seen.
        let mine = tx.range_by(BY_OWNER, self.user..=self.user).any(|row| row.unwrap().0 == seat);
        assert!(mine);
        Ok(seat)
    }
}

impl Procedure for Reprice {
    const NAME: &'static str = "reprice";
    type Output = u32;

    fn write_set(&self, set: &mut WriteSet) {
        set.update(SEATS, self.seat);
    }

    fn run(&self, tx: &mut Transaction) -> Result<u32, Stop> {
        let seat = tx.get(SEATS, self.seat)?.ok_or(Abort::new("no such seat"))?;
        let before = seat.price;
        tx.update(SEATS, self.seat, &Seat { price: self.price, ..seat })?;
        if self.aborts { Err(Abort::new("changed my mind").into()) } else { Ok(before) }
    }
}

impl Procedure for Pass {
    const NAME: &'static str = "pass";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(SEATS, self.seat);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let seat = tx.get(SEATS, self.seat)?.ok_or(Abort::new("no such seat"))?;
        let (price, owner) = (seat.price, seat.owner);
        tx.insert(SEATS, self.seat, &Seat { price, owner: Some(self.to) })?;
        if self.back {
            tx.insert(SEATS, self.seat, &Seat { price, owner })?;
        }
        Ok(())
    }
}

impl Procedure for Name {
    const NAME: &'static str = "name";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        if self.predicts {
            self.names.iter().for_each(|(user, _)| set.insert(USERS, user));
        } else {
            set.unknown();
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        for (user, name) in &self.names {
            match name {
                Some(name) => {
                    let city = if name == "lost" { "nowhere" } else { "town" };
                    let user_row = User { name: name.clone(), city: city.into() };
                    tx.insert(USERS, user, &user_row)?;
                }
                None => drop(tx.delete(USERS, user)?),
            }
        }
        Ok(())
    }
}

impl Procedure for Count {
    const NAME: &'static str = "count";
    type Output = (u64, Vec<u32>);

    fn write_set(&self, set: &mut WriteSet) {
        if self.predicts {
            let mine = set.range_by(BY_OWNER, self.user..=self.user).map(|(seat, _)| seat);
            let mine: Vec<u32> = mine.collect();
            mine.into_iter().for_each(|seat| set.update(SEATS, seat));
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(u64, Vec<u32>), Stop> {
        let free = tx.range_by(CHEAPEST, ..).count() as u64;
        let mine = tx.range_by(BY_OWNER, self.user..=self.user).rev();
        let mine = mine.map(|row| row.map(|(seat, _)| seat)).collect::<Result<_, _>>()?;
        Ok((free, mine))
    }
}

fn options() -> Options {
    let options = Database::options().table(SEATS).table(USERS).workers(2);
    let options = options.index(CHEAPEST).index(BY_OWNER).index(BY_NAME).index(BY_CITY);
    let options = options.procedure::<Set>().procedure::<Buy>().procedure::<Reprice>();
    let options = options.procedure::<Pass>().procedure::<Name>().procedure::<Count>();
    options.data_bytes_max(1 << 28).log_bytes_max(1 << 28)
}

/// In epochs of any size calls are serial or parallel.
fn open(serial_calls_max: usize) -> Database {
    options()
        .tuning(Tuning { serial_calls_max, ..Tuning::default() })
        .open_device(DeviceSpec::Dram)
        .unwrap()
}

/// A database in which procedures that predict run in parallel.
fn open_parallel() -> Database {
    let db = open(0);
    for _ in 0..3 {
        db.call(Pass { seat: 1_000_000, to: 1, back: true }).unwrap_err();
        db.call(Reprice { seat: 1_000_000, price: 1, aborts: true }).unwrap_err();
        db.call(Name { names: vec![], predicts: true }).unwrap();
        db.call(Count { user: 1, predicts: true }).unwrap();
    }
    db
}

/// O-96, O-97: the cheapest free seat, bought and given back, in both parts of an epoch.
#[test]
fn o_96_an_index_is_what_its_rows_are_at_every_position() {
    for serial_calls_max in [64, 0] {
        let db = open(serial_calls_max);
        for seat in 0..50 {
            db.call(Set { seat, price: 100 - seat % 10, owner: None }).unwrap();
        }
        let mut batch = db.batch();
        let bought: Vec<_> =
            (0..20).map(|user| batch.add(&Buy { user: user % 3 }).unwrap()).collect();
        let submitted = batch.submit().unwrap();
        let seats: Vec<u32> =
            bought.into_iter().map(|added| submitted.ticket(added).wait().unwrap()).collect();
        // Cheapest first, then by number.
        let expected = [9, 19, 29, 39, 49, 8, 18, 28, 38, 48, 7, 17, 27, 37, 47, 6, 16, 26, 36, 46];
        assert_eq!(seats, expected);
        let (free, mine) = db.call(Count { user: 1, predicts: false }).unwrap();
        assert_eq!((free, mine.len()), (30, 7));
        assert!(mine.is_sorted_by(|a, b| a > b));
        db.check_indexes().unwrap();
    }
}

/// O-97: calls that change an index, and have predicted what they write, run where they were sent;
/// what cancels out is as it was.
#[test]
fn o_97_calls_that_change_an_index_run_in_parallel() {
    let db = open_parallel();
    for seat in 0..10 {
        db.call(Set { seat, price: 5, owner: (seat > 5).then_some(7) }).unwrap();
    }
    let deferred = || db.stats().deferred;
    let before = deferred();
    // Not free, so that its price is in no index.
    assert_eq!(db.call(Reprice { seat: 9, price: 6, aborts: false }).unwrap(), 5);
    assert_eq!(db.call(Reprice { seat: 1, price: 4, aborts: false }).unwrap(), 5);
    assert!(db.call(Reprice { seat: 2, price: 3, aborts: true }).unwrap_err().is_user_abort());
    db.call(Pass { seat: 8, to: 3, back: true }).unwrap();
    db.call(Pass { seat: 8, to: 3, back: false }).unwrap();
    let snapshot = db.snapshot().unwrap();
    let seats = |user: u64| -> Vec<u32> {
        snapshot.range_by(BY_OWNER, user..=user).map(|row| row.unwrap().0).collect()
    };
    assert_eq!((seats(7), seats(3)), (vec![6, 7, 9], vec![8]));
    assert_eq!(snapshot.range_by(CHEAPEST, ..).next().unwrap().unwrap().0, 1);
    assert_eq!(deferred(), before);
    assert_eq!(db.call(Count { user: 7, predicts: true }).unwrap(), (6, vec![9, 7, 6]));
    db.check_indexes().unwrap();
}

/// O-96, O-97: in one epoch on two workers, calls that look into an index see what those before
/// them have made of it, and nothing of those behind.
#[test]
fn o_96_calls_in_parallel_see_the_index_of_their_position() {
    let db = open_parallel();
    for seat in 0..400 {
        db.call(Set { seat, price: 5, owner: Some(7) }).unwrap();
    }
    let before = db.stats().deferred;
    let mut batch = db.batch();
    let looks: Vec<_> = (0..400)
        .map(|seat| {
            batch.add(&Pass { seat, to: 3, back: seat % 4 == 0 }).unwrap();
            batch.add(&Count { user: 3, predicts: false }).unwrap()
        })
        .collect();
    let submitted = batch.submit().unwrap();
    for (seat, look) in (0_u32..).zip(looks) {
        let (_, seats) = submitted.ticket(look).wait().unwrap();
        let expected = (0..=seat).rev().filter(|seat| seat % 4 != 0);
        assert!(seats.into_iter().eq(expected), "behind call {seat}");
    }
    assert_eq!(db.stats().deferred, before);
    db.check_indexes().unwrap();
}

fn name(user: u64, name: &str) -> (u64, Option<String>) {
    (user, Some(name.into()))
}

const COUNTS: HashTable<u64, u64> = Table::hash("counts");

/// Changes the price of a seat, and counts in a piece.
#[derive(Debug, Clone, PartialEq, Data)]
struct RepriceCounted {
    seat: u32,
    price: u32,
}

impl Procedure for RepriceCounted {
    const NAME: &'static str = "reprice counted";
    type Output = ();
    const PIECES: bool = true;

    fn write_set(&self, set: &mut WriteSet) {
        set.update(SEATS, self.seat);
        set.update_piece(COUNTS, 0, 1);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let seat = tx.get(SEATS, self.seat)?.ok_or(Abort::new("no such seat"))?;
        tx.update(SEATS, self.seat, &Seat { price: self.price, ..seat }).map(drop)
    }

    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        let count = piece.value::<u64>()?.unwrap_or(0);
        piece.update(&(count + 1)).map(|_| PieceResult::NONE)
    }
}

/// O-97, O-68: a call with pieces could not be deferred, so it may not change an index, in either
/// part; what changes none it may write.
#[test]
fn o_97_a_call_with_pieces_changes_no_index() {
    for part in [Part::Serial, Part::Parallel] {
        let options = options().table(COUNTS).procedure::<RepriceCounted>();
        let tuning = Tuning { serial_calls_max: 0, ..Tuning::default() };
        let db = options.tuning(tuning).open_device(DeviceSpec::Dram).unwrap();
        for (seat, owner) in [(1, None), (2, Some(7))] {
            db.call(Set { seat, price: 5, owner }).unwrap();
        }
        let by = db.submitter().part(part);
        let call = |seat, price| by.submit(RepriceCounted { seat, price }).unwrap().wait();
        let error = call(1, 6).unwrap_err();
        let text = error.to_string();
        assert!(error.is_failed() && text.contains("changes an index"), "{part:?}: {text}");
        // A seat that is not free is in no index by its price.
        call(2, 6).unwrap();
        call(1, 5).unwrap();
        assert_eq!(db.get(SEATS, 1).unwrap().unwrap().price, 5, "{part:?}");
        assert_eq!(db.get(SEATS, 2).unwrap().unwrap().price, 6, "{part:?}");
        db.check_indexes().unwrap();
    }
}

/// O-98: judged at the end of the call, on what it leaves: a swap passes, and nobody loses to a
/// call that did not commit.
#[test]
fn o_98_two_rows_never_have_one_unique_key() {
    for predicts in [false, true] {
        let db = if predicts { open_parallel() } else { open(64) };
        let call = |names| db.call(Name { names, predicts });
        call(vec![name(1, "ann"), name(2, "bob"), name(3, "eve")]).unwrap();
        let error = call(vec![name(4, "ann")]).unwrap_err();
        let abort = error.abort().unwrap();
        assert_eq!(abort.code, Abort::NOT_UNIQUE);
        assert!(abort.message.contains("\"by name\""), "{abort}");
        // Swapped, and taken from one that is deleted, in any order.
        call(vec![name(1, "bob"), name(2, "ann")]).unwrap();
        call(vec![name(5, "eve"), (3, None)]).unwrap();
        call(vec![(5, None), name(6, "eve"), name(6, "zoe"), name(7, "eve")]).unwrap();
        call(vec![name(8, "dan"), name(9, "dan"), name(9, "don")]).unwrap();
        assert!(
            call(vec![name(8, "x"), name(9, "dan"), name(1, "dan")]).unwrap_err().is_user_abort()
        );
        // The same name again is its own.
        call(vec![name(7, "eve"), name(7, "eve")]).unwrap();
        let snapshot = db.snapshot().unwrap();
        let by_name: Vec<_> = snapshot
            .range_by(BY_NAME, ..)
            .map(|row| row.map(|(user, row)| (row.name, user)).unwrap())
            .collect();
        let expected = [("ann", 2), ("bob", 1), ("dan", 8), ("don", 9), ("eve", 7), ("zoe", 6)];
        let expected = expected.map(|(name, user)| (name.to_string(), user));
        assert_eq!(by_name, expected);
        assert_eq!(snapshot.get_by(BY_NAME, "eve").unwrap().unwrap().0, 7);
        assert!(snapshot.get_by(BY_NAME, "eva").unwrap().is_none());
        let towns = snapshot.range_by(BY_CITY, ("town".to_string(), 7)..).count();
        assert_eq!(towns, 3);
        db.check_indexes().unwrap();
    }
}

/// A function that panics on a row fails its call, which leaves nothing.
#[test]
fn a_key_that_cannot_be_made_fails_its_call() {
    for serial_calls_max in [64, 0] {
        let db = open(serial_calls_max);
        let call = |names| db.call(Name { names, predicts: false });
        call(vec![name(1, "ann")]).unwrap();
        let error = call(vec![name(1, "bob"), name(2, "lost")]).unwrap_err();
        assert!(error.is_failed() && error.to_string().contains("by city"), "{error}");
        let error = call(vec![name(3, &"x".repeat(300))]).unwrap_err();
        assert!(error.is_failed() && error.to_string().contains("256 bytes"), "{error}");
        let text = error.to_string();
        assert!(text.contains("index \"by name\": a key of more than 256 bytes"), "{text}");
        assert!(text.contains("of a shorter part of the row, or of a hash"), "{text}");
        let snapshot = db.snapshot().unwrap();
        let asked = snapshot.get_by(BY_NAME, "x".repeat(300).as_str()).unwrap_err().to_string();
        assert!(
            asked.contains("index \"by name\" of ") && asked.contains("256 bytes: make"),
            "{asked}"
        );
        assert_eq!(db.snapshot().unwrap().get_by(BY_NAME, "ann").unwrap().unwrap().0, 1);
        db.check_indexes().unwrap();
    }
}

/// O-96, O-84: snapshots see indexes as they were, through changes in both directions.
#[test]
fn o_96_snapshots_see_indexes_as_they_were() {
    let db = open(64);
    let mut expected = Vec::new();
    let mut rows = BTreeMap::new();
    let mut random = 7_u64;
    for round in 0..30 {
        for _ in 0..12 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (seat, price) = ((random >> 40) as u32 % 15, (random >> 50) as u32 % 4);
            let owner = (random >> 60 & 3 == 0).then_some(random >> 58 & 3);
            db.call(Set { seat, price, owner }).unwrap();
            rows.insert(seat, (price, owner));
        }
        let mut free: Vec<(u32, u32)> = rows
            .iter()
            .filter(|(_, (_, owner))| owner.is_none())
            .map(|(&seat, &(price, _))| (price, seat))
            .collect();
        free.sort_unstable();
        expected.push((db.snapshot().unwrap(), free));
        if round % 3 == 2 {
            expected.swap_remove(round / 3);
        }
    }
    for (snapshot, free) in &expected {
        let by_price =
            |row: nvcaracal::Result<(u32, Seat)>| row.map(|(seat, row)| (row.price, seat)).unwrap();
        let found: Vec<_> = snapshot.range_by(CHEAPEST, ..).map(by_price).collect();
        assert_eq!(&found, free);
        let mut back: Vec<_> = snapshot.range_by(CHEAPEST, ..).rev().map(by_price).collect();
        back.reverse();
        assert_eq!(&back, free);
        let one = snapshot.range_by(CHEAPEST, 1..3).map(by_price);
        assert!(one.eq(free.iter().copied().filter(|(price, _)| (1..3).contains(price))));
    }
    db.check_indexes().unwrap();
}

/// A snapshot, and its free seats by price.
type Free = (Snapshot, Vec<(u32, u32)>);

fn free_seats(snapshot: &Snapshot) -> Vec<(u32, u32)> {
    let by_price = snapshot.range_by(CHEAPEST, ..).map(|row| row.unwrap());
    by_price.map(|(seat, row)| (row.price, seat)).collect()
}

/// O-96, O-106: snapshots see indexes as they were while calls change them, and take changes back.
#[test]
fn o_96_snapshots_are_read_while_indexes_change() {
    let db = open(64);
    let (held, is_over) = (Mutex::new(Vec::<Arc<Free>>::new()), AtomicBool::new(false));
    let read = || {
        let mut reads = 0;
        while !is_over.load(Ordering::Relaxed) {
            let any = held.lock().unwrap().get(reads % 3).cloned();
            reads += 1;
            let Some(any) = any else { continue };
            let (snapshot, free) = &*any;
            assert_eq!(&free_seats(snapshot), free, "epoch {}", snapshot.epoch());
            let rows = snapshot.range(SEATS, ..).map(|row| row.unwrap());
            let mut of_rows: Vec<_> = rows
                .filter(|(_, row)| row.owner.is_none())
                .map(|(seat, row)| (row.price, seat))
                .collect();
            of_rows.sort_unstable();
            assert_eq!(&of_rows, free, "epoch {}", snapshot.epoch());
        }
        reads
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        for round in 0..150_u32 {
            for at in 0..8 {
                let seat = (round * 7 + at * 5) % 15;
                let owner = (at % 3 == 2).then_some(u64::from(round % 4));
                db.call(Set { seat, price: (round + at) % 5, owner }).unwrap();
                let aborts = at % 2 == 0;
                let _ = db.call(Reprice { seat, price: 9, aborts });
            }
            let _ = db.call(Buy { user: 7 });
            let snapshot = db.snapshot().unwrap();
            let free = free_seats(&snapshot);
            let mut held = held.lock().unwrap();
            if held.len() > 2 {
                held.remove(round as usize % 3);
            }
            held.push(Arc::new((snapshot, free)));
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    db.check_indexes().unwrap();
}

/// O-100: after a close, and after a kill, indexes are those of the rows; a duplicate is named.
#[test]
fn o_100_indexes_are_built_when_a_database_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = options().open(&path).unwrap();
    for seat in 0..100 {
        db.call(Set { seat, price: seat % 7, owner: None }).unwrap();
    }
    for user in 0..30 {
        db.call(Buy { user: user % 2 }).unwrap();
    }
    db.call(Name { names: vec![name(1, "ann"), name(2, "bob")], predicts: false }).unwrap();
    let count = db.call(Count { user: 1, predicts: false }).unwrap();
    assert_eq!((count.0, count.1.len()), (70, 15));
    // What a kill leaves is what the files are now.
    let killed = dir.path().join("killed");
    std::fs::create_dir(&killed).unwrap();
    for file in std::fs::read_dir(&path).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), killed.join(file.file_name())).unwrap();
    }
    db.close().unwrap();

    // O-99: with other indexes what is logged means something else.
    let fewer = || {
        let options = Database::options().table(SEATS).table(USERS).index(CHEAPEST);
        let options = options.procedure::<Set>().procedure::<Buy>().procedure::<Reprice>();
        options.procedure::<Pass>().procedure::<Name>().procedure::<Count>()
    };
    let error = fewer().open(&killed).unwrap_err();
    assert!(error.is_schema() && error.to_string().contains("\"by owner\""), "{error}");
    for path in [&path, &killed] {
        let db = options().open(path).unwrap();
        assert_eq!(db.call(Count { user: 1, predicts: false }).unwrap(), count);
        db.call(Set { seat: 97, price: 50, owner: None }).unwrap();
        assert_eq!(db.memory().unwrap().snapshots, 0, "there is none that an entry is kept for");
        db.check_indexes().unwrap();
        db.close().unwrap();
    }
    // O-111: after a close any set of indexes will do, if what goes is named.
    const ALL_IN_TOWN: Index<String, u64, User, Hashed> =
        USERS.unique_index("all in town", |_, user| Some(user.city.clone()));
    let error = crate::common::refusal(&path, fewer());
    assert!(error.is_schema() && error.to_string().contains("\"by owner\""), "{error}");
    let gone = ["by owner", "by name", "by city"].into_iter();
    let given_up = gone.fold(fewer(), |options, name| options.drop_index(name));
    given_up.open(&path).unwrap().close().unwrap();
    let error = options().index(ALL_IN_TOWN).open(&path).unwrap_err();
    let text = error.to_string();
    assert!(error.is_limit() && text.contains("\"all in town\" would have two rows"), "{text}");
    assert_eq!(
        options().open(&path).unwrap().call(Count { user: 1, predicts: false }).unwrap(),
        count
    );
}

/// O-72: an epoch for which there is no space leaves indexes as they were.
#[test]
fn o_72_a_refused_epoch_leaves_indexes_as_they_were() {
    let options = options()
        .data_bytes_max(4 << 20)
        .tuning(Tuning { segment_bytes: 4096, ..Tuning::default() });
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    let set = |seat| db.call(Set { seat, price: 10 + seat % 7, owner: None });
    let refused = (0..100_000).find_map(|seat| Some((seat, set(seat).err()?)));
    let (seats, error) = refused.unwrap();
    assert!(error.is_limit() && seats > 100, "{error}");
    db.check_indexes().unwrap();
    let free = db.snapshot().unwrap().range_by(CHEAPEST, ..).count();
    assert_eq!(free, seats as usize);
    assert_eq!(db.call(Buy { user: 1 }).unwrap(), 0);
    db.check_indexes().unwrap();
}

/// Options that do not fit together.
#[test]
fn indexes_are_registered_with_their_tables() {
    const OTHER: Index<u32, u32, Seat> = SEATS.index("by owner", |seat, _| Some(*seat));
    let open = |options: Options| options.open_device(DeviceSpec::Dram).unwrap_err();
    let error = open(Database::options().table(USERS).index(BY_OWNER));
    assert!(error.is_mistake() && error.to_string().contains("\"seats\""), "{error}");
    let error = open(options().index(OTHER));
    assert!(error.is_mistake() && error.to_string().contains("has the name of"), "{error}");
}
