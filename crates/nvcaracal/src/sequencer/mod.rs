//! From calls that threads submit to epochs in order, and from epochs to answers.

pub(crate) mod clock;
pub(crate) mod queue;
pub(crate) mod routing;
pub(crate) mod run;
pub(crate) mod standing;
