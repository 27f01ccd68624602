//! Numbers of reports: names with numbers in their order, percentiles of latencies, what went
//! through a device.

use pmem::Counters;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Number;

/// Names and numbers, as an object that keeps their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named(pub Vec<(String, Number)>);

impl Named {
    /// Adds a whole number.
    pub fn count(&mut self, name: &str, value: u64) {
        self.0.push((name.to_string(), value.into()));
    }

    /// Totals, then `..._per_txn` of each.
    pub fn with_ratios(totals: Vec<(&'static str, u64)>, transactions: u64) -> Self {
        let mut named = Self::default();
        for (name, value) in &totals {
            named.count(name, *value);
        }
        for (name, value) in totals {
            named.ratio(format!("{name}_per_txn"), value, transactions);
        }
        named
    }

    /// Adds a ratio; 0 where there is none.
    fn ratio(&mut self, name: String, of: u64, to: u64) {
        self.number(&name, ratio(of as f64, to as f64));
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, value: f64) {
        self.0.push((name.to_string(), Number::from_f64(value).unwrap_or(Number::from(0))));
    }

    /// The number with a name; 0 if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> f64 {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.and_then(|(_, value)| value.as_f64()).unwrap_or(0.0)
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Percentiles of the latency, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Half of all transactions were answered within this.
    pub p50: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
}

/// What went through a device.
pub fn add_counters(totals: &mut Vec<(&'static str, u64)>, device: &Counters) {
    totals.extend([
        ("lines_read", device.lines_read),
        ("blocks_read", device.blocks_read),
        ("bytes_stored", device.bytes_stored),
        ("bytes_stored_nt", device.bytes_stored_nt),
        ("lines_written", device.lines_written),
        ("blocks_written", device.blocks_written),
        ("flushes", device.flushes),
        ("fences", device.fences),
        ("log_bytes", device.log_bytes),
        ("store_orders", device.store_orders),
        ("media_bytes_written", device.media_bytes_written),
        ("added_ns", device.added_ns),
    ]);
}

/// 0 where there is nothing to divide by.
pub fn ratio(of: f64, to: f64) -> f64 {
    if to > 0.0 { of / to } else { 0.0 }
}

/// The middle of the values; between two, their mean.
///
/// # Panics
/// If there are no values.
pub fn median(values: Vec<f64>) -> f64 {
    Spread::of(values).expect("something was measured").median
}

/// A number over all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle; between two, their mean.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of the numbers of the rounds, if there is one.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        for (values, expected) in [
            (vec![7.0], 7.0),
            (vec![9.0, 1.0], 5.0),
            (vec![1000.0, 1.0, 3.0], 3.0),
            (vec![4.0, 1.0, 1000.0, 2.0], 3.0),
        ] {
            assert!((median(values) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn named_numbers_keep_their_order() {
        let mut named = Named::default();
        named.count("z", 1);
        named.count("a", 2);
        named.ratio("half".to_string(), 1, 2);
        named.ratio("none".to_string(), 1, 0);
        let text = serde_json::to_string(&named).expect("plain data");
        assert_eq!(text, r#"{"z":1,"a":2,"half":0.5,"none":0.0}"#);
    }
}
