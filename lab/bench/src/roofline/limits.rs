//! What each figure means, and what it was on the machine on which the goals were measured.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Which machine the reference figures are of.
pub(super) const REFERENCE: &str =
    "the machine on which the goals of docs/benchmarks.md were measured (Zen 4 EPYC, 2 cores)";

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Nanoseconds; less is better.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Microseconds; less is better.
    #[serde(rename = "us")]
    Microseconds,
    /// 10^9 bytes in a second; more is better.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// Instructions on words in a nanosecond; more is better.
    #[serde(rename = "operations/ns")]
    OperationsPerNanosecond,
}

impl Unit {
    /// As written behind a figure.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::GigabytesPerSecond => "GB/s",
            Self::OperationsPerNanosecond => "operations/ns",
        }
    }
}

/// One limit of a machine.
#[derive(Debug, PartialEq)]
pub struct Limit {
    /// Name for scripts, with the unit.
    pub name: &'static str,
    /// Name for people.
    pub what: &'static str,
    /// Unit of the figure and of the reference.
    pub unit: Unit,
    /// The reference machine's figure; absent where it was not measured there.
    pub reference: Option<f64>,
}

/// A limit and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Which limit.
    pub limit: &'static Limit,
    /// The median, in the limit's unit.
    pub value: f64,
}

impl Figure {
    /// This machine's figure divided by the reference machine's.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.limit.reference.map(|reference| self.value / reference)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("what", self.limit.what)?;
        map.serialize_entry("unit", &self.limit.unit)?;
        map.serialize_entry("value", &self.value)?;
        map.serialize_entry("reference", &self.limit.reference)?;
        map.serialize_entry("ratio", &self.ratio())?;
        map.end()
    }
}

/// Figures in the order in which they were measured; an object by their names in JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures(pub Vec<Figure>);

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|figure| (figure.limit.name, figure)))
    }
}

/// Declares the limits, and counts them.
macro_rules! limits {
    ($($id:ident = $name:literal, $what:literal, $unit:ident, $reference:expr;)+) => {
        $(pub(super) static $id: Limit = Limit {
            name: $name,
            what: $what,
            unit: Unit::$unit,
            reference: $reference,
        };)+
        /// All of them.
        static ALL: &[&Limit] = &[$(&$id),+];
    };
}

limits! {
    FIRST_TOUCH = "first_touch_2_mib_us",
        "first touch of 2 MiB of new memory", Microseconds, Some(212.0);
    READ_DEPENDENT = "read_64_b_dependent_ns",
        "random 64 B read, each depending on the one before", Nanoseconds, Some(231.0);
    READ_IN_FLIGHT = "read_64_b_16_in_flight_ns",
        "random 64 B read, 16 in flight", Nanoseconds, Some(12.0);
    READ_ALL_WORKERS = "read_64_b_16_in_flight_all_workers_ns",
        "the same by all workers at once, per worker", Nanoseconds, None;
    READ_1024 = "read_1024_b_10_in_flight_ns",
        "random 1,024 B read, 10 in flight", Nanoseconds, Some(135.0);
    STREAM_READ = "stream_read_gb_per_s",
        "streaming read, 1 thread", GigabytesPerSecond, Some(29.0);
    STREAM_WRITE = "stream_write_gb_per_s",
        "streaming write, 1 thread", GigabytesPerSecond, Some(26.0);
    STREAM_WRITE_NT = "stream_write_nt_gb_per_s",
        "streaming non-temporal write, 1 thread", GigabytesPerSecond, Some(28.0);
    STORE_FLUSH = "store_64_b_flush_fence_16_ns",
        "random 64 B store and flush, a fence every 16", Nanoseconds, Some(19.0);
    STORE_NT_64 = "store_64_b_nt_fence_16_ns",
        "random 64 B non-temporal store, a fence every 16", Nanoseconds, Some(8.0);
    STORE_NT_256 = "store_256_b_nt_fence_16_ns",
        "random 256 B non-temporal store, a fence every 16", Nanoseconds, Some(15.0);
    PLAIN_RMW = "plain_10_rmw_1000_b_us",
        "10 read-modify-writes, plain array, 1 mutex, 1 thread", Microseconds, Some(4.93);
    PLAIN_SMALLBANK = "plain_smallbank_us",
        "SmallBank, 1 M customers, plain arrays, 1 mutex, 1 thread", Microseconds, Some(0.204);
    PLAIN_SMALLBANK_HOT = "plain_smallbank_hot_us",
        "the same, 90 % of it on 1,000 hot customers", Microseconds, Some(0.104);
    OPERATIONS = "add_xor_8_words_operations_per_ns",
        "additions and exclusive ors on 8 words, 1 thread", OperationsPerNanosecond, None;
    SYNC_4_KIB = "overwrite_4_kib_fdatasync_us",
        "overwrite 4 KiB of a file and fdatasync", Microseconds, Some(125.0);
    SYNC_64_KIB = "overwrite_64_kib_fdatasync_us",
        "overwrite 64 KiB of a file and fdatasync", Microseconds, Some(168.0);
    SYNC_1_MIB = "overwrite_1_mib_fdatasync_us",
        "overwrite 1 MiB of a file and fdatasync", Microseconds, Some(400.0);
}

/// How many limits there are.
pub(super) const LIMITS_COUNT: u64 = ALL.len() as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_this_machine_by_the_reference_where_there_is_one() {
        let ratio = |limit, value| Figure { limit, value }.ratio();
        assert_eq!(ratio(&READ_IN_FLIGHT, 30.0), Some(2.5));
        assert_eq!(ratio(&STREAM_READ, 14.5), Some(0.5));
        assert_eq!(ratio(&READ_ALL_WORKERS, 30.0), None);
    }

    #[test]
    fn names_differ_and_end_in_their_unit() {
        for (index, limit) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != limit.name), "{limit:?}");
            let unit = limit.unit.name().to_lowercase().replace('/', "_per_");
            assert!(limit.name.ends_with(&format!("_{unit}")), "{limit:?}");
        }
    }

    #[test]
    fn figures_are_an_object_in_the_order_of_measurement() {
        let figures = [(&STORE_NT_64, 16.0), (&READ_ALL_WORKERS, 20.0)];
        let figures = Figures(figures.map(|(limit, value)| Figure { limit, value }).to_vec());
        let text = serde_json::to_string(&figures).expect("plain data");
        let expected = concat!(
            r#"{"store_64_b_nt_fence_16_ns":{"what":"random 64 B non-temporal store, a fence "#,
            r#"every 16","unit":"ns","value":16.0,"reference":8.0,"ratio":2.0},"#,
            r#""read_64_b_16_in_flight_all_workers_ns":{"what":"the same by all workers at once, "#,
            r#"per worker","unit":"ns","value":20.0,"reference":null,"ratio":null}}"#,
        );
        assert_eq!(text, expected);
    }
}
