//! The designs that a workload can run on: those of the engine, the engine in DRAM, and rivals.

use bench::{BenchError, Result};
use pmem::DeviceSpec;

use crate::rival_run::{Deterministic, Rival};

/// What keeps the rows (NV 6.4, 6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// One of the engine's, on whatever device.
    Engine(engine::Design),
    /// All of it in DRAM and without a log: what persistent memory costs is what this saves.
    AllDram,
    /// The first step from Caracal to NVCaracal (the report of 2021): nothing is logged or
    /// cached, and each row that an epoch updated is collected in the next one.
    Report2021,
    /// Another engine (NV 6.3).
    Rival(Rival),
    /// Another deterministic engine, in DRAM and without a log (CA 5.2).
    Deterministic(Deterministic),
}

impl Default for Design {
    fn default() -> Self {
        Self::Engine(engine::Design::default())
    }
}

impl Design {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let of_engine = engine::Design::ALL.into_iter().map(Self::Engine);
        let deterministic = Deterministic::ALL.map(Self::Deterministic);
        let others = [Self::AllDram, Self::Report2021];
        of_engine
            .chain(others)
            .chain(Rival::all().into_iter().map(Self::Rival))
            .chain(deterministic)
            .collect()
    }

    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine(design) => design.name(),
            Self::AllDram => "all-dram",
            Self::Report2021 => "report-2021",
            Self::Rival(rival) => rival.name(),
            Self::Deterministic(engine) => engine.name(),
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Engine(design) => design.what(),
            Self::AllDram => "no-logging on the device dram",
            Self::Report2021 => "no-logging without a cache and without minor collection",
            Self::Rival(rival) => rival.what(),
            Self::Deterministic(engine) => engine.what(),
        }
    }

    /// What the engine is told, if it runs.
    #[must_use]
    pub fn of_engine(self) -> engine::Design {
        match self {
            Self::Engine(design) => design,
            Self::AllDram | Self::Report2021 => engine::Design::NoLogging,
            Self::Rival(_) | Self::Deterministic(_) => engine::Design::default(),
        }
    }

    /// The device that it runs on, given what was asked for.
    ///
    /// # Errors
    /// `Usage` if it cannot run there.
    pub fn device(self, asked: Option<DeviceSpec>) -> Result<Option<DeviceSpec>> {
        let usage = |what: String| Err(BenchError::Usage(what));
        match (self, asked) {
            (Self::Engine(engine::Design::Nvcaracal), asked) => Ok(asked),
            (Self::AllDram | Self::Deterministic(_), None | Some(DeviceSpec::Dram)) => {
                Ok(Some(DeviceSpec::Dram))
            }
            (Self::AllDram | Self::Deterministic(_), Some(other)) => {
                let name = self.name();
                usage(format!("design {name} runs on dram: leave out --device {other}"))
            }
            (
                Self::Engine(_) | Self::Report2021,
                Some(spec @ (DeviceSpec::Dram | DeviceSpec::Emulated(_))),
            ) => Ok(Some(spec)),
            (Self::Rival(rival), None) if rival.logs_to_file() => Ok(None),
            (Self::Rival(rival), Some(spec @ DeviceSpec::File(_))) if rival.logs_to_file() => {
                Ok(Some(spec))
            }
            (Self::Rival(rival), Some(other)) if rival.logs_to_file() => {
                let name = self.name();
                usage(format!("design {name} logs to a file: give --device file:DIR, not {other}"))
            }
            (Self::Rival(_), Some(spec @ DeviceSpec::Emulated(_))) => Ok(Some(spec)),
            (Self::Rival(_), _) => usage(format!(
                "design {} runs in emulated persistent memory: give --device emulated[:PROFILE]",
                self.name()
            )),
            (Self::Engine(_) | Self::Report2021, _) => usage(format!(
                "design {} keeps nothing durable: give --device emulated[:PROFILE] or dram",
                self.name()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_without_a_log_run_in_memory() {
        let spec = |text: &str| Some(text.parse::<DeviceSpec>().expect("a device"));
        for design in Design::all() {
            let is_nvcaracal = design == Design::default();
            let in_dram = matches!(design, Design::AllDram | Design::Deterministic(_));
            let in_file = matches!(design, Design::Rival(rival) if rival.logs_to_file());
            assert_eq!(design.device(None).is_ok(), is_nvcaracal || in_dram || in_file);
            let on_file = design.device(spec("file:/x"));
            assert_eq!(on_file.is_ok(), is_nvcaracal || in_file, "{}", design.name());
            let is_rival = matches!(design, Design::Rival(_));
            assert_eq!(design.device(spec("dram")).is_ok(), !is_rival, "{}", design.name());
            let emulated = design.device(spec("emulated:low"));
            assert_eq!(emulated.is_ok(), !in_dram && !in_file, "{}", design.name());
        }
    }
}
