//! SCRAM with a driver's own implementation, and what is not let in.

use crate::support::{PATIENCE, Server};
use std::time::Instant;
use tokio_postgres::{Config, NoTls};

async fn connect(server: &Server, user: &str, password: &str) -> Result<(), String> {
    let mut config = Config::new();
    config.host("127.0.0.1").port(server.address.port()).user(user).dbname("nvcaracal");
    config.password(password).connect_timeout(PATIENCE);
    match config.connect(NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            client.simple_query("SELECT 1").await.map(|_| ()).map_err(|error| error.to_string())
        }
        Err(error) => {
            let code = error.code().map(|code| code.code().to_owned());
            Err(code.unwrap_or_else(|| error.to_string()))
        }
    }
}

#[tokio::test]
async fn only_the_password_lets_a_client_in() {
    let server = Server::with(|options| options.password = Some("open sesame".to_owned()));
    connect(&server, "nvcaracal", "open sesame").await.unwrap();
    let wrong = || "28P01".to_owned();
    assert_eq!(connect(&server, "nvcaracal", "open").await, Err(wrong()));
    assert_eq!(connect(&server, "eve", "open sesame").await, Err(wrong()));
    // Guessing gets slow.
    for _ in 0..3 {
        assert_eq!(connect(&server, "nvcaracal", "x").await, Err(wrong()));
    }
    let started = Instant::now();
    assert_eq!(connect(&server, "nvcaracal", "x").await, Err(wrong()));
    assert!(started.elapsed().as_millis() >= 1_000);
}
