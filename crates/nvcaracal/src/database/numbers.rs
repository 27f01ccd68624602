//! Which number a procedure has in a database, by its type: each call that is submitted asks.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use crate::call::procedure::Registration;
use crate::data::tags::Tags;
use crate::error::{Error, Result};

/// Numbers of procedures by their types.
pub(crate) struct Numbers {
    /// By hashes of the types.
    tags: Tags,
    /// By their numbers; absent of procedures that are objects.
    types: Vec<Option<TypeId>>,
    /// The numbers of those by their names.
    objects: BTreeMap<&'static str, u16>,
}

impl Numbers {
    pub(crate) fn new(registered: &[(Registration, u16)]) -> Result<Self> {
        let typed = registered.iter().filter_map(|(of, number)| Some((of.type_id()?, *number)));
        let tags: Vec<_> = typed.map(|(id, number)| (tag_of(id), number)).collect();
        let tags = Tags::new(&tags).ok_or_else(|| {
            Error::mistake("two types of procedures have the same hash: rename one")
        })?;
        let mut types: Vec<_> =
            registered.iter().map(|(of, number)| (*number, of.type_id())).collect();
        types.sort_unstable();
        assert!(types.is_sorted_by(|a, b| a.0 < b.0), "two procedures have one number");
        let objects = registered.iter().filter(|(of, _)| of.type_id().is_none());
        let objects = objects.map(|(of, number)| (of.name, *number)).collect();
        Ok(Self { tags, types: types.into_iter().map(|(_, id)| id).collect(), objects })
    }

    /// The number of a type's procedure, if it was registered.
    #[inline]
    pub(crate) fn of(&self, procedure: TypeId) -> Option<u16> {
        let number = self.tags.find(tag_of(procedure))?;
        (self.types[usize::from(number)] == Some(procedure)).then_some(number)
    }

    /// The number of a procedure that is an object.
    pub(crate) fn of_object(&self, name: &str) -> Option<u16> {
        self.objects.get(name).copied()
    }

    /// Whether a procedure of this number is an object.
    #[inline]
    pub(crate) fn is_object(&self, number: u16) -> bool {
        self.types.get(usize::from(number)).is_some_and(Option::is_none)
    }
}

/// A type is a hash already; this takes the part of it that it has for hash tables.
#[inline]
fn tag_of(id: TypeId) -> u64 {
    struct Word(u64);

    impl Hasher for Word {
        fn write_u64(&mut self, word: u64) {
            self.0 = word;
        }

        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
            }
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    let mut word = Word(0);
    id.hash(&mut word);
    word.finish()
}
