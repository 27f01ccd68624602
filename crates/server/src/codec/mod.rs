//! PostgreSQL's messages, version 3.0 of the protocol: type, length, body. A length is looked at
//! before anything is kept for it, and a body is read within its own bytes only.

mod backend;
mod body;
mod frame;
mod frontend;
mod reader;
mod startup;

pub(crate) use backend::{Messages, Severity, vector_of};
pub(crate) use body::utf8;
pub(crate) use frame::{Ended, Frame, Frames};
pub(crate) use frontend::{Bind, Format, Message, Target};
pub(crate) use reader::{Closing, Half, Reader};
pub(crate) use startup::{Opening, Startup};
