//! Every engine on every workload: the serializability check, crashes, and bugs that both must
//! find.

mod batches;
mod crash;
mod dbx;
mod pisces;
mod scramble;
mod serial;
mod support;
