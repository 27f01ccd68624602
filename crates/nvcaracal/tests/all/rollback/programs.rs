//! Programs that differ in what a deploy changes.

use std::collections::BTreeMap;

use nvcaracal::{Data, Database, HashTable, Index, Options, Stop, Table, Transaction, procedure};

type Rows = BTreeMap<u64, u64>;

/// Something in which programs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    /// A table is renamed.
    Name,
    /// The rows of a table have a field more.
    Field,
    /// A table has an index, another one, none, or none any more.
    Index,
    /// There is a table, it is not known yet, it goes, or it is left alone.
    Extra,
    /// Values are longer.
    Long,
    /// A procedure has another body, or is not there.
    Pay,
    /// A procedure has another name, or is not there.
    Tip,
}

impl Thing {
    pub(super) const ALL: [Self; 7] =
        [Self::Name, Self::Field, Self::Index, Self::Extra, Self::Long, Self::Pay, Self::Tip];

    pub(super) fn levels(self) -> usize {
        match self {
            Self::Name | Self::Field | Self::Long => 2,
            Self::Index => INDEXES.len(),
            Self::Extra => EXTRAS.len(),
            Self::Pay => PAYS.len(),
            Self::Tip => TIPS.len(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexed {
    Lacks,
    Plain,
    /// And keeps the plain one.
    Unique,
    /// By other keys, and keeps the plain one.
    Other,
    Drops,
}
const INDEXES: [Indexed; 5] =
    [Indexed::Lacks, Indexed::Plain, Indexed::Unique, Indexed::Other, Indexed::Drops];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Lacks,
    Has,
    Drops,
    Ignores,
}
const EXTRAS: [Extra; 4] = [Extra::Lacks, Extra::Has, Extra::Drops, Extra::Ignores];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pay {
    First,
    /// Keeps the first.
    Second,
    Lacks,
}
const PAYS: [Pay; 3] = [Pay::First, Pay::Second, Pay::Lacks];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tip {
    Tips,
    /// Keeps the first.
    Gives,
    Lacks,
}
const TIPS: [Tip; 3] = [Tip::Tips, Tip::Gives, Tip::Lacks];

/// A program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) is_renamed: bool,
    pub(super) has_field: bool,
    pub(super) index: Indexed,
    pub(super) extra: Extra,
    pub(super) is_long: bool,
    pub(super) pay: Pay,
    pub(super) tip: Tip,
}

const INDEXED: Table<u64, u64> = Table::ordered("indexed");
const PLAIN: Index<u64, u64, u64> = INDEXED.index("by value", |_, value| Some(*value));
const UNIQUE: Index<u64, u64, u64> = INDEXED.unique_index("by value", |_, value| Some(*value));
const OTHER: Index<i64, u64, u64> = INDEXED.index("by value", |_, value| Some(*value as i64));
const EXTRA: HashTable<u64, u64> = Table::hash("extra");
const PAID: HashTable<u64, u64> = Table::hash("paid");

#[procedure]
fn put_indexed(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
    tx.insert(INDEXED, key, &value)
}

#[procedure]
fn put_extra(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
    tx.insert(EXTRA, key, &value)
}

/// Answers what was answered before to this key, or with the version that pays.
fn pay_once(tx: &mut Transaction, key: u64, version: u64) -> Result<u64, Stop> {
    if let Some(answer) = tx.get(PAID, key)? {
        return Ok(answer);
    }
    let answer = key * 100 + version;
    tx.insert(PAID, key, &answer)?;
    Ok(answer)
}

mod before {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Data)]
    pub(super) struct Typed {
        pub(super) value: u64,
    }

    pub(super) const NAMES: Table<u64, u64> = Table::ordered("names");
    pub(super) const TYPED: HashTable<u64, Typed> = Table::hash("typed");
    pub(super) const LONG: HashTable<u64, String> = Table::hash("long").with_value_bytes(40);

    #[procedure]
    pub(super) fn put_name(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
        tx.insert(NAMES, key, &value)
    }

    #[procedure]
    pub(super) fn put_typed(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
        tx.insert(TYPED, key, &Typed { value })
    }

    #[procedure]
    pub(super) fn put_long(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
        tx.insert(LONG, key, &value.to_string())
    }

    #[procedure]
    pub(super) fn pay(tx: &mut Transaction, key: u64) -> Result<u64, Stop> {
        pay_once(tx, key, 1)
    }

    #[procedure]
    pub(super) fn tip(tx: &mut Transaction, key: u64) -> Result<u64, Stop> {
        pay_once(tx, key, 3)
    }
}

mod after {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Data)]
    #[data(was = before::Typed)]
    pub(super) struct Typed {
        pub(super) value: u64,
        pub(super) note: Option<String>,
    }

    impl From<before::Typed> for Typed {
        fn from(before::Typed { value }: before::Typed) -> Self {
            Self { value, note: None }
        }
    }

    pub(super) const NAMES: Table<u64, u64> = Table::ordered("titles");
    pub(super) const TYPED: HashTable<u64, Typed> = Table::hash("typed");
    pub(super) const LONG: HashTable<u64, String> = Table::hash("long").with_value_bytes(400);

    #[procedure]
    pub(super) fn put_name(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
        tx.insert(NAMES, key, &value)
    }

    #[procedure(version = 2, was = before::PutTyped)]
    pub(super) fn put_typed(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
        tx.insert(TYPED, key, &Typed { value, note: Some("after".into()) })
    }

    #[procedure]
    pub(super) fn put_long(tx: &mut Transaction, key: u64, value: u64) -> Result<(), Stop> {
        tx.insert(LONG, key, &value.to_string())
    }

    #[procedure(version = 2, was = before::Pay)]
    pub(super) fn pay(tx: &mut Transaction, key: u64) -> Result<u64, Stop> {
        pay_once(tx, key, 2)
    }

    #[procedure(was = before::Tip)]
    pub(super) fn give(tx: &mut Transaction, key: u64) -> Result<u64, Stop> {
        pay_once(tx, key, 4)
    }
}

impl Program {
    /// A program by the levels of its things.
    pub(super) fn of(level: impl Fn(Thing) -> usize) -> Self {
        Self {
            is_renamed: level(Thing::Name) > 0,
            has_field: level(Thing::Field) > 0,
            index: INDEXES[level(Thing::Index)],
            extra: EXTRAS[level(Thing::Extra)],
            is_long: level(Thing::Long) > 0,
            pay: PAYS[level(Thing::Pay)],
            tip: TIPS[level(Thing::Tip)],
        }
    }

    pub(super) fn options(self) -> Options {
        let base = Database::options().workers(2).checkpoint_every(1_000_000);
        let base = base.data_bytes_max(1 << 26).log_bytes_max(1 << 26);
        let base = base.table(INDEXED).table(PAID).procedure::<PutIndexed>();
        let base = match self.is_renamed {
            false => base.table(before::NAMES).procedure::<before::PutName>(),
            true => {
                let base = base.rename_table("names", "titles");
                base.table(after::NAMES).procedure::<after::PutName>()
            }
        };
        let base = match self.has_field {
            false => base.table(before::TYPED).procedure::<before::PutTyped>(),
            true => base.table(after::TYPED).procedure::<after::PutTyped>(),
        };
        let base = match self.is_long {
            false => base.table(before::LONG).procedure::<before::PutLong>(),
            true => base.table(after::LONG).procedure::<after::PutLong>(),
        };
        self.with_index(self.with_procedures(base))
    }

    fn with_index(self, base: Options) -> Options {
        match self.index {
            Indexed::Lacks => base,
            Indexed::Plain => base.index(PLAIN),
            Indexed::Unique => base.index(UNIQUE).index_was(PLAIN),
            Indexed::Other => base.index(OTHER).index_was(PLAIN),
            Indexed::Drops => base.drop_index("by value"),
        }
    }

    fn with_procedures(self, base: Options) -> Options {
        let base = match self.extra {
            Extra::Lacks => base,
            Extra::Has => base.table(EXTRA).procedure::<PutExtra>(),
            Extra::Drops => base.drop_table("extra").procedure_was::<PutExtra>(),
            Extra::Ignores => base.ignore_table("extra").procedure_was::<PutExtra>(),
        };
        let base = match self.pay {
            Pay::First => base.procedure::<before::Pay>(),
            Pay::Second => base.procedure::<after::Pay>(),
            Pay::Lacks => base,
        };
        match self.tip {
            Tip::Tips => base.procedure::<before::Tip>(),
            Tip::Gives => base.procedure::<after::Give>(),
            Tip::Lacks => base,
        }
    }

    /// A row in each table that all programs have.
    pub(super) fn put(self, db: &Database, key: u64, value: u64) {
        db.call(PutIndexed { key, value }).unwrap();
        match self.is_renamed {
            false => db.call(before::PutName { key, value }).unwrap(),
            true => db.call(after::PutName { key, value }).unwrap(),
        }
        match self.has_field {
            false => db.call(before::PutTyped { key, value }).unwrap(),
            true => db.call(after::PutTyped { key, value }).unwrap(),
        }
        match self.is_long {
            false => db.call(before::PutLong { key, value }).unwrap(),
            true => db.call(after::PutLong { key, value }).unwrap(),
        }
    }

    pub(super) fn put_extra(self, db: &Database, key: u64, value: u64) {
        db.call(PutExtra { key, value }).unwrap();
    }

    pub(super) fn pay(self, db: &Database, key: u64) -> u64 {
        match self.pay {
            Pay::First => db.call(before::Pay { key }).unwrap(),
            _ => db.call(after::Pay { key }).unwrap(),
        }
    }

    pub(super) fn tip(self, db: &Database, key: u64) -> u64 {
        match self.tip {
            Tip::Tips => db.call(before::Tip { key }).unwrap(),
            _ => db.call(after::Give { key }).unwrap(),
        }
    }

    pub(super) fn names(self, db: &Database) -> Rows {
        let names = if self.is_renamed { after::NAMES } else { before::NAMES };
        db.snapshot().unwrap().range(names, ..).collect::<Result<_, _>>().unwrap()
    }

    pub(super) fn typed(self, db: &Database) -> Rows {
        let now = db.snapshot().unwrap();
        let rows: Result<Rows, _> = match self.has_field {
            false => now.all(before::TYPED).map(|row| row.map(|(k, v)| (k, v.value))).collect(),
            true => now.all(after::TYPED).map(|row| row.map(|(k, v)| (k, v.value))).collect(),
        };
        rows.unwrap()
    }

    /// By the index, if there is one.
    pub(super) fn indexed(self, db: &Database) -> Rows {
        let now = db.snapshot().unwrap();
        let of_index: Option<Result<Rows, _>> = match self.index {
            Indexed::Lacks | Indexed::Drops => None,
            Indexed::Plain => Some(now.range_by(PLAIN, ..).collect()),
            Indexed::Unique => Some(now.range_by(UNIQUE, ..).collect()),
            Indexed::Other => Some(now.range_by(OTHER, ..).collect()),
        };
        let rows: Rows = now.range(INDEXED, ..).collect::<Result<_, _>>().unwrap();
        if let Some(of_index) = of_index {
            assert_eq!(of_index.unwrap(), rows);
        }
        rows
    }

    pub(super) fn long(self, db: &Database) -> Rows {
        let long = if self.is_long { after::LONG } else { before::LONG };
        let rows = db.snapshot().unwrap().all(long).collect::<Result<Vec<_>, _>>().unwrap();
        rows.into_iter().map(|(key, text)| (key, text.parse().unwrap())).collect()
    }

    pub(super) fn extra_rows(self, db: &Database) -> Rows {
        db.snapshot().unwrap().all(EXTRA).collect::<Result<_, _>>().unwrap()
    }

    pub(super) fn paid(self, db: &Database) -> Rows {
        db.snapshot().unwrap().all(PAID).collect::<Result<_, _>>().unwrap()
    }
}
