//! Opening: find the newest snapshot, verify it, load it. Changes no file.

use std::path::Path;
use std::sync::Arc;

use super::copy;
use super::directory::open_files;
use super::disk::{DiskHandle, Files};
use super::format::Root;
use super::mark::Marks;
use super::meta::{check_heads, find_newest};
use super::openings::OpeningsFile;
use super::options::FileOptions;
use super::page_reads::read_pages;
use super::residency::{self, Loading, Residency};
use super::room::Room;
use super::slots::FreeSlots;
use super::table::PageTable;
use crate::failure::{DeviceError, Health};
use crate::memory::{DirtyPages, Mapping, PAGE_BYTES, Pages, page_ceil};

/// What opening found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Arc<Files>,
    pub(super) image: Arc<Mapping>,
    pub(super) dirty: Arc<DirtyPages>,
    pub(super) pages: ImagePages,
    /// Those of the newest snapshot, and what the image grew to since.
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    /// What shows that the log was cut off, if it was.
    pub(super) lost_log: Option<String>,
    pub(super) state: State,
    pub(super) marks: Marks,
    pub(super) openings: OpeningsFile,
    pub(super) room: Arc<Room>,
}

/// How the pages of the image come to memory.
#[derive(Debug)]
pub(super) enum ImagePages {
    /// All were read. If it should have been otherwise: why it was not.
    Read(Option<std::io::Error>),
    /// They are read in the background.
    Loading(Loading),
    /// The image may be larger than memory.
    Limited(Residency),
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    /// The snapshot that memory holds.
    pub(super) newest: Root,
    pub(super) table: PageTable,
    /// The slots that no page has.
    pub(super) free: FreeSlots,
}

/// The state, before its pages are read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) files: Arc<Files>,
    /// That of `data`.
    pub(super) head: Root,
    pub(super) state: State,
    /// Of the log.
    pub(super) log_bytes: u64,
    /// What shows that the log was cut off, if it was.
    pub(super) lost_log: Option<String>,
}

/// Finds the state of a database, in files that have all of it.
pub(super) fn open_state(dir: &Path, options: &FileOptions) -> Result<Found, DeviceError> {
    let files = open_files(dir, options)?;
    if !options.read_only {
        // Opening, step 1: what can be read is on the device.
        for file in [&files.meta, &files.data, &files.table, &files.log, &files.directory] {
            file.sync()?;
        }
    }
    let newest = find_newest(&files.meta)?;
    check_is_newest(dir, &files.meta, &newest)?;
    let head = check_heads(&files, &newest)?;
    let log_bytes = files.log.len()? / PAGE_BYTES * PAGE_BYTES;
    check_data_length(&files, &newest)?;
    let lost_log = lost_log(&newest, log_bytes);
    let table = PageTable::read(&files, &newest)?;
    let free = table.free_slots(&files, newest.data_bytes / PAGE_BYTES)?;
    Ok(Found { files, head, state: State { newest, table, free }, log_bytes, lost_log })
}

pub(super) fn open(
    dir: &Path,
    options: &FileOptions,
    health: &Arc<Health>,
) -> Result<Opened, DeviceError> {
    // First what the system may refuse: it makes no database then.
    let address_bytes = page_ceil(options.image_limit_bytes);
    let pages = options.memory_limit_bytes.map_or(Pages::Huge, |_| Pages::Small);
    let image = Arc::new(Mapping::anonymous(address_bytes, pages)?);
    if options.memory_limit_bytes.is_some() {
        residency::check_possible()?;
    }
    let Found { files, head, state, log_bytes, lost_log } = open_state(dir, options)?;
    let State { newest, table, .. } = &state;
    let image_bytes = newest.image_bytes.max(head.image_bytes);
    check_limit("image (the existing one)", image_bytes, options.image_limit_bytes)?;
    check_limit("log (the existing file)", log_bytes, options.log_limit_bytes)?;
    assert!(image.len() >= image_bytes, "an image within its limit fits its mapping");
    let dirty = Arc::new(DirtyPages::new(Arc::clone(&image)));
    let pages = match options.memory_limit_bytes {
        Some(limit) => {
            // SAFETY: the device drops it before the mapping, whose pages nothing has touched.
            unsafe { Residency::over(&image, &files, table, &dirty, image_bytes, limit) }
                .map(ImagePages::Limited)?
        }
        None => read_or_begin(&files, table, &image, image_bytes, options, health)?,
    };
    let marks = Marks::read(&files.meta, newest.instance)?;
    let openings = OpeningsFile::open(dir, options, newest.instance)?;
    let room = Arc::new(Room::of(&files, &head, newest, table.used())?);
    Ok(Opened {
        files,
        image,
        dirty,
        pages,
        image_bytes,
        log_bytes,
        lost_log,
        state,
        marks,
        openings,
        room,
    })
}

/// Checks that a database whose only root is that of its creation is no copy: that is whole when it
/// gets its name. What marks and log say is the caller's affair.
fn check_is_newest(dir: &Path, meta: &DiskHandle, newest: &Root) -> Result<(), DeviceError> {
    if newest.sequence > 0 || !copy::is_copy(dir)? {
        return Ok(());
    }
    let what = "its newest root is missing: it has none after that of the creation, and it is a \
                copy of a database; copy that again";
    Err(DeviceError::corrupt(meta.path(), what))
}

fn check_limit(what: &'static str, bytes: u64, limit_bytes: u64) -> Result<(), DeviceError> {
    if bytes > page_ceil(limit_bytes) {
        return Err(DeviceError::Full {
            what: what.into(),
            wanted_bytes: bytes,
            limit_bytes: Some(limit_bytes),
        });
    }
    Ok(())
}

/// Checks that `data` has the length that the snapshot needs.
fn check_data_length(files: &Files, newest: &Root) -> Result<(), DeviceError> {
    let (there, saved) = (files.data.len()?, newest.data_bytes);
    if there < saved {
        let what = format!("{there} bytes, but {saved} were saved: truncated?");
        return Err(DeviceError::corrupt(files.data.path(), what));
    }
    Ok(())
}

/// Whether a log of so many bytes is shorter than it was at a snapshot; says so.
pub(super) fn lost_log(newest: &Root, there: u64) -> Option<String> {
    let saved = newest.log_bytes;
    let what = || format!("its file has {there} bytes, but {saved} were saved: truncated?");
    (there < saved).then(what)
}

/// Loads all pages, or begins to, if the options say so and it can be done.
fn read_or_begin(
    files: &Arc<Files>,
    table: &PageTable,
    image: &Mapping,
    image_bytes: u64,
    options: &FileOptions,
    health: &Arc<Health>,
) -> Result<ImagePages, DeviceError> {
    let used_bytes = table.used() * PAGE_BYTES;
    let is_enough = |least: &u64| used_bytes >= (*least).max(PAGE_BYTES);
    let mut why_not = None;
    if options.background_load_bytes_min.as_ref().is_some_and(is_enough) && !options.read_only {
        // SAFETY: the device drops it before the mapping, whose pages nothing has touched.
        match unsafe { Loading::begin(image, files, table, image_bytes, health) } {
            Ok(loading) => return Ok(ImagePages::Loading(loading)),
            Err(error) => why_not = Some(error),
        }
    }
    // SAFETY: the mapping is not shared yet.
    unsafe { load_image(&files.data, table, image) }?;
    Ok(ImagePages::Read(why_not))
}

/// Loads all pages.
///
/// # Safety
/// The mapping is owned by the caller.
unsafe fn load_image(
    data: &DiskHandle,
    table: &PageTable,
    image: &Mapping,
) -> Result<(), DeviceError> {
    read_pages(data, table.entries().collect(), |page, bytes| {
        // SAFETY: owned by the caller; the table has pages of the image only.
        unsafe { image.store_bytes(page * PAGE_BYTES, bytes) };
        Ok(())
    })
}
