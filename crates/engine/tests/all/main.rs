//! The engine from outside: everything that has to hold whatever runs in it.

mod append;
mod bad_input;
mod charged_reads;
mod crash;
mod damage;
mod differences;
mod full_log;
mod ignored_mistakes;
mod left_out;
mod log_records;
mod many;
mod parts;
mod past;
mod pieces;
mod properties;
mod repair;
mod schedules;
mod serial;
mod smoke;
mod state_hash;
mod steady_space;
mod support;
mod tables;
mod versions;
mod visibility;
mod work_counts;
