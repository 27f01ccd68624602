//! What a person reads when a server starts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use server::Listening;

/// A line to paste for a first row, and how the server is ended.
pub(super) fn try_it(listening: &Listening) -> Option<String> {
    let (host, port) = match (listening.addresses.first(), &listening.socket) {
        (Some(address), _) => (reachable(*address).to_string(), address.port()),
        (None, Some(socket)) => {
            // The name of the socket ends in the port.
            let port = socket.extension()?.to_str()?.parse().ok()?;
            (socket.parent()?.display().to_string(), port)
        }
        (None, None) => return None,
    };
    Some(format!(
        "try: psql -h {host} -p {port} -U nvcaracal nvcaracal    (Ctrl-C ends the server)"
    ))
}

/// The address at which a client of this machine reaches a server.
fn reachable(address: SocketAddr) -> IpAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_to_paste_names_an_address_of_this_machine() {
        let line = |addresses: &[&str], socket: Option<&str>| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
            try_it(&Listening { addresses, socket: socket.map(Into::into) })
        };
        let has = |line: Option<String>, part: &str| line.is_some_and(|line| line.contains(part));
        assert!(has(line(&["0.0.0.0:6000", "[::1]:6001"], None), "-h 127.0.0.1 -p 6000 -U"));
        assert!(has(line(&["[::]:6000"], Some("/s/.s.PGSQL.6000")), "-h ::1 -p 6000 -U"));
        assert!(has(line(&[], Some("/s/.s.PGSQL.5433")), "-h /s -p 5433 -U"));
        assert_eq!(line(&[], None), None);
    }
}
