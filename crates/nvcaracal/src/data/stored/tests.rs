use proptest::prelude::*;

use std::fmt;

use nvcaracal_derive::Data;

use super::*;

crate::plain! {
    struct One { cents: u64 }
    struct Two was One { cents: u64, seats: u64 }
    struct Three was Two { cents: [u8; 7] }
    struct Four was Three { cents: [u8; 6] }
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Note {
    text: String,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = Note)]
struct NoteWithTags {
    text: String,
    tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = NoteWithTags)]
struct NoteAgain {
    text: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = String)]
struct Name {
    text: String,
    bytes: Vec<u8>,
}

impl From<One> for Two {
    fn from(One { cents }: One) -> Self {
        Self { cents, seats: 1 }
    }
}

impl From<Two> for Three {
    fn from(Two { cents, seats }: Two) -> Self {
        let mut bytes = [seats as u8; 7];
        bytes[0] = cents as u8;
        Self { cents: bytes }
    }
}

impl From<Three> for Four {
    fn from(Three { cents }: Three) -> Self {
        Self { cents: *cents.first_chunk().expect("six of seven") }
    }
}

impl From<Note> for NoteWithTags {
    fn from(Note { text }: Note) -> Self {
        Self { text, tags: Vec::new() }
    }
}

impl From<NoteWithTags> for NoteAgain {
    fn from(NoteWithTags { text, tags }: NoteWithTags) -> Self {
        Self { text: [text, tags.concat()].concat().into_bytes() }
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self { text, bytes: Vec::new() }
    }
}

fn stored<V: Data>(value: &V) -> Vec<u8> {
    with_stored(value, <[u8]>::to_vec).unwrap()
}

/// A value is read as what it was, converted, and nothing else is taken for it.
fn check<Old: Data, New: Data + From<Old> + PartialEq + fmt::Debug>(old: Old) {
    let bytes = stored(&old);
    assert_eq!(read::<New>(&bytes), Some(New::from(old)), "{bytes:?}");
}

/// O-93: of each version in the store each later one is read; lengths are those that are promised.
#[test]
fn o_93_each_version_is_read_by_those_after_it() {
    let (one, two) = (One { cents: 7 }, Two { cents: 8, seats: 9 });
    assert_eq!(stored(&one), 7u64.to_le_bytes(), "as without versions");
    assert_eq!(stored(&two).last(), Some(&1));
    check::<One, Two>(one);
    check::<Two, Three>(two);
    assert_eq!(read::<Three>(&stored(&one)), Some(Three::from(Two::from(one))));
    assert_eq!(read::<Four>(&stored(&one)), Some(Four::from(Three::from(Two::from(one)))));
    // With its version a `Three` would have as many bytes as a `One`.
    let three = Three { cents: [3; 7] };
    assert_eq!(stored(&three), [3, 3, 3, 3, 3, 3, 3, 2, 130]);
    check::<Three, Four>(three);
    assert_eq!(stored(&Four { cents: [4; 6] }), [4, 4, 4, 4, 4, 4, 3]);
    assert_eq!(read::<Three>(&stored(&Four { cents: [4; 6] })), None, "written by a newer program");
    let longest =
        [bytes_max::<One>(), bytes_max::<Two>(), bytes_max::<Three>(), bytes_max::<Four>()];
    assert_eq!(longest, [Some(8), Some(17), Some(17), Some(17)]);
    assert_eq!(versions::<Three>().len(), 3);
    assert_eq!(versions::<Three>()[..2], versions::<Two>());
    assert_eq!((bytes_max::<Note>(), bytes_max::<NoteWithTags>()), (None, None));
    for damaged in [&[][..], &[130], &[1, 129], &[4; 7], &[2, 130], &[0; 5]] {
        assert_eq!(read::<Three>(damaged), None, "{damaged:?}");
    }
}

proptest! {
    /// O-93: whatever is in a value, its version is that of its writer.
    #[test]
    fn o_93_no_value_is_taken_for_one_of_another_version(
        text in "\\PC{0,9}",
        tags in prop::collection::vec("[a-c\0\u{1}]{0,3}", 0..4),
        bytes in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        check::<Note, NoteWithTags>(Note { text: text.clone() });
        let tagged = NoteWithTags { text: text.clone(), tags };
        prop_assert_eq!(read::<NoteWithTags>(&stored(&tagged)), Some(tagged.clone()));
        check::<NoteWithTags, NoteAgain>(tagged);
        let again = NoteAgain { text: bytes.clone() };
        prop_assert_eq!(read::<NoteAgain>(&stored(&again)), Some(again));
        check::<String, Name>(text.clone());
        let name = Name { text, bytes };
        prop_assert_eq!(read::<Name>(&stored(&name)), Some(name));
    }

    /// O-94: bytes of any origin are read or refused, without a panic, and what is read is stored
    /// in a way that is read again.
    #[test]
    fn o_94_any_bytes_are_a_value_or_none(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Some(value) = read::<Four>(&bytes) {
            prop_assert_eq!(read::<Four>(&stored(&value)), Some(value));
        }
        if let Some(value) = read::<NoteAgain>(&bytes) {
            prop_assert_eq!(read::<NoteAgain>(&stored(&value)), Some(value));
        }
        if let Some(value) = read::<Name>(&bytes) {
            prop_assert_eq!(read::<Name>(&stored(&value)), Some(value));
        }
    }
}
