//! The device: applies every store to memory and records it.

use super::adversary::{Adversary, SpaceKind};
use super::contents::Contents;
use super::history::History;
use crate::device::{Description, Device, PortState};
use crate::failure::{DeviceError, lock};
use crate::memory::{Mapping, Memory, PAGE_BYTES, Pages, Space};
use crate::sync::background::{Mutex, MutexGuard};
use crate::units::LINE_BYTES;

/// Memory with a history. See the module's documentation.
///
/// ```
/// use std::sync::Arc;
/// use pmem::{AllOldest, Crash, Device, Port};
///
/// let device = Arc::new(Crash::new(1 << 20, 1 << 20)?);
/// device.grow_image(4096)?;
/// let mut port = Port::new(Arc::clone(&device), 0);
/// // SAFETY: no other thread uses the image.
/// unsafe { port.store_u64(0, 7) };
/// assert_eq!(device.image_after_power_cut(&mut AllOldest).image().load_u64(0), 0);
/// port.flush(0, 8);
/// port.fence();
/// assert_eq!(device.image_after_power_cut(&mut AllOldest).image().load_u64(0), 7);
/// # Ok::<(), pmem::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Crash {
    memory: Memory,
    run: Mutex<Run>,
}

#[derive(Debug, Default)]
struct Run {
    events: u64,
    cut_at: Option<u64>,
    /// What memory held when the run was cut.
    frozen: Option<Contents>,
    history: History,
}

impl Crash {
    /// A device with empty spaces that may grow up to the limits.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(image_limit_bytes: u64, log_limit_bytes: u64) -> Result<Self, DeviceError> {
        let memory = Memory::new(image_limit_bytes, log_limit_bytes, Pages::Small)?;
        Ok(Self { memory, run: Mutex::default() })
    }

    /// Number of stores, flushes and fences so far, log writes included.
    #[must_use]
    pub fn events(&self) -> u64 {
        lock(&self.run).events
    }

    /// Cuts the power before the event with this number, counted from zero: the first `event`
    /// events happen, and nothing after them reaches the device. The run goes on in memory.
    ///
    /// # Panics
    /// If more events than that have happened already.
    pub fn cut_at(&self, event: u64) {
        let mut run = lock(&self.run);
        assert!(run.events <= event, "event {event} is past: {} happened", run.events);
        run.cut_at = Some(event);
        self.freeze_if_cut(&mut run);
    }

    /// Whether the event given to [`Crash::cut_at`] was reached.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        lock(&self.run).frozen.is_some()
    }

    /// Kills the process: the threads that used the device do so no more. Its stores stay visible
    /// to those who open the device next; what was not durable is not, until they flush and fence
    /// it, because no thread will fence what the dead process flushed or stored non-temporally.
    pub fn kill(&self) {
        lock(&self.run).history.kill();
    }

    /// Number of cache lines, of image and log, that a power cut could leave in more than one
    /// state.
    #[must_use]
    pub fn undurable_lines(&self) -> u64 {
        lock(&self.run).history.undurable_lines()
    }

    /// A new device that holds what a power cut leaves: at the event given to [`Crash::cut_at`] if
    /// it was reached, otherwise now. No store may be going on.
    ///
    /// # Panics
    /// If the address space for the new device cannot be reserved.
    #[must_use]
    pub fn image_after_power_cut(&self, adversary: &mut dyn Adversary) -> Self {
        let run = lock(&self.run);
        let (image_limit, log_limit) =
            (self.memory.image.usable.limit_bytes(), self.memory.log.usable.limit_bytes());
        let after = Self::new(image_limit, log_limit).expect("address space for another image");
        let held = match &run.frozen {
            Some(frozen) => frozen,
            None => &Contents::of(&self.memory),
        };
        fill(&after.memory.image, &held.image);
        fill(&after.memory.log, &held.log);
        for ((space, offset), line) in run.history.after_power_cut(adversary) {
            // SAFETY: the new device is not shared yet.
            unsafe { after.memory.space(space).mapping.store_bytes(offset, &line) };
        }
        after
    }

    /// Counts an event; the history is changed only if the power is still on.
    fn event(&self) -> MutexGuard<'_, Run> {
        let mut run = lock(&self.run);
        self.freeze_if_cut(&mut run);
        run.events += 1;
        run
    }

    fn freeze_if_cut(&self, run: &mut Run) {
        if run.frozen.is_none() && run.cut_at == Some(run.events) {
            run.frozen = Some(Contents::of(&self.memory));
        }
    }

    /// Records a store and makes it, under the lock, so that program order is that of the history.
    ///
    /// # Safety
    /// The caller owns the range in this phase.
    unsafe fn store(
        &self,
        kind: SpaceKind,
        offset: u64,
        bytes: &[u8],
        past_cache_of: Option<u32>,
        apply: impl FnOnce(&Mapping),
    ) {
        let space = self.memory.space(kind);
        space.usable.check_usable(offset, bytes.len() as u64);
        let mut run = self.event();
        if run.frozen.is_none() {
            let line_now = |line| {
                // SAFETY: every store of this device takes the lock that is held here.
                let bytes = unsafe { space.mapping.slice(line, LINE_BYTES) };
                *bytes.first_chunk().expect("a whole line")
            };
            run.history.store(kind, line_now, offset, bytes, past_cache_of);
        }
        apply(&space.mapping);
    }
}

/// Makes a new space hold these bytes, without touching pages that are zero.
fn fill(space: &Space, bytes: &[u8]) {
    space.usable.set(bytes.len() as u64);
    for (page, offset) in bytes.chunks(PAGE_BYTES as usize).zip((0..).step_by(PAGE_BYTES as usize))
    {
        if page.iter().any(|b| *b != 0) {
            // SAFETY: the new space is not shared yet.
            unsafe { space.mapping.store_bytes(offset, page) };
        }
    }
}

impl Device for Crash {
    fn description(&self) -> Description {
        Description {
            name: "crash".to_string(),
            durable: false,
            note: "memory that records every store to explore power cuts: times mean nothing"
                .to_string(),
        }
    }

    fn may_show_undurable(&self) -> bool {
        true
    }

    crate::memory::in_memory!(watched);
    crate::memory::in_memory!(free_log_reads);

    fn grow_image(&self, bytes: u64) -> Result<(), DeviceError> {
        let _one = lock(&self.run);
        self.memory.image.usable.grow(bytes)
    }

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_u64(&self, _: &mut PortState, offset: u64, value: u64) {
        // SAFETY: owned by the caller in this phase.
        unsafe {
            self.store(SpaceKind::Image, offset, &value.to_ne_bytes(), None, |mapping| {
                mapping.store_u64(offset, value);
            });
        }
    }

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_bytes(&self, _: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller in this phase.
        unsafe {
            self.store(SpaceKind::Image, offset, bytes, None, |mapping| {
                mapping.store_bytes(offset, bytes);
            });
        }
    }

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller in this phase.
        unsafe {
            self.store(SpaceKind::Image, offset, bytes, Some(port.id), |mapping| {
                mapping.store_bytes(offset, bytes);
            });
        }
    }

    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        let mut run = self.event();
        if run.frozen.is_none() {
            run.history.flush(SpaceKind::Image, offset, len, port.id);
        }
    }

    fn fence(&self, port: &mut PortState) {
        let mut run = self.event();
        if run.frozen.is_none() {
            run.history.fence(port.id);
        }
    }

    fn grow_log(&self, bytes: u64) -> Result<(), DeviceError> {
        let _one = lock(&self.run);
        self.memory.log.usable.grow(bytes)
    }

    fn log_write(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        // SAFETY: two ports never write the same range of the log at the same time.
        unsafe {
            self.store(SpaceKind::Log, offset, bytes, Some(port.id), |mapping| {
                mapping.store_bytes(offset, bytes);
            });
        }
        Ok(())
    }

    fn log_fence(&self, port: &mut PortState) {
        self.fence(port);
    }
}
