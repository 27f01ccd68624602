//! SQL on the library: statements of clients become calls, and reads beside them.
//!
//! ```text
//! text -> Connection::prepare -> Statement -> Connection::submit -> Pending -> Answer
//! ```
//!
//! Module [`store`] joins crate `sql` with the library. It knows no sockets and no protocol.

#![forbid(unsafe_code)]

pub mod store;
