//! The options of all that makes stores.

use bench::{IMAGE_LIMIT_BYTES_DEFAULT, LOG_LIMIT_BYTES_DEFAULT};
use clap::{Args, value_parser};

/// How far a store may grow.
#[derive(Debug, Clone, Args)]
pub struct LimitArguments {
    /// Bytes that the store may grow to: address space, not memory or disk [default: 64 GiB]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1 << 24..=1 << 46))]
    pub image_limit_bytes: Option<u64>,
    /// Bytes of memory for the store, on file only: what it holds may be more, and is read when it
    /// is needed. That of `serve` is for statements, too, and at least 33554432 [default: all of
    /// the store is in memory]
    #[arg(long, value_parser = value_parser!(u64).range(1 << 24..=1 << 42))]
    pub memory_limit_bytes: Option<u64>,
    /// Bytes that its input log may grow to: address space, not memory or disk
    #[arg(long, default_value_t = LOG_LIMIT_BYTES_DEFAULT,
          value_parser = value_parser!(u64).range(1 << 20..=1 << 46))]
    pub log_limit_bytes: u64,
}

impl LimitArguments {
    /// The bytes that a store may grow to of which nothing else is known.
    #[must_use]
    pub fn image_limit_bytes(&self) -> u64 {
        self.image_limit_bytes.unwrap_or(IMAGE_LIMIT_BYTES_DEFAULT)
    }
}
