//! Opening a database directory: lock, create, decide which capture is the state, load it.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use super::disk::{DiskFile, DiskHandle, DiskHook, Files};
use super::format::{Found, Header, JOURNAL_MAGIC, META_BYTES, META_MAGIC, journal_bytes};
use super::journal::{apply, check_length, read_header, read_index, write_meta};
use crate::lock::Locked;
use crate::mapping::page_ceil;
use crate::{DeviceError, Mapping, PAGE_BYTES};

/// How to open a [`super::File`].
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The image never grows beyond this; address space, not memory or disk, is taken for it.
    pub image_limit_bytes: u64,
    /// The log space never grows beyond this.
    pub log_limit_bytes: u64,
    /// Whether to create the database if there is none.
    pub create: bool,
    /// Watches every call to the file system, and may make it fail. For tests and simulations.
    pub hook: Option<Arc<dyn DiskHook>>,
}

impl FileOptions {
    /// Options with these limits that create the database if there is none.
    #[must_use]
    pub fn new(image_limit_bytes: u64, log_limit_bytes: u64) -> Self {
        Self { image_limit_bytes, log_limit_bytes, create: true, hook: None }
    }
}

/// What opening found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Arc<Files>,
    pub(super) image: Mapping,
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    /// The capture that memory and `image` hold now.
    pub(super) newest: Header,
    /// The capture that `meta` names.
    pub(super) named: u64,
}

pub(super) fn open(dir: &Path, options: &FileOptions) -> Result<Opened, DeviceError> {
    if !options.create && !dir.join(DiskFile::Meta.name()).exists() {
        return Err(DeviceError::Missing { path: dir.to_path_buf() });
    }
    create_directory(dir)?;
    let lock = lock_directory(dir)?;
    let file = |which| DiskHandle::open(dir, which, options.create, options.hook.clone());
    let meta = file(DiskFile::Meta)?;
    if !options.create && is_half_created(dir, &meta)? {
        return Err(DeviceError::Missing { path: dir.to_path_buf() });
    }
    let files = Arc::new(Files {
        meta,
        image: file(DiskFile::Image)?,
        journal: file(DiskFile::Journal)?,
        log: file(DiskFile::Log)?,
        directory: file(DiskFile::Directory)?,
        _lock: lock,
    });
    let named = match find_named(&files)? {
        Some(named) => named,
        None if options.create => create(&files)?,
        None => return Err(DeviceError::Missing { path: dir.to_path_buf() }),
    };
    load(files, options, named)
}

/// Whether a process died while it created the files: some are not there, and `meta` names no
/// capture.
fn is_half_created(dir: &Path, meta: &DiskHandle) -> Result<bool, DeviceError> {
    let others = [DiskFile::Image, DiskFile::Journal, DiskFile::Log];
    if others.iter().all(|which| dir.join(which.name()).exists()) {
        return Ok(false);
    }
    for slot in [0, PAGE_BYTES] {
        if read_header(meta, slot)?.iter().any(|b| *b != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn create_directory(dir: &Path) -> Result<(), DeviceError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(|e| DeviceError::io("create directory", dir, e))?;
    // The entry of the new directory must survive too (O-56).
    let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sync = fs::File::open(parent).and_then(|file| file.sync_all());
    sync.map_err(|e| DeviceError::io("sync directory", parent, e))
}

/// Takes the lock of the directory; the system releases it when the process ends, however it ends.
fn lock_directory(dir: &Path) -> Result<Locked, DeviceError> {
    let path = dir.join("lock");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|e| DeviceError::io("open", &path, e))?;
    Locked::new(file, &path)
}

/// Lays out an empty database. The slot of `meta` comes last: without it, the next open starts
/// over.
fn create(files: &Files) -> Result<Header, DeviceError> {
    files.meta.allocate(META_BYTES)?;
    files.journal.allocate(journal_bytes(0))?;
    for file in [&files.meta, &files.journal, &files.image, &files.log, &files.directory] {
        file.sync()?;
    }
    // Any number that differs from database to database will do; nothing is computed from it.
    let instance = RandomState::new().build_hasher().finish();
    let empty =
        Header { instance, sequence: 0, epoch: None, image_bytes: 0, pages_count: 0, index_crc: 0 };
    write_meta(files, &empty)?;
    Ok(empty)
}

/// The capture that `meta` names; `None` if this database was never completely created.
fn find_named(files: &Files) -> Result<Option<Header>, DeviceError> {
    // Opening, step 1: what can be read is on the medium.
    for file in [&files.meta, &files.journal, &files.image, &files.log, &files.directory] {
        file.sync()?;
    }
    let slot = |offset| Ok(Header::decode(&read_header(&files.meta, offset)?, META_MAGIC));
    let slots: [Found; 2] = [slot(0)?, slot(PAGE_BYTES)?];
    let corrupt = |what: &str| Err(DeviceError::corrupt(files.meta.path(), what));
    match slots {
        [Found::Zero, Found::Zero] => {
            let journal = read_header(&files.journal, 0)?;
            if files.image.len()? > 0 || journal.iter().any(|b| *b != 0) {
                return corrupt("both slots are empty, but there is an image");
            }
            Ok(None)
        }
        [Found::Header(a), Found::Header(b)] => {
            if a.instance != b.instance || a.sequence.abs_diff(b.sequence) != 1 {
                return corrupt("its two slots do not belong together");
            }
            Ok(Some(if a.sequence > b.sequence { a } else { b }))
        }
        [Found::Header(a), Found::Zero] if a.sequence == 0 => Ok(Some(a)),
        [Found::Header(a), Found::Damaged(what) | Found::Foreign(what)]
        | [Found::Damaged(what) | Found::Foreign(what), Found::Header(a)] => {
            // Harmless if a medium worse than the model tore the slot while it was written: then
            // the journal still holds that capture. Otherwise nobody knows what the image holds.
            match journal_header(files, &a)? {
                Some(journal)
                    if journal.sequence == a.sequence + 1
                        && read_index(files, &journal)?.is_some() =>
                {
                    Ok(Some(a))
                }
                _ => corrupt(&what),
            }
        }
        [Found::Foreign(what), _] | [_, Found::Foreign(what)] => {
            Err(DeviceError::foreign(files.meta.path(), what))
        }
        _ => corrupt("a slot is missing or damaged"),
    }
}

/// The header of the journal, if anything was ever captured.
fn journal_header(files: &Files, named: &Header) -> Result<Option<Header>, DeviceError> {
    let path = files.journal.path();
    match Header::decode(&read_header(&files.journal, 0)?, JOURNAL_MAGIC) {
        // Opening, case 5.
        Found::Zero if named.sequence == 0 => Ok(None),
        Found::Zero => Err(DeviceError::corrupt(path, "empty, but something was captured")),
        Found::Foreign(what) => Err(DeviceError::foreign(path, what)),
        Found::Damaged(what) => Err(DeviceError::corrupt(path, what)),
        Found::Header(header) if header.instance != named.instance => {
            Err(DeviceError::foreign(path, "it belongs to another database than meta"))
        }
        Found::Header(header) => Ok(Some(header)),
    }
}

/// Decides which capture is the state; returns the journal that is to be applied, if any.
fn find_journal(files: &Files, named: &Header) -> Result<Option<(Header, Vec<u8>)>, DeviceError> {
    let Some(header) = journal_header(files, named)? else { return Ok(None) };
    if header.sequence == named.sequence {
        // Opening, case 2.
        return check_length(files, &header).map(|()| None);
    }
    if header.sequence != named.sequence + 1 {
        let (journal, meta) = (header.sequence, named.sequence);
        let what = format!("it holds capture {journal}, but meta says that the image holds {meta}");
        return Err(DeviceError::corrupt(files.journal.path(), what));
    }
    // Opening, case 3 with an index, case 4 without.
    Ok(read_index(files, &header)?.map(|index| (header, index)))
}

fn load(files: Arc<Files>, options: &FileOptions, named: Header) -> Result<Opened, DeviceError> {
    let journal = find_journal(&files, &named)?;
    let newest = journal.as_ref().map_or(named, |(header, _)| *header);
    let image_bytes = usable_bytes(&files.image, "image", options.image_limit_bytes)?;
    let log_bytes = usable_bytes(&files.log, "log", options.log_limit_bytes)?;
    if image_bytes < newest.image_bytes {
        let what = format!("{image_bytes} bytes, but {} were captured", newest.image_bytes);
        return Err(DeviceError::corrupt(files.image.path(), what));
    }
    // Normally there already: it is reserved before the image grows.
    if files.journal.allocate(journal_bytes(image_bytes / PAGE_BYTES))? {
        files.journal.sync()?;
    }
    let image = Mapping::reserve(page_ceil(options.image_limit_bytes))?;
    // SAFETY: nobody else knows the mapping yet.
    unsafe { load_image(&files.image, image_bytes, &image) }?;
    if let Some((header, index)) = journal {
        // SAFETY: as above.
        unsafe { apply(&files, &header, &index, &image) }?;
    }
    Ok(Opened { files, image, image_bytes, log_bytes, newest, named: named.sequence })
}

/// Whole pages of a file; a growth that was cut short may have left a piece of one.
fn usable_bytes(
    file: &DiskHandle,
    what: &'static str,
    limit_bytes: u64,
) -> Result<u64, DeviceError> {
    let bytes = file.len()? / PAGE_BYTES * PAGE_BYTES;
    if bytes > page_ceil(limit_bytes) {
        let what = format!("{what} (the existing file)");
        return Err(DeviceError::Full { what, wanted_bytes: bytes, limit_bytes });
    }
    Ok(bytes)
}

/// # Safety
/// The mapping is owned by the caller.
unsafe fn load_image(file: &DiskHandle, bytes: u64, image: &Mapping) -> Result<(), DeviceError> {
    let mut at = 0;
    while let Some((start, end)) = file.next_data(at, bytes) {
        let len = (end - start).min(super::disk::PIECE_BYTES as u64);
        // SAFETY: owned by the caller.
        file.read_exact_at(start, unsafe { image.slice_mut(start, len) })?;
        at = start + len;
    }
    Ok(())
}
