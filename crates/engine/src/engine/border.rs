//! The border between two epochs: what one leaves and the next takes for granted.

use pmem::Device;

use super::Engine;

impl<D: Device> Engine<D> {
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
    }
}
