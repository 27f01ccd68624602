//! A client that keeps many updates under way on one connection, each with a Sync of its own, and
//! prints how many are answered a second:
//!
//! ```text
//! pipelined HOST PORT ROWS SECONDS UNDER_WAY
//! ```
//!
//! HOST may be the directory of a Unix socket. The table `accounts` has rows 1 to ROWS.

use std::error::Error;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio_postgres::{Config, NoTls};

const UPDATE: &str = "UPDATE accounts SET balance = balance + 1 WHERE id = $1";

struct Arguments {
    host: String,
    port: u16,
    rows: i32,
    time: Duration,
    under_way: usize,
}

impl Arguments {
    fn read() -> Result<Arguments, Box<dyn Error>> {
        let all: Vec<String> = std::env::args().skip(1).collect();
        let [host, port, rows, seconds, under_way] = all.as_slice() else {
            return Err("usage: pipelined HOST PORT ROWS SECONDS UNDER_WAY".into());
        };
        Ok(Arguments {
            host: host.clone(),
            port: port.parse()?,
            rows: rows.parse()?,
            time: Duration::from_secs_f64(seconds.parse()?),
            under_way: under_way.parse()?,
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{:.0}", runtime.block_on(updates_a_second(&arguments))?);
    Ok(())
}

async fn updates_a_second(arguments: &Arguments) -> Result<f64, Box<dyn Error>> {
    let mut config = Config::new();
    config.host(&arguments.host).port(arguments.port).user("nvcaracal").dbname("nvcaracal");
    let (client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    let update = client.prepare(UPDATE).await?;
    let (client, update) = (&client, &update);
    let send = |id: i32| async move { client.execute(update, &[&id]).await };
    // Rows that are far from each other.
    let mut ids = (0..arguments.rows).cycle().step_by(7_919).map(|row| row + 1);
    let (start, mut answered) = (Instant::now(), 0_u64);
    let mut all: FuturesOrdered<_> = ids.by_ref().take(arguments.under_way).map(send).collect();
    while let Some(updated) = all.next().await {
        if updated? != 1 {
            return Err("a row is not there".into());
        }
        answered += 1;
        if start.elapsed() < arguments.time {
            all.extend(ids.by_ref().take(1).map(send));
        }
    }
    let rate = answered as f64 / start.elapsed().as_secs_f64();
    connection.abort();
    Ok(rate)
}
