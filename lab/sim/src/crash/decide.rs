//! What a person decides where a call has ended an epoch that cannot be undone: to leave the
//! call out, or to give up its epoch.
//!
//! Such a call commits, and fails then. The engine stops and keeps a verdict on it, so that the
//! next open leaves it out. A crash in between leaves a store that does not open before a user
//! decides; the decision, too, may be cut by a crash, and is made again then.

use std::sync::Arc;

use engine::{Engine, EngineError, RecoveryReport};
use pmem::{AnyDevice, Traced};
use storage::EpochNumber;
use storage::Position;
use storage::repair::{accept_loss, skip_call};

use super::life::{Known, Watching, open};
use super::points::Place;
use crate::history::Setup;

/// What is decided, always the same in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The call is left out of its epoch, unless there is no room to say so.
    LeaveOut,
    /// The epoch is given up.
    GiveUp,
}

/// An epoch that was ended by a call, and what is decided about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) epoch: EpochNumber,
    pub(super) decision: Decision,
}

/// Most opens until a store must come up: every call that ends an epoch takes one, and so does a
/// decision.
const OPENS_MAX: usize = 8;

/// A store that came up.
pub(super) struct Came {
    pub(super) engine: Engine,
    pub(super) report: RecoveryReport,
    /// Whether a user had to decide first.
    pub(super) decided: bool,
}

/// Opens a store that is watched, and decides where that is needed.
///
/// # Errors
/// The engine's, where there is nothing to decide.
pub(super) fn open_deciding(
    device: &Arc<Traced>,
    setup: &Setup,
    known: &Known,
    watching: &Arc<Watching>,
) -> Result<Came, EngineError> {
    let mut decided = false;
    let came = |decided| move |(engine, report)| Came { engine, report, decided };
    let mut opened = open(device, setup, watching);
    let Some(ended) = known.ended else { return opened.map(came(false)) };
    for _ in 1..OPENS_MAX {
        match opened {
            Err(EngineError::StuckCall { epoch, position, .. }) if epoch == ended.epoch => {
                device.mark(Place::Deciding.encode());
                decide(device, ended, position)?;
                decided = true;
            }
            // The verdict on another call of the epoch was kept.
            Err(EngineError::Poisoned(_)) => {}
            // The decision was cut by a crash: its epoch is no longer there from the log, but not
            // from rows.
            Err(error) if error.is_corrupt() => {
                device.mark(Place::Deciding.encode());
                accept_loss(&AnyDevice::of(device), ended.epoch.previous())?;
                decided = true;
            }
            other => return other.map(came(decided)),
        }
        opened = open(device, setup, watching);
    }
    opened.map(came(decided))
}

fn decide(device: &Arc<Traced>, ended: Ended, position: Position) -> Result<(), EngineError> {
    if ended.decision == Decision::LeaveOut {
        match skip_call(&AnyDevice::of(device), ended.epoch, position) {
            Err(error) if error.is_limit() => {}
            done => return Ok(done?),
        }
    }
    accept_loss(&AnyDevice::of(device), ended.epoch.previous())?;
    Ok(())
}
