//! Memory whose pages are filled when a thread first touches them (`userfaultfd` of Linux): a
//! thread that touches a page that is not there sleeps until another one has installed it.

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use rustix::io::Errno;
    use rustix::ioctl::{Updater, ioctl, opcode};
    use rustix::mm::{UserfaultfdFlags, userfaultfd};

    use crate::memory::PAGE_BYTES;

    /// The group of the calls, and their numbers (`linux/userfaultfd.h`).
    const GROUP: u8 = 0xaa;
    const API: u64 = 0xaa;
    const MODE_MISSING: u64 = 1;
    const EVENT_PAGE_FAULT: u8 = 0x12;
    const EVENT_BYTES: usize = 32;
    const ADDRESS_AT: usize = 16;
    /// Events that are read at once.
    const EVENTS: usize = 64;

    #[repr(C)]
    struct Api {
        api: u64,
        features: u64,
        ioctls: u64,
    }

    #[repr(C)]
    struct Range {
        start: u64,
        len: u64,
    }

    #[repr(C)]
    struct Register {
        range: Range,
        mode: u64,
        ioctls: u64,
    }

    #[repr(C)]
    struct Copy {
        to: u64,
        from: u64,
        len: u64,
        mode: u64,
        copied: i64,
    }

    #[repr(C)]
    struct Zero {
        range: Range,
        mode: u64,
        zeroed: i64,
    }

    /// The pages of a range of memory that are missing.
    #[derive(Debug)]
    pub(crate) struct PageFaults {
        fd: Arc<OwnedFd>,
        /// Address and bytes of the range.
        base: usize,
        len: u64,
        /// Readable when [`PageFaults::end`] was called.
        ended: Arc<OwnedFd>,
    }

    impl PageFaults {
        /// From now on a touch of a missing page of a range waits until the page is installed.
        ///
        /// # Safety
        /// The range is anonymous memory of pages of 4 KiB, is mapped while this lives, and some
        /// thread installs each page that is waited for.
        pub(crate) unsafe fn of(base: *mut u8, len: u64) -> io::Result<Self> {
            let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
            // Touches by the kernel are served, too, where the process may ask for that.
            // SAFETY: the descriptor is used for the range of the caller only.
            let fd = unsafe { userfaultfd(flags) }.or_else(|_| {
                // SAFETY: as above.
                unsafe { userfaultfd(flags | UserfaultfdFlags::from_bits_retain(1)) }
            })?;
            let mut api = Api { api: API, features: 0, ioctls: 0 };
            let range = Range { start: base.addr() as u64, len };
            let mut register = Register { range, mode: MODE_MISSING, ioctls: 0 };
            // SAFETY: these are the structures that the kernel expects for these numbers.
            unsafe {
                ioctl(
                    &fd,
                    Updater::<{ opcode::read_write::<Api>(GROUP, 0x3f) }, _>::new(&mut api),
                )?;
                type Registering<'a> =
                    Updater<'a, { opcode::read_write::<Register>(GROUP, 0) }, Register>;
                ioctl(&fd, Registering::new(&mut register))?;
            }
            let ended = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok(Self { fd: Arc::new(fd), base: base.addr(), len, ended: Arc::new(ended) })
        }

        /// Waits for touches of missing pages, and tells of their addresses; returns when it is to
        /// end.
        pub(crate) fn serve(&self, mut missing: impl FnMut(usize)) -> io::Result<()> {
            let mut buffer = [0; EVENT_BYTES * EVENTS];
            loop {
                let mut fds = [
                    PollFd::new(&*self.fd, PollFlags::IN),
                    PollFd::new(&*self.ended, PollFlags::IN),
                ];
                match poll(&mut fds, None) {
                    Err(Errno::INTR) => continue,
                    other => other?,
                };
                if !fds[1].revents().is_empty() {
                    return Ok(());
                }
                let read = match rustix::io::read(&*self.fd, &mut buffer) {
                    Ok(read) => read,
                    Err(Errno::AGAIN | Errno::INTR) => continue,
                    Err(e) => return Err(e.into()),
                };
                for event in buffer[..read].as_chunks::<EVENT_BYTES>().0 {
                    if event[0] == EVENT_PAGE_FAULT {
                        let address = event[ADDRESS_AT..].first_chunk().expect("an event has it");
                        missing(u64::from_ne_bytes(*address) as usize);
                    }
                }
            }
        }

        /// Lets [`PageFaults::serve`] return.
        pub(crate) fn end(&self) {
            // It can only fail where it was called more often than a number counts.
            let _ = rustix::io::write(&*self.ended, &1_u64.to_ne_bytes());
        }

        /// Installs a page, unless it is there, and wakes the threads that wait for it.
        ///
        /// # Safety
        /// The page is in the range, and what is installed is what it is to hold.
        pub(crate) unsafe fn install(&self, at: *mut u8, page: &[u8]) -> io::Result<()> {
            assert!(page.len() as u64 == PAGE_BYTES, "pages are installed whole");
            loop {
                let (to, from) = (at.addr() as u64, page.as_ptr().addr() as u64);
                let mut copy = Copy { to, from, len: PAGE_BYTES, mode: 0, copied: 0 };
                type Copying<'a> = Updater<'a, { opcode::read_write::<Copy>(GROUP, 3) }, Copy>;
                // SAFETY: that is the structure; the rest is promised.
                match unsafe { ioctl(&*self.fd, Copying::new(&mut copy)) } {
                    Err(Errno::AGAIN) => {}
                    Err(Errno::EXIST) => return self.wake(at, PAGE_BYTES),
                    other => return Ok(other?),
                }
            }
        }

        /// Installs pages of zeros, where there are none.
        ///
        /// # Safety
        /// The pages are in the range, and to hold zeros.
        pub(crate) unsafe fn install_zeros(&self, at: *mut u8, len: u64) -> io::Result<()> {
            let mut done = 0;
            while done < len {
                let range = Range { start: at.addr() as u64 + done, len: len - done };
                let mut zero = Zero { range, mode: 0, zeroed: 0 };
                type Zeroing<'a> = Updater<'a, { opcode::read_write::<Zero>(GROUP, 4) }, Zero>;
                // SAFETY: that is the structure; the rest is promised.
                match unsafe { ioctl(&*self.fd, Zeroing::new(&mut zero)) } {
                    Ok(()) => return Ok(()),
                    Err(Errno::AGAIN) => done += u64::try_from(zero.zeroed).unwrap_or(0),
                    Err(Errno::EXIST) => {
                        self.wake(at.wrapping_add(done as usize), PAGE_BYTES)?;
                        done += PAGE_BYTES;
                    }
                    Err(e) => return Err(e.into()),
                }
            }
            Ok(())
        }

        /// Lets the system serve touches of missing pages again: they are zeros. Wakes the threads
        /// that wait.
        pub(crate) fn give_up(&self) -> io::Result<()> {
            let mut range = Range { start: self.base as u64, len: self.len };
            type Leaving<'a> = Updater<'a, { opcode::read::<Range>(GROUP, 1) }, Range>;
            // SAFETY: that is the structure; pages that are there stay as they are.
            Ok(unsafe { ioctl(&*self.fd, Leaving::new(&mut range)) }?)
        }

        fn wake(&self, at: *mut u8, len: u64) -> io::Result<()> {
            let mut range = Range { start: at.addr() as u64, len };
            type Waking<'a> = Updater<'a, { opcode::read::<Range>(GROUP, 2) }, Range>;
            // SAFETY: that is the structure; waking changes no memory.
            Ok(unsafe { ioctl(&*self.fd, Waking::new(&mut range)) }?)
        }
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod system {
    use std::io::{self, ErrorKind};

    /// The pages of a range of memory that are missing: no other system knows of them.
    #[derive(Debug)]
    pub(crate) enum PageFaults {}

    impl PageFaults {
        /// # Safety
        /// None is needed.
        pub(crate) unsafe fn of(_: *mut u8, _: u64) -> io::Result<Self> {
            Err(ErrorKind::Unsupported.into())
        }

        pub(crate) fn serve(&self, _: impl FnMut(usize)) -> io::Result<()> {
            match *self {}
        }

        pub(crate) fn end(&self) {
            match *self {}
        }

        pub(crate) fn give_up(&self) -> io::Result<()> {
            match *self {}
        }

        /// # Safety
        /// None is needed.
        pub(crate) unsafe fn install(&self, _: *mut u8, _: &[u8]) -> io::Result<()> {
            match *self {}
        }

        /// # Safety
        /// None is needed.
        pub(crate) unsafe fn install_zeros(&self, _: *mut u8, _: u64) -> io::Result<()> {
            match *self {}
        }
    }
}

pub(crate) use system::PageFaults;
