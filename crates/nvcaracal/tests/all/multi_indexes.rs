//! Indexes in which a row has several keys.

use std::collections::{BTreeMap, BTreeSet};

use nvcaracal::{
    Abort, Data, Database, DeviceSpec, Index, Options, Procedure, Snapshot, Stop, Table,
    Transaction, WriteSet,
};
use sim::history::Random;

const ARTICLES: Table<u32, String> = Table::ordered("articles");
const BY_WORD: Index<str, u32, String> =
    ARTICLES.multi_index("by word", |_, text| words(text).collect());
/// The words that begin with a hash sign, each of one article.
const BY_TITLE: Index<str, u32, String> = ARTICLES.unique_multi_index("by title", |_, text| {
    words(text).filter(|word| word.starts_with('#')).collect()
});

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(' ').filter(|word| !word.is_empty()).map(String::from)
}

/// Gives an article a text; none deletes it.
#[derive(Debug, Clone, PartialEq, Data)]
struct Write {
    article: u32,
    text: Option<String>,
}

impl Procedure for Write {
    const NAME: &'static str = "write";
    type Output = u64;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ARTICLES, self.article);
    }

    /// Answers how often the words are used.
    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        match &self.text {
            Some(text) => tx.insert(ARTICLES, self.article, text)?,
            None if tx.get(ARTICLES, self.article)?.is_some() => {
                tx.delete(ARTICLES, self.article)?;
            }
            None => {}
        }
        let mut uses = 0;
        for word in words(self.text.as_deref().unwrap_or_default()) {
            uses += tx.range_by(BY_WORD, &word[..]..=&word[..]).count() as u64;
        }
        Ok(uses)
    }
}

fn options() -> Options {
    let options = Database::options().table(ARTICLES).index(BY_WORD).index(BY_TITLE);
    options.procedure::<Write>().workers(2).data_bytes_max(1 << 28).log_bytes_max(1 << 28)
}

type Articles = BTreeMap<u32, String>;

fn write(article: u32, text: &str) -> Write {
    Write { article, text: Some(text.into()) }
}

fn assert_shows(snapshot: &Snapshot, articles: &Articles) {
    let of_words: BTreeSet<(String, u32)> = articles
        .iter()
        .flat_map(|(&article, text)| words(text).map(move |word| (word, article)))
        .collect();
    let expected: Vec<u32> = of_words.iter().map(|&(_, article)| article).collect();
    let found: Vec<u32> = snapshot.range_by(BY_WORD, ..).map(|row| row.unwrap().0).collect();
    assert_eq!(found, expected);
    for word in ["a", "b", "c"] {
        let found: Vec<u32> =
            snapshot.range_by(BY_WORD, word..=word).map(|row| row.unwrap().0).collect();
        let of_word = of_words.iter().filter(|entry| entry.0 == word);
        assert_eq!(found, of_word.map(|entry| entry.1).collect::<Vec<_>>(), "{word}");
    }
}

/// O-96, O-100: random texts, snapshots that are held, deletes and an open agree with a model.
#[test]
fn o_96_a_row_is_under_each_of_its_keys_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut random = Random::new(5);
    let mut articles = Articles::new();
    for _ in 0..2 {
        let db = options().open(&path).unwrap();
        assert_shows(&db.snapshot().unwrap(), &articles);
        let mut held = Vec::new();
        for _ in 0..30 {
            let writes: Vec<Write> = (0..1 + random.below(19))
                .map(|_| {
                    let some = random.below(5) > 0;
                    let word = |_| ["a", "b", "c", "dd", "e"][random.below(5) as usize];
                    let text: Vec<_> = (0..4).map(word).collect();
                    let text = some.then(|| text.join(" "));
                    Write { article: random.below(12) as u32, text }
                })
                .collect();
            let mut batch = db.batch();
            let added: Vec<_> = writes.iter().map(|write| batch.add(write).unwrap()).collect();
            let submitted = batch.submit().unwrap();
            for (Write { article, text }, added) in writes.into_iter().zip(added) {
                submitted.ticket(added).wait().unwrap();
                match text {
                    Some(text) => articles.insert(article, text),
                    None => articles.remove(&article),
                };
            }
            held.push((db.snapshot().unwrap(), articles.clone()));
            db.check_indexes().unwrap();
        }
        held.iter().for_each(|(snapshot, articles)| assert_shows(snapshot, articles));
        drop(held);
        db.close().unwrap();
    }
}

/// O-98: each of the keys is unique, and those of a call that fails are as before.
#[test]
fn o_98_each_of_several_keys_is_unique() {
    let db = options().open_device(DeviceSpec::Dram).unwrap();
    db.call(write(1, "#x #y a a")).unwrap();
    assert_eq!(db.call(write(2, "#z a")).unwrap(), 3, "#z of one article, a of two");
    let error = db.call(write(2, "#z #y b")).unwrap_err();
    assert_eq!(error.abort().unwrap().code, Abort::NOT_UNIQUE);
    let expected = Articles::from([(1, "#x #y a a".to_string()), (2, "#z a".to_string())]);
    assert_shows(&db.snapshot().unwrap(), &expected);
    db.call(write(1, "#x a")).unwrap();
    db.call(write(2, "#z #y b")).unwrap();
    assert_eq!(db.snapshot().unwrap().get_by(BY_TITLE, "#y").unwrap().unwrap().0, 2);
    db.check_indexes().unwrap();
}

/// An index of several keys is another program than one of the same name with one.
#[test]
fn several_keys_are_told_from_one_in_the_log() {
    const ONE: Index<str, u32, String> = ARTICLES.index("by word", |_, text| words(text).next());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let options = Database::options().table(ARTICLES).procedure::<Write>();
    let with = |index| options.clone().index(index).index(BY_TITLE);
    let db = with(BY_WORD).open(&path).unwrap();
    db.call(write(1, "a b")).unwrap();
    // As a kill would leave it: the call is in the log.
    let copy = directory.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(&path).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let error = with(ONE).open(&copy).unwrap_err().to_string();
    assert!(error.contains("by word"), "{error}");
    drop(db);
    let db = with(BY_WORD).open(&copy).unwrap();
    assert_shows(&db.snapshot().unwrap(), &Articles::from([(1, "a b".to_string())]));
}
