//! `bench`: workloads on engines, and measurements that need none.

mod ablation;
mod arulraj;
mod device;
mod interfaces;
mod peers;
mod roofline;
mod workload;

use cli::output::Done;

use crate::args::BenchCommand;

/// Runs a `bench` command.
pub(crate) fn bench(command: &BenchCommand) -> Done {
    match command {
        BenchCommand::Ycsb(options) => workload::run(options),
        BenchCommand::Smallbank(options) => workload::run(options),
        BenchCommand::Tpcc(options) => workload::run(options),
        BenchCommand::Roofline(options) => roofline::run(options),
        BenchCommand::Device(options) => device::run(options),
        BenchCommand::Ablation(options) => ablation::run(options),
        BenchCommand::Peers(options) => peers::run(options),
        BenchCommand::PeerProcess => peers::serve(),
        BenchCommand::Arulraj(options) => arulraj::run(options),
        BenchCommand::Interfaces(options) => interfaces::run(options),
    }
}
