//! From a step to messages, and the answers of both servers.

use super::servers::Servers;
use crate::generate::{Extended, Sending, Step};
use crate::tree::{Kind, Parameter};
use crate::wire::{Client, Event};
use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use std::collections::HashMap;

/// Binary forms of parameters, which PostgreSQL makes of their texts.
#[derive(Default)]
pub(crate) struct Forms(HashMap<(String, String), Option<Vec<u8>>>);

impl Forms {
    /// The binary form of a parameter; `None` if its text is no value of its type.
    fn binary(&mut self, parameter: &Parameter, client: &mut Client) -> Option<Vec<u8>> {
        let text = parameter.text.clone()?;
        if parameter.kind == Kind::Array(&Kind::Mood) {
            // Its bytes say the number of the enum, which each server gives by itself.
            return None;
        }
        let kind = parameter.kind.name();
        let known = self.0.entry((kind.clone(), text.clone()));
        known.or_insert_with(|| ask(client, &format!("SELECT $1::{kind}"), &text)).clone()
    }
}

fn ask(client: &mut Client, query: &str, text: &str) -> Option<Vec<u8>> {
    let mut messages = BytesMut::new();
    frontend::parse("", query, [], &mut messages).ok()?;
    let value = [Some(text.as_bytes().to_vec())];
    bind(value, &[0], 1, &mut messages)?;
    frontend::execute("", 0, &mut messages).ok()?;
    frontend::sync(&mut messages);
    client.exchange(&messages, 1).into_iter().find_map(|event| match event {
        Event::Row(mut values) => values.pop().flatten(),
        _ => None,
    })
}

fn bind(
    values: impl IntoIterator<Item = Option<Vec<u8>>>,
    formats: &[i16],
    result: i16,
    messages: &mut BytesMut,
) -> Option<()> {
    let write = |value: Option<Vec<u8>>, buffer: &mut BytesMut| {
        Ok(match value {
            Some(bytes) => {
                buffer.extend_from_slice(&bytes);
                IsNull::No
            }
            None => IsNull::Yes,
        })
    };
    frontend::bind("", "", formats.iter().copied(), values, write, [result], messages).ok()
}

/// Sends a step to both servers: PostgreSQL's events, then those of the server under test.
pub(crate) fn both(
    step: &Step,
    servers: &mut Servers,
    forms: &mut Forms,
) -> (Vec<Event>, Vec<Event>) {
    let messages = match step.sending {
        Sending::Simple => {
            let texts: Vec<_> = step.statements.iter().map(|one| one.tree.to_sql()).collect();
            let mut messages = BytesMut::new();
            frontend::query(&texts.join("; "), &mut messages).map(|()| messages).ok()
        }
        Sending::Extended(choices) => {
            // A client in a failed block cannot be asked: a connection of its own makes the forms.
            extended(step, choices, servers, forms)
        }
    };
    let Some(messages) = messages else {
        let lost = vec![Event::Lost("the step cannot be sent".to_owned())];
        return (lost.clone(), lost);
    };
    let theirs = servers.theirs.exchange(&messages, 1);
    (theirs, servers.ours.exchange(&messages, 1))
}

fn extended(
    step: &Step,
    choices: Extended,
    servers: &mut Servers,
    forms: &mut Forms,
) -> Option<BytesMut> {
    let mut messages = BytesMut::new();
    for statement in &step.statements {
        let (sql, parameters) = statement.tree.to_parameters();
        let mut values = Vec::new();
        let mut formats = Vec::new();
        for parameter in &parameters {
            let binary = match choices.are_parameters_binary {
                true => forms.binary(parameter, servers.forms()?),
                false => None,
            };
            formats.push(i16::from(binary.is_some()));
            values.push(binary.or_else(|| parameter.text.clone().map(String::into_bytes)));
        }
        frontend::parse("", &sql, [], &mut messages).ok()?;
        let result = i16::from(choices.are_results_binary && !statement.is_loose);
        bind(values, &formats, result, &mut messages)?;
        frontend::describe(b'P', "", &mut messages).ok()?;
        frontend::execute("", choices.rows_max, &mut messages).ok()?;
        for _ in 0..choices.again {
            frontend::execute("", 0, &mut messages).ok()?;
        }
    }
    frontend::sync(&mut messages);
    Some(messages)
}
