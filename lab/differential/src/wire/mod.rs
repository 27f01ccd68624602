//! A client of PostgreSQL's protocol that keeps every message of an answer. It knows no SQL,
//! and which server it talks to only by the address.

mod client;
mod event;

pub(crate) use client::{Address, Client};
pub(crate) use event::{Column, Event};
