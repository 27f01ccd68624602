//! `sim`: explorations of the crash lab.

mod crash;
mod damage;
mod disk;
mod exploring;

pub(crate) use crash::run;
