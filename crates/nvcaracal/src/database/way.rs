//! In which order and part of an epoch calls are submitted.

use engine::SUBMITTERS_MAX;

use crate::error::{Error, Result};
use crate::sequencer::queue::How;
use crate::sequencer::routing::Routing;

/// In which part of its epoch a call runs: see [`Submitter::part`](crate::Submitter::part).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Part {
    /// What the database has learned of the procedure decides, as for
    /// [`Database::submit`](crate::Database::submit): calls without a write set, and those of
    /// procedures that are often deferred, run in the serial part.
    #[default]
    Learned,
    /// In parallel with others. A call that writes what its
    /// [write set](crate::Procedure::write_set) does not say is deferred; one without a write set
    /// always is. Epochs of few calls run one after the other all the same
    /// ([`Tuning::serial_calls_max`](crate::Tuning::serial_calls_max)).
    Parallel,
    /// One after the other with others of this part, before all that run in parallel: never
    /// deferred, and best for calls that write one row together.
    Serial,
}

/// In which order and part calls are submitted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Way {
    /// 0 for no order.
    pub(crate) submitter: u16,
    pub(crate) part: Part,
}

impl Way {
    /// How a call of a procedure goes into its epoch.
    ///
    /// # Errors
    /// A mistake where it must not be in the part.
    #[inline]
    pub(crate) fn how(self, routing: &Routing, procedure: u16) -> Result<How> {
        let Self { submitter, part } = self;
        let is_serial = match part {
            Part::Learned => routing.is_serial(procedure),
            Part::Serial => true,
            Part::Parallel if routing.may_be_parallel(procedure) => false,
            Part::Parallel => return Err(must_be_serial()),
        };
        Ok(How { submitter, is_serial })
    }
}

#[cold]
fn must_be_serial() -> Error {
    Error::mistake(
        "a procedure with pieces whose answers may not read back runs in the serial part: only \
         there such a call fails alone",
    )
}

/// The number of the submitter after so many others. Numbers come round: two submitters with one
/// number keep an order between them, too, which is more than is asked for.
pub(crate) fn submitter_after(others: u64) -> u16 {
    (others % u64::from(SUBMITTERS_MAX)) as u16 + 1
}
