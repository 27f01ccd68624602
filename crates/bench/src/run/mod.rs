//! A workload through the library, as its users meet it: under clients for a time, or its stream of
//! epochs one after the other, which can be verified, killed and resumed.

mod ack;
mod answers;
mod calls;
mod client;
mod clients;
mod clients_table;
mod open;
mod position;
mod recover;
mod stream;
mod stream_table;
mod verify;

pub use ack::AckLog;
pub use clients::{
    Alone, ClientSettings, ClientsReport, ClientsRun, EngineAlone, SERIAL_CALLS_MAX, run_clients,
};
pub use clients_table::render as render_clients;
pub use open::Settings;
pub use recover::{ImageReads, RecoverSummary, Recovered, recover};
pub use stream::{StreamReport, StreamSettings, run_stream};
pub use stream_table::render as render_stream;
pub use verify::{differing_rows, hex};
