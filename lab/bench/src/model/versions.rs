//! Engines with versions: Caracal with its options, and Bohm.
//!
//! Tasks of execution only wait for calls with smaller serial ids, and each core runs its own in
//! that order. So simulating all of them in serial order is the same as by time.

use std::collections::{BTreeMap, HashMap};

use engine::{AppendMethod, Packing};

use super::costs::Costs;
use super::engines::{Cores, Last, Places, Simulated, Versions};
use super::shape::{Access, Kind, Shape};

/// Calls that a core takes at a time.
const RUN_CALLS: usize = 4;
/// Part of an append that is the making of the version array, where that is done apart.
const MAKING: f64 = 0.5;

pub(super) fn simulate(
    versions: Versions,
    shape: &Shape,
    costs: &Costs,
    cores: usize,
) -> Simulated {
    let mut simulated = Simulated::default();
    let declaring = shape.accesses() as f64 * costs.control_ns / cores as f64;
    simulated.control_ns = declaring
        + match versions.places {
            Places::Shared(AppendMethod::RowLock) => row_locks(shape, costs, cores, &mut simulated),
            Places::Shared(AppendMethod::Batch) => batch(shape, costs, cores, &mut simulated),
            Places::Owner => owners(shape, costs, cores, &mut simulated),
        };
    Execution::new(versions, shape, costs, cores).run(&mut simulated);
    simulated
}

/// Each append takes its row's lock and moves what is behind its place. Cores meet at locks as time
/// has it, so the core whose clock is behind has its turn.
fn row_locks(shape: &Shape, costs: &Costs, cores: usize, simulated: &mut Simulated) -> f64 {
    let mut lists = vec![Vec::new(); cores];
    for (call, accesses) in shape.calls.iter().enumerate() {
        let writes = accesses.iter().filter(|access| access.writes());
        lists[call / RUN_CALLS % cores].extend(writes.map(|access| (call, access.row as usize)));
    }
    let mut clocks = Cores::new(cores);
    let mut locks: Vec<Option<Last>> = vec![None; shape.rows];
    let mut arrays: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut next = vec![0; cores];
    let mut end = 0.0_f64;
    loop {
        let core = clocks.first_free();
        if clocks.0[core].is_infinite() {
            return end;
        }
        let Some(&(call, row)) = lists[core].get(next[core]) else {
            end = end.max(clocks.0[core]);
            clocks.0[core] = f64::INFINITY;
            continue;
        };
        next[core] += 1;
        let array = arrays.entry(row).or_default();
        let place = array.partition_point(|other| *other < call);
        let mut at = clocks.0[core];
        if let Some(last) = locks[row] {
            simulated.waited_ns += (last.at - at).max(0.0);
            at = at.max(last.at);
            if last.core != core {
                simulated.hand_overs += 1;
                at += costs.line_ns;
            }
        }
        at += costs.append_ns + (array.len() - place) as f64 * costs.move_ns;
        array.insert(place, call);
        locks[row] = Some(Last { at, core });
        clocks.0[core] = at;
    }
}

/// The first append to a row claims it, the others go to buffers, from which the core that claimed
/// it makes the row's array.
fn batch(shape: &Shape, costs: &Costs, cores: usize, simulated: &mut Simulated) -> f64 {
    let mut claimed: Vec<Option<usize>> = vec![None; shape.rows];
    let (mut finding, mut making) = (Cores::new(cores), Cores::new(cores));
    for (call, accesses) in shape.calls.iter().enumerate() {
        let core = call / RUN_CALLS % cores;
        for access in accesses.iter().filter(|access| access.writes()) {
            let claim = &mut claimed[access.row as usize];
            let Some(maker) = *claim else {
                *claim = Some(core);
                finding.0[core] += costs.append_ns;
                continue;
            };
            finding.0[core] += costs.append_ns * (1.0 - MAKING);
            making.0[maker] += costs.append_ns * MAKING;
            if maker != core {
                simulated.messages += 1;
                making.0[maker] += costs.message_ns();
            }
        }
    }
    finding.end() + making.end() + costs.barrier_ns(cores)
}

/// Writes are dealt to the owners of their keys, which make all versions.
fn owners(shape: &Shape, costs: &Costs, cores: usize, simulated: &mut Simulated) -> f64 {
    let (mut dealing, mut making) = (Cores::new(cores), Cores::new(cores));
    for (call, accesses) in shape.calls.iter().enumerate() {
        let core = call / RUN_CALLS % cores;
        for access in accesses.iter().filter(|access| access.writes()) {
            let owner = scattered(access.row) % cores;
            dealing.0[core] += costs.append_ns * (1.0 - MAKING);
            making.0[owner] += costs.append_ns * MAKING;
            if owner != core {
                simulated.messages += 1;
                making.0[owner] += costs.message_ns();
            }
        }
    }
    dealing.end() + making.end() + costs.barrier_ns(cores)
}

/// A row's number, scattered.
pub(super) fn scattered(row: u32) -> usize {
    ((u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

struct Execution<'a> {
    shape: &'a Shape,
    costs: &'a Costs,
    clocks: Cores,
    rows: Vec<Option<Last>>,
    /// Contended rows with the cores that run their pieces: where a row begins on a line of length
    /// 1, and how long it is.
    line: BTreeMap<u32, (f64, f64)>,
}

impl<'a> Execution<'a> {
    fn new(versions: Versions, shape: &'a Shape, costs: &'a Costs, cores: usize) -> Self {
        let line = match versions.split_threshold {
            0 => BTreeMap::new(),
            threshold => packed(shape, threshold, versions.packing, cores),
        };
        let rows = vec![None; shape.rows];
        Self { shape, costs, clocks: Cores::new(cores), rows, line }
    }

    fn run(mut self, simulated: &mut Simulated) {
        let mut core = 0;
        for (call, accesses) in self.shape.calls.iter().enumerate() {
            if call % RUN_CALLS == 0 {
                core = self.clocks.first_free();
            }
            self.call(call, core, accesses, simulated);
        }
        simulated.execute_ns = self.clocks.end();
    }

    /// The body and the pieces that stay with it; then those that were split off, which may begin
    /// when the body has ended. What the body writes is there then, too.
    fn call(&mut self, call: usize, core: usize, accesses: &[Access], simulated: &mut Simulated) {
        let is_split = |access: &&Access| {
            access.of_piece.is_some_and(|of_piece| self.line.contains_key(&of_piece))
        };
        let (split, own): (Vec<&Access>, Vec<&Access>) = accesses.iter().partition(is_split);
        for access in &own {
            self.access(core, access, simulated);
        }
        let decided = self.clocks.0[core];
        for access in own.iter().filter(|access| access.writes()) {
            self.rows[access.row as usize] = Some(Last { at: decided, core });
        }
        for piece in split.iter().filter(|access| access.kind == Kind::Piece) {
            let runs_on = self.core_of(piece.row, call);
            let known = if runs_on == core { decided } else { decided + self.costs.message_ns() };
            simulated.messages += u64::from(runs_on != core);
            let clock = &mut self.clocks.0[runs_on];
            simulated.waited_ns += (known - *clock).max(0.0);
            *clock = clock.max(known);
            let of_piece = || split.iter().filter(|access| access.of_piece == Some(piece.row));
            of_piece().for_each(|access| self.access(runs_on, access, simulated));
            let last = Some(Last { at: self.clocks.0[runs_on], core: runs_on });
            let written = of_piece().filter(|access| access.writes());
            written.for_each(|access| self.rows[access.row as usize] = last);
        }
    }

    /// A core accesses a row, once the version that it reads is there.
    fn access(&mut self, core: usize, access: &Access, simulated: &mut Simulated) {
        let clock = &mut self.clocks.0[core];
        if let Some(last) = self.rows[access.row as usize]
            && access.kind != Kind::Insert
        {
            simulated.waited_ns += (last.at - *clock).max(0.0);
            *clock = clock.max(last.at);
            if last.core != core {
                simulated.hand_overs += 1;
                *clock += self.costs.value_ns(access.lines);
            }
        }
        *clock += self.costs.execute_ns;
    }

    /// The core that runs a piece of a contended row.
    fn core_of(&self, row: u32, call: usize) -> usize {
        let (start, length) = self.line[&row];
        let random = scattered(call as u32 ^ row.rotate_left(16)) as f64 / (1_u64 << 32) as f64;
        let cores = self.clocks.0.len();
        (((start + random * length) * cores as f64) as usize).min(cores - 1)
    }
}

/// Places contended rows on the line, or in the middle of one core's part of it.
fn packed(
    shape: &Shape,
    threshold: u32,
    packing: Packing,
    cores: usize,
) -> BTreeMap<u32, (f64, f64)> {
    let versions = shape.versions().into_iter().enumerate();
    let mut contended: Vec<(u32, u32)> = versions
        .filter(|(_, versions)| *versions >= threshold)
        .map(|(row, versions)| (versions, row as u32))
        .collect();
    let total: f64 = contended.iter().map(|(versions, _)| f64::from(*versions)).sum();
    match packing {
        Packing::Line => {
            let mut before = 0.0;
            let place = |(versions, row)| {
                let (start, length) = (before, f64::from(versions) / total);
                before += length;
                (row, (start, length))
            };
            contended.into_iter().map(place).collect()
        }
        Packing::Whole => {
            contended.sort_unstable_by_key(|(versions, row)| (u32::MAX - versions, *row));
            let mut loads = Cores::new(cores);
            let place = |(versions, row)| {
                let least = loads.first_free();
                loads.0[least] += f64::from(versions);
                (row, ((least as f64 + 0.5) / cores as f64, 0.0))
            };
            contended.into_iter().map(place).collect()
        }
    }
}
