//! What a call of several statements came to.

use super::super::call::{decode_answer, decode_error};
use super::super::failure;
use super::form::{Failed, ONE_REFUSED};
use values::{Error, Result};

/// The results of the statements of a call: the last may be an error, which undid the others.
pub(super) fn decode_answers(answer: nvcaracal::Result<Vec<u8>>) -> Vec<Result<sql::run::Answer>> {
    let damaged = || vec![Err(Error::corrupted("answer of a call is damaged"))];
    match answer {
        Ok(bytes) => match postcard::from_bytes::<Vec<Vec<u8>>>(&bytes) {
            Ok(answers) => answers.iter().map(|bytes| decode_answer(bytes)).collect(),
            Err(_) => damaged(),
        },
        Err(error) => match error.abort() {
            Some(abort) if abort.code == ONE_REFUSED => {
                let Ok(failed) = postcard::from_bytes::<Failed>(&abort.payload) else {
                    return damaged();
                };
                let answers = failed.answers.iter().map(|bytes| decode_answer(bytes));
                answers.chain([Err(decode_error(&failed.error))]).collect()
            }
            _ => vec![Err(failure::of_call(&error))],
        },
    }
}
