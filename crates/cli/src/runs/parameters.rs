//! From options to parameters: what is given overrides a preset, or what the store was made with.

use bench::{Parameters, WorkloadParameters};
use clap::Args;

use crate::args::{
    Contention, Mix, RunArguments, SmallBankArguments, TpccArguments, YcsbArguments,
};

const YCSB_ROWS: u64 = 100_000;
const SMALLBANK_CUSTOMERS: u64 = 500_000;

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

fn preset(contention: Option<Contention>, default: bench::Contention) -> bench::Contention {
    match contention {
        Some(Contention::Low) => bench::Contention::Low,
        Some(Contention::Medium) => bench::Contention::Medium,
        Some(Contention::High) => bench::Contention::High,
        None => default,
    }
}

/// What a store was made with, where that is the same workload, but for what the level decides.
fn at_level(before: Option<&WorkloadParameters>, preset: WorkloadParameters) -> WorkloadParameters {
    use WorkloadParameters::{Tpcc, Ycsb};
    let Some(mut kept) = before.cloned() else { return preset };
    match (&mut kept, &preset) {
        (Ycsb { hot_keys, .. }, Ycsb { hot_keys: of_level, .. }) => *hot_keys = *of_level,
        (Tpcc { warehouses, .. }, Tpcc { warehouses: of_level, .. }) => *warehouses = *of_level,
        _ => return preset,
    }
    kept
}

/// Overrides what all workloads have in common.
fn set_common(parameters: &mut Parameters, run: &RunArguments) {
    set(&mut parameters.epoch_size, run.epoch_size);
    set(&mut parameters.seed, run.seed);
    set(&mut parameters.segment_bytes, run.segment_bytes);
    set(&mut parameters.row_bytes, run.row_bytes);
    set(&mut parameters.shared_heap_bytes, run.shared_heap_bytes);
}

/// A workload's own options.
pub trait Options {
    /// Options that all workloads have.
    type Run: AsRef<RunArguments>;
    /// Their values.
    fn run(&self) -> &Self::Run;
    /// The level that is asked for, or this workload's default.
    fn contention(&self) -> Option<Contention>;
    /// The level where none is asked for.
    fn default_contention(&self) -> bench::Contention {
        bench::Contention::Low
    }
    /// Epochs of the stream where none are asked for.
    fn default_epochs(&self) -> u64 {
        10
    }
    /// The preset of a level, at the size that is asked for or was `before`.
    fn preset(
        &self,
        contention: bench::Contention,
        before: Option<&WorkloadParameters>,
    ) -> WorkloadParameters;
    /// Overrides the workload's own parameters; leaves those of another workload alone.
    fn set(&self, workload: &mut WorkloadParameters);

    /// The parameters for a new store; with those of an existing one, theirs and what the command
    /// line changes of them.
    fn parameters(&self, stored: Option<&Parameters>) -> Parameters {
        let default = self.default_contention();
        let mut parameters = match stored {
            None => {
                let contention = preset(self.contention(), default);
                Parameters::new(self.preset(contention, None), contention)
            }
            Some(stored) if self.contention().is_none() => stored.clone(),
            Some(stored) => {
                let contention = preset(self.contention(), default);
                let workload = self.preset(contention, Some(&stored.workload));
                Parameters { workload, contention, ..stored.clone() }
            }
        };
        let own = self.preset(default, None);
        if std::mem::discriminant(&own) != std::mem::discriminant(&parameters.workload) {
            parameters.workload = own;
        }
        self.set(&mut parameters.workload);
        set_common(&mut parameters, self.run().as_ref());
        parameters
    }
}

impl<R: Args + AsRef<RunArguments>> Options for YcsbArguments<R> {
    type Run = R;

    fn run(&self) -> &R {
        &self.run
    }

    fn contention(&self) -> Option<Contention> {
        self.contention
    }

    fn preset(
        &self,
        contention: bench::Contention,
        before: Option<&WorkloadParameters>,
    ) -> WorkloadParameters {
        at_level(before, WorkloadParameters::ycsb(self.rows.unwrap_or(YCSB_ROWS), contention))
    }

    fn set(&self, workload: &mut WorkloadParameters) {
        let WorkloadParameters::Ycsb {
            rows,
            value_bytes,
            update_bytes,
            hot_rows,
            hot_keys,
            hot_spacing,
            read_keys,
            theta,
            pieces,
        } = workload
        else {
            return;
        };
        set(rows, self.rows);
        set(value_bytes, self.value_bytes);
        if self.value_bytes.is_some() {
            *update_bytes = (*update_bytes).min(*value_bytes);
        }
        set(update_bytes, self.update_bytes);
        set(hot_rows, self.hot_rows);
        set(hot_keys, self.hot_keys);
        set(hot_spacing, self.hot_spacing);
        set(read_keys, self.read_ratio);
        if self.theta.is_some() {
            *theta = self.theta;
        }
        *pieces |= self.pieces;
    }
}

impl<R: Args + AsRef<RunArguments>> Options for SmallBankArguments<R> {
    type Run = R;

    fn run(&self) -> &R {
        &self.run
    }

    fn contention(&self) -> Option<Contention> {
        self.contention
    }

    fn preset(
        &self,
        contention: bench::Contention,
        before: Option<&WorkloadParameters>,
    ) -> WorkloadParameters {
        let (customers, early) = match before {
            Some(WorkloadParameters::SmallBank { customers, commit_points, .. }) => {
                (*customers, *commit_points)
            }
            _ => (SMALLBANK_CUSTOMERS, false),
        };
        let customers = self.customers.unwrap_or(customers);
        let mut preset = WorkloadParameters::smallbank(customers, contention);
        if let WorkloadParameters::SmallBank { commit_points, .. } = &mut preset {
            *commit_points = early;
        }
        preset
    }

    fn set(&self, workload: &mut WorkloadParameters) {
        let WorkloadParameters::SmallBank { customers, hot_customers, commit_points } = workload
        else {
            return;
        };
        set(customers, self.customers);
        set(hot_customers, self.hot_customers);
        *commit_points |= self.commit_points;
    }
}

impl<R: Args + AsRef<RunArguments>> Options for TpccArguments<R> {
    type Run = R;

    fn run(&self) -> &R {
        &self.run
    }

    fn contention(&self) -> Option<Contention> {
        self.contention
    }

    fn default_contention(&self) -> bench::Contention {
        bench::Contention::Medium
    }

    fn default_epochs(&self) -> u64 {
        5
    }

    fn preset(
        &self,
        contention: bench::Contention,
        before: Option<&WorkloadParameters>,
    ) -> WorkloadParameters {
        at_level(before, WorkloadParameters::tpcc(contention))
    }

    fn set(&self, workload: &mut WorkloadParameters) {
        let WorkloadParameters::Tpcc {
            warehouses,
            mix,
            items,
            customers_per_district,
            commit_points,
            pieces,
        } = workload
        else {
            return;
        };
        set(warehouses, self.warehouses);
        set(
            mix,
            self.mix.map(|mix| match mix {
                Mix::Paper => bench::Mix::Paper,
                Mix::Full => bench::Mix::Full,
            }),
        );
        set(items, self.items);
        set(customers_per_district, self.customers_per_district);
        *commit_points |= self.commit_points;
        *pieces |= self.pieces;
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, BenchCommand, Command};

    fn parameters(line: &str, stored: Option<&Parameters>) -> Parameters {
        let words = ["nvcaracal", "bench"].into_iter().chain(line.split(' '));
        let Command::Bench(command) = Arguments::parse_from(words).command else {
            panic!("not a bench command")
        };
        match command {
            BenchCommand::Ycsb(arguments) => arguments.parameters(stored),
            BenchCommand::Smallbank(arguments) => arguments.parameters(stored),
            BenchCommand::Tpcc(arguments) => arguments.parameters(stored),
            BenchCommand::Contention(_) => panic!("not a workload"),
        }
    }

    #[test]
    fn options_override_presets() {
        let WorkloadParameters::Ycsb { rows, value_bytes, update_bytes, hot_keys, .. } =
            parameters("ycsb --contention high --rows 50 --value-bytes 64", None).workload
        else {
            panic!("another workload")
        };
        assert_eq!((rows, value_bytes, update_bytes, hot_keys), (50, 64, 64, 7));
        let asked = parameters("smallbank --customers 3600 --contention high", None).workload;
        let expected = WorkloadParameters::SmallBank {
            customers: 3600,
            hot_customers: 2,
            commit_points: false,
        };
        assert_eq!(asked, expected);
    }

    #[test]
    fn a_resume_takes_over_what_is_not_given_and_differs_in_what_is() {
        for line in [
            "ycsb --contention medium --rows 500 --theta 0.9 --epoch-size 7 --hot-keys 5 --seed 3",
            "smallbank --customers 3600 --contention high --commit-points",
            "tpcc --warehouses 3 --mix full --items 1000 --commit-points --pieces",
        ] {
            let stored = parameters(line, None);
            let name = line.split(' ').next().expect("a workload");
            assert!(stored.differences(&parameters(name, Some(&stored))).is_empty(), "{line}");
            assert!(stored.differences(&parameters(line, Some(&stored))).is_empty(), "{line}");
            let other = parameters(&format!("{name} --epoch-size 8"), Some(&stored));
            assert_eq!(stored.differences(&other).len(), 1, "{line}");
        }
        let stored = parameters("ycsb", None);
        assert_eq!(stored.differences(&parameters("tpcc", Some(&stored))).len(), 1);
    }
}
