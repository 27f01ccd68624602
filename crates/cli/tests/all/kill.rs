//! Real processes that end at any moment: killed, aborted at a call to the file system, stopped and
//! woken, out of space; while they run, while they recover, while files grow. Whatever happened,
//! nothing that was acknowledged is lost, every digest is that of a run that was left alone, and
//! `check` finds nothing (O-25, O-29, O-52, O-56, O-58).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Background, PAUSE, Ran, Room, SMALL, command, run, run_command};
use rustix::process::Signal;
use sim::history::{Random, effort};

const EPOCHS: u64 = 16;

/// Calls at which a process may end, and up to which of them.
const POINTS: [(&str, u64); 16] = [
    ("any-any", 400),
    ("any-any", 60),
    ("any-read", 30),
    ("any-grow", 12),
    ("log-grow", 4),
    ("data-grow", 8),
    ("log-write", 80),
    ("log-torn", 60),
    ("log-sync", 40),
    ("table-write", 40),
    ("table-torn", 30),
    ("table-sync", 10),
    ("meta-write", 6),
    ("data-write", 60),
    ("data-torn", 40),
    ("data-sync", 10),
];

/// How a round ends.
#[derive(Debug)]
enum Ending {
    /// SIGKILL after so many looks at the acknowledgements.
    Kill(u64),
    /// SIGKILL of `recover`, after so many looks.
    KillRecovery(u64),
    /// Before or in a call to the file system.
    Die(String),
    /// SIGSTOP after so many looks; then SIGCONT, or SIGKILL.
    Stop(u64, bool),
    /// No file may grow beyond so many blocks of 1 KiB.
    Full(u64),
}

impl Ending {
    fn random(random: &mut Random) -> Self {
        match random.below(20) {
            0..4 => Self::Kill(random.below(60)),
            4..6 => Self::KillRecovery(random.below(8)),
            6..16 => {
                let (point, most) = random.pick(&POINTS);
                Self::Die(format!("{point}:{}", 1 + random.below(most)))
            }
            16..18 => Self::Stop(random.below(40), random.percent(50)),
            _ => Self::Full(random.pick(&[700, 1500, 3000, 4100, 6000])),
        }
    }
}

/// A store on its way through the rounds, and what it must be like.
struct Lab {
    room: Room,
    line: String,
    reference: BTreeMap<u64, String>,
    /// Rounds by the kind of ending.
    rounds: BTreeMap<&'static str, u64>,
    /// Runs that came to their end between two rounds.
    finished: u64,
    /// Since the store began there was too little room for a while: the library may have run an
    /// epoch in parts, and those behind it have other numbers.
    was_full: bool,
}

/// Epochs of an acknowledgement log, with their digests.
pub(crate) fn acknowledged(path: &PathBuf) -> BTreeMap<u64, String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let pairs = whole.lines().map(|line| line.split_once(' ').expect("epoch and digest"));
    pairs.map(|(epoch, digest)| (epoch.parse().expect("a number"), digest.to_string())).collect()
}

impl Lab {
    fn new(workload: (&str, &str)) -> Self {
        let room = Room::new();
        let (name, size) = workload;
        let line = format!(
            "bench {name} {size} --epochs {EPOCHS} --checkpoint-every 3 --no-progress \
             --segment-bytes 16384"
        );
        let (store, acks) = (room.text("reference"), room.text("reference.acks"));
        run(&format!("{line} --device file:{store} --ack-log {acks}")).succeeded();
        let reference = acknowledged(&room.path("reference.acks"));
        Self { room, line, reference, rounds: BTreeMap::new(), finished: 0, was_full: false }
    }

    fn resume(&self) -> String {
        let (store, acks) = (self.room.text("store"), self.room.text("acks"));
        format!("{} --device file:{store} --ack-log {acks} --resume", self.line)
    }

    fn start(&self, line: &str) -> Background {
        let mut command = command(line);
        let null = std::process::Stdio::null;
        Background::start_command(command.stdout(null()).stderr(null()))
    }

    /// Looks at a process so many times, with a pause between, or until it ends.
    fn look(process: &mut Background, times: u64) -> bool {
        for _ in 0..times {
            if process.status().is_some() {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        process.status().is_some()
    }

    /// One round; what came of the process, if it was not killed.
    fn round(&mut self, ending: &Ending) -> Option<Ran> {
        let resume = self.resume();
        match ending {
            Ending::Kill(looks) => {
                self.count("kill");
                let mut process = self.start(&resume);
                if Self::look(&mut process, *looks) {
                    return Some(process.ended());
                }
                process.kill();
                None
            }
            Ending::KillRecovery(looks) => {
                self.count("kill in recovery");
                let mut process = self.start(&format!("recover {}", self.room.text("store")));
                Self::look(&mut process, *looks);
                process.kill();
                None
            }
            Ending::Die(point) => {
                self.count("fail point");
                let ran = run_command(&mut command(&format!("{resume} --die-at {point}")));
                if ran.code != -1 {
                    return Some(ran);
                }
                self.count("fail point met");
                None
            }
            Ending::Stop(looks, wake) => {
                self.count("stop");
                let mut process = self.start(&resume);
                if Self::look(&mut process, *looks) {
                    return Some(process.ended());
                }
                process.signal(Signal::STOP);
                self.second_open_is_refused();
                if !wake {
                    process.kill();
                    return None;
                }
                process.signal(Signal::CONT);
                Some(process.ended())
            }
            Ending::Full(blocks) => {
                self.count("full");
                self.was_full = true;
                // The kernel sends SIGXFSZ for a write beyond the limit, which ends nothing.
                let binary = crate::BINARY;
                let script = format!("ulimit -f {blocks}; exec {binary} {resume}");
                let ran = run_command(Command::new("bash").args(["-c", &script]));
                if ran.code == 0 {
                    return Some(ran);
                }
                ran.failed(1, &["room", "free space"]);
                None
            }
        }
    }

    fn count(&mut self, kind: &'static str) {
        *self.rounds.entry(kind).or_default() += 1;
    }

    /// O-52: also while the process that has the store open is stopped.
    fn second_open_is_refused(&self) {
        let store = self.room.path("store");
        if store.join("log").exists() {
            let ran = run(&format!("check {} --json", store.display()));
            // It may have been stopped before it took the lock, or before there was a store.
            assert!(ran.code == 0 || ran.stderr.contains("locked") || no_store(&ran), "{ran:#?}");
        }
    }

    /// What must hold after every round.
    fn inspect(&self, replay: bool) {
        let last = self.check_acknowledged();
        let recovered = self.check(last);
        if replay && recovered > 0 {
            run(&format!("recover {} --workers 1", self.room.text("store"))).succeeded();
            assert_eq!(self.check(last), recovered, "recovered to another epoch than promised");
        }
    }

    /// Holds what was acknowledged against the run that was left alone; the last epoch of it.
    fn check_acknowledged(&self) -> u64 {
        let acks = acknowledged(&self.room.path("acks"));
        if self.was_full {
            assert!(acks.values().eq(self.reference.values().take(acks.len())), "{acks:#?}");
        } else {
            for (epoch, digest) in &acks {
                assert_eq!(Some(digest), self.reference.get(epoch), "acknowledged epoch {epoch}");
            }
        }
        acks.keys().last().copied().unwrap_or(0)
    }

    /// Checks the store; returns the epoch that it recovers to.
    fn check(&self, last: u64) -> u64 {
        let store = self.room.text("store");
        let ran = run(&format!("check {store} --json"));
        if no_store(&ran) {
            assert_eq!(last, 0, "epoch {last} was acknowledged, and there is no store");
            return 0;
        }
        let found = ran.succeeded().json();
        let epoch = |field: &str| found[field].as_u64().expect("an epoch");
        let (checkpoint, recovers_to) = (epoch("epoch"), epoch("recovers_to_epoch"));
        assert!(recovers_to >= last, "epoch {last} was acknowledged: {found:#}");
        // An epoch that was run in parts has states in between, which were not acknowledged.
        let expected = match self.was_full {
            true => acknowledged(&self.room.path("acks")).remove(&checkpoint),
            false => self.reference.get(&checkpoint).cloned(),
        };
        if checkpoint > 0 && (expected.is_some() || !self.was_full) {
            assert_eq!(found["state_digest"].as_str(), expected.as_deref(), "epoch {checkpoint}");
        }
        recovers_to
    }

    /// A run came to its end: everything is as in the run that was left alone. Begins anew.
    fn finish(&mut self, ran: &Ran) {
        assert_eq!(ran.code, 0, "{ran:#?}");
        let last = self.check_acknowledged();
        assert_eq!(acknowledged(&self.room.path("acks")).len(), self.reference.len());
        self.check(last);
        std::fs::remove_dir_all(self.room.path("store")).expect("a store");
        std::fs::remove_file(self.room.path("acks")).expect("acknowledgements");
        self.finished += 1;
        self.was_full = false;
    }
}

fn no_store(ran: &Ran) -> bool {
    ["holds no database", "no store here"].iter().any(|text| ran.stderr.contains(text))
}

fn rounds(workload: (&str, &str), count: u64) {
    let seed = effort("NVCARACAL_FIRST_SEED", 1);
    let mut random = Random::new(seed);
    let mut lab = Lab::new(workload);
    for round in 1..=effort("NVCARACAL_KILLS", count) {
        let ending = Ending::random(&mut random);
        eprintln!("{}, seed {seed}, round {round}: {ending:?}", workload.0);
        if let Some(ran) = lab.round(&ending) {
            lab.finish(&ran);
        }
        if lab.room.path("store").exists() {
            lab.inspect(random.percent(40));
        }
    }
    let last = run(&lab.resume());
    lab.finish(&last);
    let Lab { rounds, finished, .. } = &lab;
    println!("{}: {rounds:?}, {finished} runs came to their end", workload.0);
}

#[test]
fn smallbank_survives_every_ending() {
    rounds(SMALL[1], 25);
}

#[test]
fn tpcc_survives_every_ending() {
    rounds(SMALL[2], 12);
}

#[test]
fn o_52_fail_points_belong_to_the_file_device() {
    let ran = run("bench smallbank --customers 3600 --epochs 1 --device dram --die-at log-sync");
    ran.failed(2, &["no fail points"]);
    let ran = run("bench smallbank --customers 3600 --epochs 1 --die-at tape-sync");
    assert_eq!(ran.code, 2, "{ran:#?}");
}
