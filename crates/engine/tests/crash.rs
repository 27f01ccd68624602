//! Power cuts: whatever the medium kept, recovery finds every epoch that was answered, none that
//! was not sealed, and nothing in between; and the engine goes on from there.

use std::sync::Arc;

use pmem::{Adversary, AllNewest, AllOldest, Crash};
use sim::history::{HASHED, LONG, Mix, Model, ORDERED, Op, Pair, Program, Random, Setup, Step};
use sim::history::{batch, check_clean, effort};

const IMAGE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 8 << 20;

type Batches = Vec<Vec<Vec<u8>>>;

/// What the power cut leaves: 0 the least, 1 the most, others by chance.
fn adversary(seed: u64) -> Box<dyn Adversary> {
    match seed {
        0 => Box::new(AllOldest),
        1 => Box::new(AllNewest),
        seed => Box::new(pmem::Random::new(seed)),
    }
}

/// Runs a history once without a cut: the states after each epoch, and the events before and after.
fn rehearse(setup: &Setup, batches: &Batches) -> Result<(Vec<Model>, u64, u64), String> {
    let device = Arc::new(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap());
    let mut pair = Pair::open(&device, setup, Model::default())?;
    let created = device.events();
    let mut models = vec![pair.model.clone()];
    for batch in batches {
        pair.run(batch)?;
        models.push(pair.model.clone());
    }
    Ok((models, created, device.events()))
}

/// Runs a history whose power is cut before `event`; returns the device and the last answered
/// epoch.
fn run_until(setup: &Setup, batches: &Batches, event: u64) -> Result<(Crash, u64), String> {
    let device = Arc::new(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap());
    device.cut_at(event);
    let mut engine = setup.open(&device).map_err(|error| format!("first open: {error}"))?;
    let mut answered = 0;
    for batch in batches {
        let info = sim::history::info(engine.epoch() + 1);
        let calls = sim::history::to_calls(batch);
        let outcome = engine.run_epoch(&calls, info).map_err(|e| format!("run: {e}"))?;
        if device.is_cut() {
            break;
        }
        answered = outcome.epoch;
    }
    drop(engine);
    Ok((Arc::into_inner(device).expect("the engine is gone"), answered))
}

/// Opens what a cut left, with more cuts while it opens; then runs on and compares.
fn recover(
    left: Crash,
    setup: &Setup,
    models: &[Model],
    answered: u64,
    random: &mut Random,
    cuts: u64,
) -> Result<(), String> {
    let mut left = left;
    let mut open_events = 400;
    for _ in 0..cuts {
        let device = Arc::new(left);
        device.cut_at(random.below(open_events));
        let engine = setup.reopened(random).open(&device);
        drop(engine.map_err(|error| format!("open that is cut: {error}"))?);
        open_events = device.events().max(1);
        left = device.image_after_power_cut(&mut *adversary(random.below(6)));
    }
    let device = Arc::new(left);
    check_clean(&device, &Model::default())?;
    let setup = setup.reopened(random);
    let engine = setup.open(&device).map_err(|error| format!("open: {error}"))?;
    let epoch = engine.epoch();
    if !(answered..=answered + 1).contains(&epoch) {
        return Err(format!("recovered epoch {epoch}, {answered} was answered"));
    }
    let model = models[epoch as usize].clone();
    let mut pair = Pair { engine, model };
    pair.compare_state()?;
    run_on(&mut pair, random)?;
    let Pair { engine, model } = pair;
    engine.close().map_err(|error| format!("close: {error}"))?;
    check_clean(&device, &model)?;
    Pair::open(&device, &setup, model)?;
    Ok(())
}

/// O-30: the engine goes on.
fn run_on(pair: &mut Pair<Crash>, random: &mut Random) -> Result<(), String> {
    let mix = Mix { keys: 6, long_values: true, lookups: 10 };
    for _ in 0..10 {
        let calls = random.below(6);
        pair.run(&batch(random, &mix, calls)).map_err(|error| format!("afterwards: {error}"))?;
    }
    pair.compare_state().map_err(|error| format!("afterwards: {error}"))
}

fn write(op: Op, table: u8, key: u8, size: u8) -> Vec<u8> {
    let declare = match op {
        Op::Insert => Op::DeclareInsert,
        Op::Delete => Op::DeclareDelete,
        _ => Op::DeclareUpdate,
    };
    Program {
        draws: vec![],
        declares: vec![Step::new(declare, table, key)],
        body: vec![Step::new(op, table, key).size(size).tag(key ^ size)],
    }
    .encode()
}

/// Few rows with everything that touches the medium: values of all kinds, collections, deletions
/// and insertions of the same keys, two writers of one row of which the later aborts, a sequence.
fn tiny_history() -> Batches {
    let insert = |table, key, size| write(Op::Insert, table, key, size);
    let aborting = {
        let mut program = Program::decode(&insert(ORDERED, 0, 11));
        program.body.push(Step::new(Op::Abort, ORDERED, 0).tag(3));
        program.encode()
    };
    let drawing = Program {
        draws: vec![Step::new(Op::Draw, HASHED, 1)],
        declares: vec![Step::new(Op::DeclareDrawn, ORDERED, 0)],
        body: vec![Step::new(Op::InsertDrawn, ORDERED, 0).size(14)],
    }
    .encode();
    vec![
        vec![insert(ORDERED, 0, 13), insert(ORDERED, 1, 15), insert(LONG, 2, 4), drawing.clone()],
        vec![insert(ORDERED, 0, 14), insert(ORDERED, 1, 3), write(Op::Delete, LONG, 2, 0)],
        vec![insert(ORDERED, 0, 19), aborting, insert(LONG, 2, 17), drawing],
        vec![write(Op::Delete, ORDERED, 0, 0), insert(ORDERED, 1, 19), insert(LONG, 2, 19)],
        vec![insert(ORDERED, 0, 13), insert(LONG, 2, 18), write(Op::Modify, ORDERED, 1, 0)],
    ]
}

/// O-22, O-23, O-25 to O-29, O-34 to O-36, O-38: the power is cut before every store, flush and
/// fence.
#[test]
fn o_26_every_event_of_a_small_history() {
    let stride = effort("NVCARACAL_CRASH_STRIDE", 3);
    for (workers, checkpoint_every) in [(1, 1), (1, 2), (2, 1)] {
        let setup = Setup {
            workers,
            checkpoint_every,
            row_bytes: [64, 128, 128],
            segment_bytes: 4096,
            ..Setup::default()
        };
        let batches = tiny_history();
        let (models, created, end) = rehearse(&setup, &batches).unwrap();
        for event in (created..end).step_by(stride as usize) {
            let (device, answered) = run_until(&setup, &batches, event).unwrap();
            for seed in 0..4 {
                let mut random = Random::new(event * 8 + seed);
                let left =
                    device.image_after_power_cut(&mut *adversary(seed.min(2) + event * (seed / 2)));
                let cuts = [0, 1, 0, 3][seed as usize];
                recover(left, &setup, &models, answered, &mut random, cuts).unwrap_or_else(
                    |error| {
                        panic!(
                            "workers {workers}, every {checkpoint_every}, cut at {event} of \
                         {created}..{end}, adversary {seed}, {answered} answered: {error}"
                        )
                    },
                );
            }
        }
    }
}

fn one_seed(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let setup = Setup::random(&mut random);
    let mix = Mix { keys: random.pick(&[2, 6, 20]), long_values: random.percent(70), lookups: 10 };
    let most = random.pick(&[4, 12, 40]);
    let epochs = 2 + random.below(6);
    let batches: Batches = (0..epochs)
        .map(|_| {
            let calls = 1 + random.below(most);
            batch(&mut random, &mix, calls)
        })
        .collect();
    let (models, created, end) = rehearse(&setup, &batches)?;
    for _ in 0..3 {
        let event = created + random.below(end - created);
        let (device, answered) = run_until(&setup, &batches, event)?;
        for _ in 0..2 {
            let choice = random.below(8);
            let left = device.image_after_power_cut(&mut *adversary(choice));
            let cuts = random.pick(&[0, 0, 1, 3]);
            recover(left, &setup, &models, answered, &mut random, cuts).map_err(|error| {
                format!(
                    "{setup:?}, cut at {event} of {created}..{end}, adversary {choice}: {error}"
                )
            })?;
        }
    }
    Ok(())
}

/// As above, with larger histories and all choices, at random events.
#[test]
fn o_29_random_histories_at_random_events() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_CRASHES", 60) {
        one_seed(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// O-53: a store whose creation was cut is created by the next open, or is whole.
#[test]
fn o_53_creation_is_all_or_nothing() {
    let setup = Setup { segment_bytes: 4096, ..Setup::default() };
    let (models, created, _) = rehearse(&setup, &vec![]).unwrap();
    for event in 0..created {
        let (device, answered) = run_until(&setup, &vec![], event).unwrap();
        for seed in 0..5 {
            let left = device.image_after_power_cut(&mut *adversary(seed));
            let mut random = Random::new(event * 8 + seed);
            let device = Arc::new(left);
            let engine = setup.open(&device).unwrap_or_else(|error| {
                panic!("cut at {event} of {created}, adversary {seed}: {error}")
            });
            let mut pair = Pair { engine, model: models[answered as usize].clone() };
            run_on(&mut pair, &mut random).unwrap();
        }
    }
}
