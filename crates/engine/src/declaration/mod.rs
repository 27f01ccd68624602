//! What calls declare before they run: sequence numbers, write sets, what was looked up for them,
//! and the space that they need. The overlay has what the serial part has written, which is
//! declared by having run.

pub(crate) mod declare;
pub(crate) mod demand;
pub(crate) mod local;
pub(crate) mod overlay;
