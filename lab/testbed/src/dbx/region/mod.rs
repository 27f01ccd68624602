//! Regions of code that are atomic.
//!
//! A [`Body`] loads and stores words through an [`Access`]; others see all of its stores or none,
//! and it sees one state of all words. A region may be *aborted*: then nothing of it has happened,
//! and it runs again, up to [`access::RETRIES`] times; after that, or where another try cannot
//! help, it runs under the fall-back lock, which every other region watches. These are the rules of
//! DBX (Wang et al., EuroSys 2014), whose number of retries is not in our paper.
//!
//! Two things make a region atomic:
//!
//! * [`hardware`]: restricted transactional memory, where the processor has it;
//! * [`software`]: version numbers of lines, which also model for what the hardware would abort:
//!   a write set or a read set beyond [`access::Limits`], and whatever writes past the cache or
//!   calls the system. What it costs says nothing of hardware.
//!
//! Words that regions store to are stored to by nothing else but [`Regions::store_all`].

mod access;
mod hardware;
mod regions;
mod software;
#[cfg(test)]
mod tests;

pub(super) use access::{Access, Body, Cause};
pub(super) use regions::Regions;
