//! `sim`: explorations of the crash lab; and `power-cuts`.

mod crash;
mod damage;
mod disk;
mod exploring;
pub(crate) mod power_cuts;

pub(crate) use crash::run;
