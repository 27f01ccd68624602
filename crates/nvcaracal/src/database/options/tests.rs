//! Defaults, and that they can be set.

use super::*;

/// The command line takes its defaults from the same place (`lab/cli/tests/all/report.rs`).
#[test]
fn defaults_are_the_engines_and_can_be_set() {
    for device in ["dram", "emulated:none", "emulated:optane", "dax:/pm/db", "file:db"] {
        let device: DeviceSpec = device.parse().expect("a device");
        let expected = EngineConfig::for_device(&device);
        let config = Options::default().plan(device.clone()).config;
        assert_eq!(config.cache_bytes, expected.cache_bytes, "{device}");
        assert_eq!(config.checkpoint_every, expected.checkpoint_every, "{device}");
        let set = Options::default().cache_bytes(5).checkpoint_every(7).plan(device).config;
        assert_eq!((set.cache_bytes, set.checkpoint_every), (5, 7));
    }
}

/// What an earlier store left in the space of a new one is told from its own by this number.
#[test]
fn each_store_has_a_number_of_its_own() {
    let number = || Options::default().plan(DeviceSpec::Dram).config.store.instance;
    let (one, other) = (number(), number());
    assert_ne!(one, other);
}
