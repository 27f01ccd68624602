//! The command line, run as a user runs it; and checks of the repository.

mod ablation;
mod actors;
mod bad_input;
mod clients;
mod counters;
mod crash_and_return;
mod designs;
mod device;
mod dump;
mod full_disk;
mod interrupt;
mod kill;
mod load;
mod peers;
mod recover_after_run;
mod repair;
mod report;
mod reproduce;
mod resume;
mod rivals;
mod roofline;
mod same_digest;
mod sim;
mod state_hash;
mod support;
