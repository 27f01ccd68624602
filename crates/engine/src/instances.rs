//! In the dev profile: the engine, compiled for the devices of `pmem`.
//!
//! The engine is generic over its device, so a crate that names one of a device compiles all of it
//! and of `storage` again: six crates and their tests do. At the optimisation level of the dev
//! profile a crate takes a generic function from the crates that it depends on, where they have
//! compiled it for the same types; so they are compiled here, once. Release builds share nothing,
//! and are left alone.

use std::hint::black_box;

use pmem::{Crash, Dax, Device, Dram, Emulated, File, Traced};

use crate::engine::Engine;

/// Keeps the functions below, which are never called.
#[used]
static KEPT: [fn(); 6] = [
    functions::<Crash>,
    functions::<Dax>,
    functions::<Dram>,
    functions::<Emulated>,
    functions::<File>,
    functions::<Traced>,
];

/// Names what others call; the rest follows.
fn functions<D: Device>() {
    black_box([
        Engine::<D>::open as *const (),
        Engine::<D>::open_with as *const (),
        Engine::<D>::run_epoch as *const (),
        Engine::<D>::get as *const (),
        Engine::<D>::scan as *const (),
        Engine::<D>::for_each as *const (),
        Engine::<D>::memory as *const (),
        Engine::<D>::prepare_rows as *const (),
        Engine::<D>::checkpoint as *const (),
        Engine::<D>::close as *const (),
        crate::recovery::kept::check_kept_indexes::<D> as *const (),
        storage::check::check::<D> as *const (),
    ]);
}
