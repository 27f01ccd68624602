//! The recording device: every store goes to memory and, if asked for, into a trace.

use super::adversary::SpaceKind;
use super::contents::Contents;
use super::trace::{Event, EventKind, Trace};
use crate::device::{Description, Device, PortState};
use crate::failure::{DeviceError, lock};
use crate::memory::{Mapping, Memory, PAGE_BYTES, Pages};
use crate::sync::background::Mutex;

/// Memory that records what is done to it. See the module's documentation.
#[derive(Debug)]
pub struct Traced {
    memory: Memory,
    run: Mutex<Run>,
}

#[derive(Debug, Default)]
struct Run {
    trace: Option<Trace>,
    touched: Touched,
    /// Stores since the device was loaded.
    stores: u64,
}

/// Pages that were stored to.
#[derive(Debug, Default)]
pub(super) struct Touched {
    list: Vec<(SpaceKind, u64)>,
    /// Whether a page is in the list: image, log.
    known: [Vec<bool>; 2],
}

impl Touched {
    pub(super) fn add(&mut self, kind: SpaceKind, offset: u64, len: usize) {
        if len == 0 {
            return;
        }
        let known = &mut self.known[kind as usize];
        for page in offset / PAGE_BYTES..(offset + len as u64).div_ceil(PAGE_BYTES) {
            if known.len() <= page as usize {
                known.resize(page as usize + 1, false);
            }
            if !std::mem::replace(&mut known[page as usize], true) {
                self.list.push((kind, page));
            }
        }
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (SpaceKind, u64)> + '_ {
        let Self { list, known } = self;
        list.drain(..).inspect(|&(kind, page)| known[kind as usize][page as usize] = false)
    }
}

/// The bytes that an event is about.
struct Range {
    space: SpaceKind,
    offset: u64,
    len: u64,
}

impl Range {
    fn of_image(offset: u64, len: u64) -> Self {
        Self { space: SpaceKind::Image, offset, len }
    }
}

impl Traced {
    /// A device with empty spaces that may grow up to the limits.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(image_limit_bytes: u64, log_limit_bytes: u64) -> Result<Self, DeviceError> {
        let memory = Memory::new(image_limit_bytes, log_limit_bytes, Pages::Small)?;
        Ok(Self { memory, run: Mutex::default() })
    }

    /// Begins a trace: what the device holds now is its start, and durable. No store may be going
    /// on.
    pub fn record(&self) {
        let mut run = lock(&self.run);
        let start = Contents::of(&self.memory);
        run.trace = Some(Trace { start, ..Trace::default() });
    }

    /// Ends the trace and returns it; an empty one if none was begun.
    #[must_use]
    pub fn take_trace(&self) -> Trace {
        lock(&self.run).trace.take().unwrap_or_default()
    }

    /// Puts a mark into the trace, if there is one.
    pub fn mark(&self, number: u64) {
        self.push(&mut lock(&self.run), EventKind::Mark, Range::of_image(number, 0), 0, &[]);
    }

    /// Number of stores since a [`super::Replay`] loaded the device, log writes included.
    #[must_use]
    pub fn stores(&self) -> u64 {
        lock(&self.run).stores
    }

    pub(super) fn touched(&mut self) -> &mut Touched {
        &mut self.run().touched
    }

    fn run(&mut self) -> &mut Run {
        self.run.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes the device hold these bytes in a page.
    pub(super) fn set_page(&mut self, kind: SpaceKind, page: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller, who has the device alone.
        unsafe { self.memory.space(kind).mapping.store_bytes(page * PAGE_BYTES, bytes) };
    }

    /// Makes the device hold these bytes in a line, until its page is set.
    pub(super) fn set_line(&mut self, kind: SpaceKind, offset: u64, bytes: &[u8]) {
        self.touched().add(kind, offset, bytes.len());
        // SAFETY: owned by the caller, who has the device alone.
        unsafe { self.memory.space(kind).mapping.store_bytes(offset, bytes) };
    }

    /// Makes as many bytes usable as there are in `contents`, and begins to count stores.
    pub(super) fn set_usable(&mut self, contents: &Contents) {
        self.run().stores = 0;
        self.memory.image.usable.reset(contents.image.len() as u64);
        self.memory.log.usable.reset(contents.log.len() as u64);
    }

    fn push(&self, run: &mut Run, kind: EventKind, range: Range, port: u32, bytes: &[u8]) {
        if let Some(trace) = &mut run.trace {
            let Range { space, offset, len } = range;
            trace.push(Event { kind, space, port, offset, len, bytes_at: 0 }, bytes);
        }
    }

    /// Records a store and makes it, under the lock, so that program order is that of the trace.
    ///
    /// # Safety
    /// The caller owns the range in this phase.
    unsafe fn store(
        &self,
        space: SpaceKind,
        offset: u64,
        bytes: &[u8],
        kind: EventKind,
        port: u32,
        apply: impl FnOnce(&Mapping),
    ) {
        let place = self.memory.space(space);
        place.usable.check_usable(offset, bytes.len() as u64);
        let mut run = lock(&self.run);
        let range = Range { space, offset, len: bytes.len() as u64 };
        self.push(&mut run, kind, range, port, bytes);
        run.touched.add(space, offset, bytes.len());
        run.stores += 1;
        apply(&place.mapping);
    }

    fn grow(&self, kind: SpaceKind, bytes: u64) -> Result<(), DeviceError> {
        let mut run = lock(&self.run);
        let usable = &self.memory.space(kind).usable;
        let before = usable.bytes();
        usable.grow(bytes)?;
        if usable.bytes() > before {
            self.push(
                &mut run,
                EventKind::Grow,
                Range { space: kind, offset: 0, len: usable.bytes() },
                0,
                &[],
            );
        }
        Ok(())
    }
}

impl Device for Traced {
    fn description(&self) -> Description {
        Description {
            name: "traced".to_string(),
            durable: false,
            note: "memory that records every store, to look at power cuts later".to_string(),
        }
    }

    fn may_show_undurable(&self) -> bool {
        true
    }

    crate::memory::in_memory!(watched);
    crate::memory::in_memory!(free_log_reads);

    fn grow_image(&self, bytes: u64) -> Result<(), DeviceError> {
        self.grow(SpaceKind::Image, bytes)
    }

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_u64(&self, port: &mut PortState, offset: u64, value: u64) {
        let bytes = value.to_ne_bytes();
        // SAFETY: owned by the caller in this phase.
        unsafe {
            self.store(SpaceKind::Image, offset, &bytes, EventKind::Store, port.id, |mapping| {
                mapping.store_u64(offset, value);
            });
        }
    }

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_bytes(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller in this phase.
        unsafe {
            self.store(SpaceKind::Image, offset, bytes, EventKind::Store, port.id, |mapping| {
                mapping.store_bytes(offset, bytes);
            });
        }
    }

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        let kind = EventKind::StorePastCache;
        // SAFETY: owned by the caller in this phase.
        unsafe {
            self.store(SpaceKind::Image, offset, bytes, kind, port.id, |mapping| {
                mapping.store_bytes(offset, bytes);
            });
        }
    }

    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        let range = Range::of_image(offset, len);
        self.push(&mut lock(&self.run), EventKind::Flush, range, port.id, &[]);
    }

    fn fence(&self, port: &mut PortState) {
        let nowhere = Range::of_image(0, 0);
        self.push(&mut lock(&self.run), EventKind::Fence, nowhere, port.id, &[]);
    }

    fn grow_log(&self, bytes: u64) -> Result<(), DeviceError> {
        self.grow(SpaceKind::Log, bytes)
    }

    fn log_write(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let kind = EventKind::StorePastCache;
        // SAFETY: two ports never write the same range of the log at the same time.
        unsafe {
            self.store(SpaceKind::Log, offset, bytes, kind, port.id, |mapping| {
                mapping.store_bytes(offset, bytes);
            });
        }
        Ok(())
    }

    fn log_fence(&self, port: &mut PortState) {
        self.fence(port);
    }
}
