//! Addresses on a server that listens on all of them: those of clients, and its own in answers.

use crate::support::{Curl, DT, MariaDb, Server};
use serde_json::{Value, json};
use std::net::{IpAddr, UdpSocket};

/// A server on all addresses of IPv4 and IPv6, whose users have the password `p`.
fn on_all_addresses() -> Server {
    let mut server = Server::start();
    let mut client = server.connect();
    for user in ["root", "admin"] {
        client.ok(&format!("SET PASSWORD FOR '{user}' = PASSWORD('p')"));
    }
    drop(client);
    assert!(server.stop().success());
    server.set("bind", "::");
    server.start_again();
    server
}

/// The output of statements, or the error.
fn sql(server: &Server, user: &str, statements: &str) -> Result<String, String> {
    let finished = MariaDb::new(server).user(user).option("--password=p").run(statements);
    if finished.is_success { Ok(finished.stdout) } else { Err(finished.stderr) }
}

fn get(credentials: &str, url: &str, host: &str) -> Value {
    let (status, text) = Curl::as_user(credentials, url).header(&format!("Host: {host}")).status_and_text();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_client_of_ipv4_has_the_same_address_by_every_protocol_and_listener() {
    let server = on_all_addresses();
    let port = server.http_port();
    let url = format!("http://127.0.0.1:{port}/api/backends");
    for (host, works) in [("127.0.0.%", true), ("::ffff:%", false), ("10.%", false)] {
        let name = format!("u{}", host.len());
        sql(&server, "root", &format!("CREATE USER '{name}'@'{host}' IDENTIFIED BY 'p';")).expect("root may");
        let status = Curl::as_user(&format!("{name}:p"), &url).status_and_text().0;
        assert_eq!(status, if works { 200 } else { 401 }, "{host} by HTTP");
        assert_eq!(sql(&server, &name, "SELECT 1;").is_ok(), works, "{host} by MySQL");
    }
}

/// An address of this machine besides loopback, if there is one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|local| local.ip()).filter(|own| !own.is_loopback())
}

#[test]
fn answers_of_a_server_on_all_addresses_name_it_as_the_client_has_reached_it() {
    let server = on_all_addresses();
    let (http, webserver) = (server.http_port(), server.webserver_port());
    let wals = &get("root:p", &format!("http://127.0.0.1:{http}/api/get_wal_size"), "localhost")["data"];
    assert_eq!(*wals, json!([format!("localhost:{webserver}:0")]));
    sql(&server, "root", &format!("CREATE DATABASE db; USE db; {DT}")).expect("root may");
    let load = |host: &str, header: &str| {
        let curl = Curl::as_user("root:p", &format!("http://{host}:{http}/api/db/dt/_stream_load"));
        let curl = curl.argument("-X").argument("PUT").header("column_separator:,").header(header);
        curl.body("x,y,z\n").load().get("ErrorURL")
    };
    let error_url = load("127.0.0.1", "label:a");
    assert!(error_url.starts_with(&format!("http://127.0.0.1:{webserver}/")), "{error_url}");
    assert!(Curl::anonymous(&error_url).text().contains("Reason"), "it can be followed");
    let Some(own) = own_address() else {
        return eprintln!("not tried: this machine has no address but loopback, which has names of its own");
    };
    let url = format!("http://{own}:{http}/api/backends");
    for (host, ip) in [
        ("db.example:1", "db.example"),
        ("[2001:db8::1]:1", "2001:db8::1"),
        ("0.0.0.0:1", &own.to_string()),
        ("no/host", &own.to_string()),
    ] {
        let backends = &get("root:p", &url, host)["data"]["backends"];
        assert_eq!(*backends, json!([{"ip": ip, "http_port": webserver, "is_alive": true}]), "{host}");
    }
    let spoofed = load(&own.to_string(), "Host: evil.example");
    assert!(spoofed.starts_with("http://evil.example:"), "{spoofed}");
    let shown = sql(&server, "root", "USE db; SHOW STREAM LOAD;").expect("root may");
    assert!(shown.contains(&format!("http://{own}:{webserver}/api/_load_error_log")), "{shown}");
    assert!(!shown.contains("evil"), "others get the server's own address: {shown}");
}

#[test]
fn a_setting_names_the_host_of_answers() {
    let server = Server::with_settings(&[("advertised_host", "loads.example")]).with_manual_table();
    let url = format!("http://127.0.0.1:{}/api/backends", server.http_port());
    assert_eq!(get("root:", &url, "localhost")["data"]["backends"][0]["ip"], "loads.example");
    let reply = Curl::stream_load(&server, "db", "dt").header("column_separator:,").body("x,y,z\n").load();
    assert!(reply.get("ErrorURL").starts_with("http://loads.example:"), "{}", reply.text);
}
