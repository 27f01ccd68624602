//! Options of `bench peers`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use peers::{Chosen, Database};

/// What callers do in which databases.
#[derive(Debug, Args)]
pub(crate) struct PeersArguments {
    /// Only updates of all rows, by 1 and by 64 callers, in one round of 2 seconds each
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only these databases [default: all that this build has]
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',',
          value_parser = database_parser())]
    pub(crate) database: Vec<Database>,
    /// Seconds of each measurement, 0.01 to 3600 [default: 1, with --quick 2]
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// How often each measurement is made, 1 to 1000 [default: 3, with --quick 1]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: Option<u64>,
    /// Rows of the table, 1 to 1000000000
    #[arg(long, default_value_t = 100_000)]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) rows: u64,
    /// Instead of --rows: so many that keys and values are FACTOR times the limit of --memory, as
    /// in 4x
    #[arg(long, value_name = "FACTORx", requires = "memory", conflicts_with = "rows",
          value_parser = factor)]
    pub(crate) data: Option<f64>,
    /// Bytes of each value, 16 to 65536
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(16..=1 << 16))]
    pub(crate) value_bytes: u32,
    /// Callers at the same time, each 1 to 4000 [default: 1,64]
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',',
          value_parser = value_parser!(u64).range(1..=4000))]
    pub(crate) clients: Vec<u64>,
    /// Operations of a transaction, each on another row, 1 to 1000
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) operations: u64,
    /// Of ten operations so many read, and the others update: the ten of one transaction, or of
    /// several shorter ones; 0 to 10 [default: 10,5,0, with --quick 0]
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',',
          value_parser = value_parser!(u64).range(0..=10))]
    pub(crate) read_ratio: Vec<u64>,
    /// From how many rows all operations choose, all, or zipf: all by Zipf's law with an exponent
    /// of 0.9; what only reads is not measured on a number of rows [default: all,10,1 as far as a
    /// transaction has no more operations, with --quick all]
    #[arg(long, value_name = "ROWS[,ROWS...]", value_delimiter = ',', value_parser = chosen)]
    pub(crate) hot: Vec<Chosen>,
    /// Limit of memory of each database's process, pages of files included, as in 300MiB or 1GiB;
    /// needs a memory control group below which groups can be made
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// The memory control group below which they are made, a directory of /sys/fs/cgroup [default:
    /// that of this process]
    #[arg(long, value_name = "DIR", requires = "memory")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Where the databases are made, in a directory of their own that is removed; on the disk that
    /// is to be measured [default: the working directory]
    #[arg(long)]
    pub(crate) directory: Option<PathBuf>,
    /// Write the result as one JSON object; `-`: to standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

fn chosen(text: &str) -> Result<Chosen, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(Chosen::All),
        ("zipf", _) => Ok(Chosen::Zipf),
        (_, Ok(rows)) if rows > 0 => Ok(Chosen::Hot(rows)),
        _ => Err("a number of rows, at least 1, or all, or zipf".into()),
    }
}

fn database_parser() -> impl TypedValueParser<Value = Database> {
    PossibleValuesParser::new(Database::ALL.map(Database::name)).map(|name| {
        let named = Database::ALL.into_iter().find(|database| database.name() == name);
        named.expect("one of those offered")
    })
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').and_then(|factor| factor.parse().ok());
    let factor = factor.filter(|factor| (0.001..=1000.0).contains(factor));
    factor.ok_or_else(|| "a factor from 0.001x to 1000x".into())
}

/// A number of bytes with its unit.
fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let size = UNITS.iter().find_map(|(unit, shift)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(1 << shift)
    });
    let size = size.filter(|bytes| *bytes >= 1 << 20);
    size.ok_or_else(|| "a size of at least 1MiB, in KiB, MiB or GiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_factors_have_units() {
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("300MiB"), Ok(300 << 20));
        for wrong in ["1", "1GB", "1000KiB", "-1GiB", "GiB", "99999999999GiB"] {
            size(wrong).unwrap_err();
        }
        assert_eq!(factor("4x"), Ok(4.0));
        for wrong in ["4", "x", "0x", "infx", "NaNx"] {
            factor(wrong).unwrap_err();
        }
        assert_eq!(chosen("all"), Ok(Chosen::All));
        assert_eq!(chosen("zipf"), Ok(Chosen::Zipf));
        assert_eq!(chosen("10"), Ok(Chosen::Hot(10)));
        chosen("0").unwrap_err();
    }
}
