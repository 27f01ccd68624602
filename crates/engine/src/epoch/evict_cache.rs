//! Cache eviction (NV 4.2, 5.2): cached versions that were not accessed in the last K epochs go. No
//! body runs, so nothing has to be synchronised.

use crate::worker::{Epoch, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) {
    if worker.local.cache.is_on() {
        assert!(epoch.core.gate.is_closed(), "no reader is inside while the cache frees (O-15)");
        let evicted = worker.local.cache.evict(&epoch.core.entries, epoch.number);
        worker.local.work.cache_evictions += evicted.versions;
    }
}
