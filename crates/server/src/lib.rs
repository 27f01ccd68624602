//! SQL on the library: statements of clients become calls, and reads beside them; and PostgreSQL's
//! protocol, in which clients say them.
//!
//! ```text
//! listen -> session (codec, auth) -> text -> Connection::prepare -> Statement
//!                                         -> Connection::submit -> Pending -> Answer -> codec
//! ```
//!
//! Module [`store`] joins crate `sql` with the library. It knows no sockets and no protocol; the
//! others know nothing of rows. Module `databases` opens and closes stores for sessions.

#![forbid(unsafe_code)]

mod auth;
mod cancel;
mod codec;
mod config;
mod databases;
mod limits;
mod listen;
mod log;
mod session;
mod shared;
pub mod store;
mod threads;

pub use config::{ServeError, ServerOptions};
pub use databases::{Databases, FolderOptions};
pub use listen::{Listening, Sockets, serve, serve_at};
