//! The border between two epochs: what one leaves and the next takes for granted.

use storage::format::EPOCH_CALLS_MAX;

use super::Engine;

impl Engine {
    /// What an epoch of so many workers takes for granted of the engine that it begins in.
    pub(super) fn assert_begins(&mut self, workers: usize) {
        assert!((1..=self.workers.len()).contains(&workers), "{workers} workers run no epoch");
        let checkpoint_epoch = self.store.checkpoint_epoch();
        assert!(checkpoint_epoch <= self.epoch, "no checkpoint is of an epoch to come");
        assert!(
            self.last_image_snapshot <= checkpoint_epoch,
            "an image snapshot is of a checkpoint before"
        );
        assert!(!self.core.gate.is_closed(), "readers see the end of the epoch before");
        let deferred = self.deferred_calls.len() as u64;
        assert!(deferred <= EPOCH_CALLS_MAX, "deferred calls fit into an epoch (O-75)");
        let idle = self.shared.idle.get_mut().expect("no panic while locked");
        assert!(idle.is_empty(), "no worker has lent its sub-pools between two epochs");
    }

    /// What the next epoch takes for granted of what all workers share.
    pub(super) fn assert_ended(&mut self, ends_in_checkpoint: bool) {
        let pools = storage::format::POOLS;
        let mut of_workers = self.workers.iter().map(|worker| worker.row_store.sub_pools.len());
        assert!(of_workers.all(|of_worker| of_worker == pools), "every worker has its sub-pools");
        let idle = self.shared.idle.get_mut().expect("no panic while locked");
        assert!(idle.is_empty(), "sub-pools that were lent are given back");
        let sync = self.shared.sync.get_mut().expect("no panic while locked");
        assert!(sync.is_none(), "the sync of the log was waited for");
        let refused = self.shared.refused.get_mut().expect("no panic while locked");
        assert!(refused.is_none(), "an epoch that was refused did not run");
        let checkpoint_epoch = self.store.checkpoint_epoch();
        assert!(checkpoint_epoch <= self.epoch, "no checkpoint is of an epoch to come");
        assert!(
            !ends_in_checkpoint || checkpoint_epoch == self.epoch,
            "the checkpoint record is of the epoch that ended in it"
        );
        assert!(!self.core.gate.is_closed(), "readers see the end of the epoch");
        let logs = self.core.config.lab.design.logs();
        let is_durable = || self.store.log().is_durable(self.epoch);
        assert!(!logs || is_durable(), "what is answered is in a durable log (O-13)");
        self.assert_handed_over();
    }

    /// Whatever workers hand to each other in an epoch has come to where it goes.
    fn assert_handed_over(&mut self) {
        let shared = &mut self.shared;
        let streams = shared.streams.get_mut().expect("no panic while locked");
        assert!(streams.is_empty(), "the streams of the epoch are in its commit record");
        let handovers = shared.handovers.get_mut().expect("no panic while locked");
        let mut slots = handovers.iter_mut().map(|handover| handover.slots.get_mut());
        assert!(
            slots.all(|slots| slots.expect("no panic while locked").is_empty()),
            "slots that workers gave were received"
        );
        let mut queues = shared.pieces.iter_mut();
        assert!(
            queues.all(|queue| queue.get_mut().expect("no panic while locked").is_empty()),
            "every piece that was split off has a worker"
        );
        let mut lists = shared.declarations.iter_mut();
        assert!(
            lists.all(|lists| lists.get_mut().expect("no panic while locked").txns.is_empty()),
            "each worker has its lists back"
        );
        let poisoned = shared.poisoned.get_mut().expect("no panic while locked");
        assert!(poisoned.is_none(), "an epoch with a call that cannot be undone does not end");
    }
}
