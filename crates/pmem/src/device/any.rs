//! A device whose type is chosen when the program runs.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::cpu::Cpu;
use crate::device::{
    BringsPages, Description, Device, FileUse, MARK_BYTES, Needed, NotesOfStores, PageUse,
    PortState,
};
use crate::epoch_number::EpochNumber;
use crate::failure::DeviceError;
use crate::memory::{DirtyPages, Mapping};
use crate::side_files::{LoadMark, Openings, ReplayMarks};
use crate::units::{LINE_BYTES, Line};

/// What [`AnyDevice`] does by itself for a device, instead of a dynamic call.
#[derive(Debug, Clone, Default)]
pub struct Shortcuts(pub(crate) Kind);

/// How stores to a device's image are made, and made durable.
#[derive(Debug, Clone, Default)]
pub(crate) enum Kind {
    /// Every method of the device is called.
    #[default]
    Called,
    /// Stores go to the image; non-temporal ones are like others, and flushes and fences do
    /// nothing.
    Memory,
    /// As [`Kind::Memory`], but the pages that change are noted before each store.
    Noted(Arc<DirtyPages>),
    /// Stores go to the image; the processor's instructions make them durable.
    Flushed(Cpu),
    /// Stores go to the image; for non-temporal ones, flushes and fences the device is called.
    Charged,
}

/// A device whose type is chosen when the program runs, so that what uses devices is compiled once.
///
/// Loads, stores and flushes of most devices are a branch and the access itself ([`Shortcuts`]);
/// everything else is a dynamic call.
pub struct AnyDevice {
    /// The image of the device, which owns it. Its base does not move while the device lives.
    image: ManuallyDrop<Mapping>,
    kind: Kind,
    charges_loads: bool,
    charges_writes: bool,
    takes_snapshots: bool,
    has_memory_limit: bool,
    device: Arc<dyn Device>,
}

impl std::fmt::Debug for AnyDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnyDevice").field(&self.description().name).finish()
    }
}

impl AnyDevice {
    /// Hides the type of a device.
    pub fn new<D: Device>(device: D) -> Arc<Self> {
        Self::of(&Arc::new(device))
    }

    /// Hides the type of a device that the caller keeps, too.
    pub fn of<D: Device>(device: &Arc<D>) -> Arc<Self> {
        let device = Arc::clone(device);
        Arc::new(Self {
            // SAFETY: the device is kept as long as the copy.
            image: unsafe { device.image().alias() },
            kind: device.shortcuts().0,
            charges_loads: device.charges_loads(),
            charges_writes: device.charges_writes(),
            takes_snapshots: device.takes_snapshots(),
            has_memory_limit: device.has_memory_limit(),
            device,
        })
    }
}

/// Methods that call those of the device.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        fn $name(&self, $($argument: $type),*) $(-> $result)? {
            self.device.$name($($argument),*)
        }
    )*};
}

// A method that is not forwarded would be the default one.
#[deny(clippy::missing_trait_methods)]
impl Device for AnyDevice {
    forward! {
        description() -> Description;
        image_bytes() -> u64;
        grow_image(bytes: u64) -> Result<(), DeviceError>;
        reserve_pages(pages: u64, frees: bool) -> Result<(), DeviceError>;
        notes_of_stores() -> Option<NotesOfStores>;
        pay_owed_time(port: &mut PortState);
        log_bytes() -> u64;
        grow_log(bytes: u64) -> Result<(), DeviceError>;
        shrink_log(bytes: u64) -> Result<bool, DeviceError>;
        log_write(port: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;
        log_unit(is_now: bool) -> usize;
        log_write_now(port: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;
        log_fence(port: &mut PortState);
        log_sync() -> Result<(), DeviceError>;
        log_read(offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;
        instance() -> Option<u64>;
        branch() -> u64;
        begin_branch() -> Result<(), DeviceError>;
        note_opening(first: EpochNumber) -> Result<(), DeviceError>;
        openings() -> Option<Openings>;
        archive() -> Option<&Path>;
        accept() -> Result<(), DeviceError>;
        write_mark(mark: &[u8; MARK_BYTES]) -> Result<(), DeviceError>;
        mark() -> Option<[u8; MARK_BYTES]>;
        lost_log() -> Option<String>;
        replay_marks() -> Result<Option<ReplayMarks>, DeviceError>;
        load_mark() -> Option<LoadMark>;
        may_show_undurable() -> bool;
        page_use() -> Option<PageUse>;
        has_absent_pages() -> bool;
        wait_for_pages() -> Result<(), DeviceError>;
        read_pages(offset: u64, len: u64) -> Result<(), DeviceError>;
        leave_memory(other_bytes: u64);
        want_pages(offset: u64, len: u64, needed: Needed, missing: &mut Vec<u64>);
        fetch_pages(missing: &mut Vec<u64>);
        brings_pages() -> Option<BringsPages>;
        kept_bytes() -> Option<Arc<AtomicU64>>;
        needs_snapshot() -> bool;
        changed_bytes() -> u64;
        snapshot_part(part: usize, parts: usize) -> Result<(), DeviceError>;
        snapshot_commit(epoch: EpochNumber) -> Result<(), DeviceError>;
        is_saving() -> bool;
        save_again() -> Result<(), DeviceError>;
        use_of_files() -> Option<FileUse>;
        snapshot_epoch() -> Option<EpochNumber>;
        settle() -> Result<(), DeviceError>;
    }

    fn shortcuts(&self) -> Shortcuts {
        Shortcuts(self.kind.clone())
    }

    #[inline]
    fn image(&self) -> &Mapping {
        &self.image
    }

    #[inline]
    fn charges_loads(&self) -> bool {
        self.charges_loads
    }

    #[inline]
    fn charges_writes(&self) -> bool {
        self.charges_writes
    }

    #[inline]
    fn takes_snapshots(&self) -> bool {
        self.takes_snapshots
    }

    #[inline]
    fn has_memory_limit(&self) -> bool {
        self.has_memory_limit
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_u64(&self, port: &mut PortState, offset: u64, value: u64) {
        match &self.kind {
            Kind::Memory | Kind::Flushed(_) | Kind::Charged => {}
            Kind::Noted(dirty) => dirty.before_store(offset, 8),
            // SAFETY: forwarded to the caller.
            Kind::Called => return unsafe { self.device.store_u64(port, offset, value) },
        }
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image.store_u64(offset, value) }
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_bytes(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        match &self.kind {
            Kind::Memory | Kind::Flushed(_) | Kind::Charged => {}
            Kind::Noted(dirty) => dirty.before_store(offset, bytes.len() as u64),
            // SAFETY: forwarded to the caller.
            Kind::Called => return unsafe { self.device.store_bytes(port, offset, bytes) },
        }
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image.store_bytes(offset, bytes) }
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: forwarded to the caller, or mapped and owned by it in this phase.
        unsafe {
            match self.kind {
                Kind::Memory | Kind::Noted(_) => self.store_bytes(port, offset, bytes),
                Kind::Flushed(cpu) => cpu.store_nt(self.image.owned(offset, bytes.len()), bytes),
                Kind::Charged | Kind::Called => self.device.store_nt(port, offset, bytes),
            }
        }
    }

    #[inline(always)]
    // SAFETY: as above.
    unsafe fn store_line(&self, port: &mut PortState, offset: u64, line: &Line) {
        // SAFETY: forwarded to the caller, or mapped and owned by it in this phase.
        unsafe {
            match &self.kind {
                Kind::Flushed(cpu) => cpu.store_line(self.image.owned(offset, line.len()), line),
                Kind::Noted(dirty) => {
                    dirty.before_store(offset, LINE_BYTES);
                    self.image.store_bytes(offset, line);
                }
                Kind::Memory => self.image.store_bytes(offset, line),
                Kind::Charged | Kind::Called => self.device.store_line(port, offset, line),
            }
        }
    }

    #[inline]
    fn wrote_lines(&self, port: &mut PortState, offset: u64, lines: u64) {
        if self.charges_writes {
            self.device.wrote_lines(port, offset, lines);
        }
    }

    #[inline]
    fn loaded(&self, port: &mut PortState, offset: u64, len: u64) {
        if self.charges_loads {
            self.device.loaded(port, offset, len);
        }
    }

    #[inline]
    fn order_stores(&self) {
        match self.kind {
            Kind::Memory | Kind::Noted(_) => {}
            Kind::Flushed(cpu) => cpu.fence(),
            Kind::Charged | Kind::Called => self.device.order_stores(),
        }
    }

    #[inline]
    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        match self.kind {
            Kind::Memory | Kind::Noted(_) => {}
            Kind::Flushed(cpu) => {
                let start = self.image.at(offset, len as usize);
                // SAFETY: mapped (checked by `at`).
                unsafe { cpu.flush(start, len as usize) }
            }
            Kind::Charged | Kind::Called => self.device.flush(port, offset, len),
        }
    }

    #[inline]
    fn flush_line(&self, port: &mut PortState, offset: u64) {
        match self.kind {
            Kind::Memory | Kind::Noted(_) => {}
            Kind::Flushed(cpu) => {
                let line = self.image.at(offset, LINE_BYTES as usize);
                // SAFETY: mapped (checked by `at`).
                unsafe { cpu.flush_line(line) }
            }
            Kind::Charged | Kind::Called => self.device.flush_line(port, offset),
        }
    }

    // SAFETY: the contract of the trait: the memory is mapped.
    unsafe fn write_back(&self, port: &mut PortState, address: usize, len: u64) {
        // SAFETY: forwarded to the caller.
        unsafe { self.device.write_back(port, address, len) }
    }

    #[inline]
    fn fence(&self, port: &mut PortState) {
        match self.kind {
            Kind::Memory | Kind::Noted(_) => {}
            Kind::Flushed(cpu) => cpu.fence(),
            Kind::Charged | Kind::Called => self.device.fence(port),
        }
    }
}
