//! The server as clients see it, in memory: over TCP, with a driver and by single bytes.

mod copy;
mod driver;
mod hostile;
mod passwords;
mod protocol;
mod psql;
mod support;
