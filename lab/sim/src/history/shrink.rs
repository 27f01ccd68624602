//! Makes a failing history small: what can be left out without making it pass, is.

use super::program::{Program, for_serial_part, is_serial};

/// An epoch of a history: its calls, and what is done after it, by a number that the test
/// understands.
#[derive(Debug, Clone)]
pub struct Step<A> {
    /// Its calls, encoded.
    pub calls: Vec<Vec<u8>>,
    /// What is done after it.
    pub after: Option<A>,
}

/// The smallest history that still fails that a greedy search finds.
pub fn shrink<A: Clone>(
    mut history: Vec<Step<A>>,
    fails: &mut dyn FnMut(&[Step<A>]) -> bool,
) -> Vec<Step<A>> {
    loop {
        let before = size(&history);
        drop_parts(&mut history, &mut |smaller| fails(smaller));
        for epoch in 0..history.len() {
            let mut calls = history[epoch].calls.clone();
            drop_parts(&mut calls, &mut |fewer| {
                let mut smaller = history.clone();
                smaller[epoch].calls = fewer.to_vec();
                fails(&smaller)
            });
            history[epoch].calls = calls;
            let mut smaller = history.clone();
            if smaller[epoch].after.take().is_some() && fails(&smaller) {
                history = smaller;
            }
            for call in 0..history[epoch].calls.len() {
                shrink_program(&mut history, epoch, call, fails);
            }
        }
        if size(&history) == before {
            return history;
        }
    }
}

fn size<A>(history: &[Step<A>]) -> usize {
    let calls = history.iter().flat_map(|step| &step.calls);
    let actions = history.iter().filter(|step| step.after.is_some()).count();
    calls.map(|call| call.len() + 1).sum::<usize>() + history.len() + actions
}

/// Leaves out halves, quarters, and so on down to single elements.
fn drop_parts<T: Clone>(list: &mut Vec<T>, fails: &mut dyn FnMut(&[T]) -> bool) {
    let mut part = list.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < list.len() {
            let mut smaller = list.clone();
            smaller.drain(at..(at + part).min(list.len()));
            if fails(&smaller) {
                *list = smaller;
            } else {
                at += part;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
}

fn shrink_program<A: Clone>(
    history: &mut [Step<A>],
    epoch: usize,
    call: usize,
    fails: &mut dyn FnMut(&[Step<A>]) -> bool,
) {
    let before = &history[epoch].calls[call];
    let (mut program, is_serial) = (Program::decode(before), is_serial(before));
    let encode = |program: &Program| match is_serial {
        true => for_serial_part(program.encode()),
        false => program.encode(),
    };
    for part in 0..3 {
        let mut steps = program.parts()[part].clone();
        drop_parts(&mut steps, &mut |fewer| {
            let mut smaller = program.clone();
            *smaller.parts()[part] = fewer.to_vec();
            let mut with = history.to_vec();
            with[epoch].calls[call] = encode(&smaller);
            fails(&with)
        });
        *program.parts()[part] = steps;
        history[epoch].calls[call] = encode(&program);
    }
}

/// For people.
pub fn describe<A: std::fmt::Debug>(history: &[Step<A>]) -> String {
    let mut text = String::new();
    for (epoch, step) in history.iter().enumerate() {
        text += &format!("epoch {}:\n", epoch + 1);
        for (position, call) in step.calls.iter().enumerate() {
            let Program { sequences, declares, body } = Program::decode(call);
            let part = if is_serial(call) { ", for the serial part" } else { "" };
            text += &format!("  call {position}{part}:\n");
            for (name, steps) in [("allocates", sequences), ("declares", declares), ("body", body)]
            {
                for step in steps {
                    text += &format!("    {name} {step:?}\n");
                }
            }
        }
        if let Some(after) = &step.after {
            text += &format!("  then {after:?}\n");
        }
    }
    text
}
