//! Options at their extremes: some panicked out of `open`. What is out of range is an error that
//! names the option, its value, and what it may be.

use std::time::Duration;

use crate::common::{Deposit, directory, options};
use nvcaracal::{DeviceSpec, ErrorKind, Options, Tuning};

type Set = fn(Options, u64) -> Options;

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn segments(options: Options, segment_bytes: u64) -> Options {
    options.tuning(Tuning { segment_bytes, ..Tuning::default() })
}

fn log_segments(options: Options, log_segment_bytes: u64) -> Options {
    options.tuning(Tuning { log_segment_bytes, ..Tuning::default() })
}

const NUMERIC: [(&str, Set); 16] = [
    ("workers", |options, value| options.workers(size(value))),
    ("cache_bytes", Options::cache_bytes),
    ("checkpoint_every", Options::checkpoint_every),
    ("split_threshold", |options, value| {
        let split_threshold = u32::try_from(value).unwrap_or(u32::MAX);
        options.tuning(Tuning { split_threshold, ..Tuning::default() })
    }),
    ("serial_calls_max", |options, value| {
        options.tuning(Tuning { serial_calls_max: size(value), ..Tuning::default() })
    }),
    ("snapshot_bytes_max", Options::snapshot_bytes_max),
    ("contention_epochs", |options, value| options.contention_epochs(size(value))),
    ("epoch_calls_max", |options, value| {
        options.tuning(Tuning { epoch_calls_max: size(value), ..Tuning::default() })
    }),
    ("epoch_wait_max", |options, value| {
        let epoch_wait_max = Duration::from_secs(value);
        options.tuning(Tuning { epoch_wait_max, ..Tuning::default() })
    }),
    ("queue_calls_max", |options, value| {
        options.tuning(Tuning { queue_calls_max: size(value), ..Tuning::default() })
    }),
    ("queue_bytes_max", |options, value| {
        options.tuning(Tuning { queue_bytes_max: size(value), ..Tuning::default() })
    }),
    ("segment_bytes", segments),
    ("log_segment_bytes", log_segments),
    ("data_bytes_max", Options::data_bytes_max),
    ("log_bytes_max", Options::log_bytes_max),
    ("procedure_stack_bytes", |options, value| {
        options.tuning(Tuning { procedure_stack_bytes: size(value), ..Tuning::default() })
    }),
];

#[test]
fn each_numeric_option_works_or_says_what_it_may_be() {
    let directory = directory();
    for (name, set) in NUMERIC {
        for value in [0, 1, u64::MAX] {
            let path = directory.path().join(format!("{name} {value}"));
            for device in [DeviceSpec::Dram, DeviceSpec::File(path)] {
                match set(options(), value).open_device(device) {
                    Ok(db) => {
                        assert_eq!(db.call(Deposit { account: 1, cents: 3 }).unwrap(), 3);
                        db.close().unwrap();
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert_eq!(error.kind(), ErrorKind::Limit, "{text}");
                        let start = format!("{name} is {value}, must be ");
                        let has_range = text.contains("from ") && text.contains(" to ");
                        assert!(text.starts_with(&start) && has_range, "{text}");
                    }
                }
            }
        }
    }
}

/// The ends of the ranges of space, together with others: there may be no room, which is said.
#[test]
fn the_least_and_the_most_space_can_be_asked_for() {
    let spaces: [Set; 4] = [
        |options, segment| segments(options.data_bytes_max(1 << 20), segment),
        |options, segment| segments(options.data_bytes_max(1 << 42), segment),
        |options, segment| log_segments(options.log_bytes_max(16 << 10), segment),
        |options, segment| log_segments(options.log_bytes_max(1 << 42), segment),
    ];
    for set in spaces {
        for segment_bytes in [64 << 10, 16 << 20] {
            let opened = set(options(), segment_bytes).open_device(DeviceSpec::Dram);
            let called = opened.and_then(|db| db.call(Deposit { account: 1, cents: 3 }));
            assert!(
                called.as_ref().is_ok_and(|cents| *cents == 3) || called.unwrap_err().is_full()
            );
        }
    }
}
