//! Logins of real clients: plugins of passwords, TLS, and the cost of failures.

use crate::support::certificates::Authority;
use crate::support::programs::{go, java, node, python, run};
use crate::support::{Client, Curl, MariaDb, Server, wait_until};
use tempfile::TempDir;

/// A server with TLS, and the users of the tests.
struct Secured {
    server: Server,
    authority: Authority,
    _dir: TempDir,
}

impl Secured {
    fn start(more: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(dir.path());
        let mut settings = authority.settings();
        settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let server = Server::with_settings(&settings);
        Self { server, authority, _dir: dir }
    }

    /// Users whose passwords are `right`: for either plugin, and for both.
    fn with_users(self) -> Self {
        let mut root = self.server.connect();
        root.ok("CREATE USER both IDENTIFIED BY 'right'");
        root.ok("CREATE USER native IDENTIFIED WITH mysql_native_password BY 'right'");
        root.ok("CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY 'right'");
        self
    }

    fn port(&self) -> String {
        self.server.mysql_port().to_string()
    }
}

/// Checks the lines that a program printed about its logins: `tls` stands for any cipher.
fn check(program: &str, lines: &str, expected: &[(&str, &str)]) {
    let found: Vec<&str> =
        lines.lines().map(|line| if line.contains("_AES_") { "tls" } else { line }).collect();
    let wanted: Vec<&str> = expected.iter().map(|(_, result)| *result).collect();
    let cases: Vec<&str> = expected.iter().map(|(case, _)| *case).collect();
    assert_eq!(found, wanted, "{program}: {cases:?}\n{lines}");
}

/// Logins of which every driver is capable. A wrong password is refused in each way.
const EVERYWHERE: [(&str, &str); 9] = [
    ("native:right:plain", "-"),
    ("both:right:plain", "-"),
    ("native:right:tls", "tls"),
    ("both:right:tls", "tls"),
    ("native:wrong:plain", "1045"),
    ("both:wrong:tls", "1045"),
    ("sha2:wrong:tls", "1045"),
    ("nobody:right:tls", "1045"),
    ("root::tls", "tls"),
];

/// The password of a user of `caching_sha2_password` is sent once, over TLS or hidden, and then remembered.
const HIDDEN_BY_KEY: [(&str, &str); 3] =
    [("sha2:right:plain", "-"), ("sha2:right:plain", "-"), ("sha2:right:tls", "tls")];

fn logins(cases: &[(&str, &str)], run: impl Fn(&[&str]) -> String) -> String {
    let texts: Vec<&str> = cases.iter().map(|(case, _)| *case).collect();
    run(&texts)
}

fn with<'a>(first: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [first, rest].concat()
}

#[test]
fn pymysql_logs_in_with_either_plugin() {
    let secured = Secured::start(&[]).with_users();
    let cases = [&HIDDEN_BY_KEY[..], &EVERYWHERE].concat();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let lines = logins(&cases, |texts| python("login_checks.py", &with(&["pymysql", &port, &ca], texts)));
    check("PyMySQL", &lines, &cases);
}

#[test]
fn mysqls_python_driver_logs_in_with_either_plugin() {
    let secured = Secured::start(&[]).with_users();
    // It does not hide a password with a key, but sends it as it is, which is not taken: the first login needs TLS.
    let first = [("sha2:right:plain", "1045"), ("sha2:right:tls", "tls"), ("sha2:right:plain", "-")];
    let cases = [&first[..], &EVERYWHERE].concat();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let lines = logins(&cases, |texts| python("login_checks.py", &with(&["connector", &port, &ca], texts)));
    check("MySQL Connector/Python", &lines, &cases);
}

#[test]
fn mysqls_client_library_logs_in_with_and_without_its_native_plugin() {
    let secured = Secured::start(&[]).with_users();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    // The library does not ask for a key either. It says itself that a password needs TLS.
    let first = [("sha2:right:plain", "2061"), ("sha2:right:tls", "tls"), ("sha2:right:plain", "-")];
    let cases = [&first[..], &EVERYWHERE].concat();
    let lines = logins(&cases, |texts| python("login_checks.py", &with(&["library", &port, &ca], texts)));
    check("MySQL's client library", &lines, &cases);

    // Without it, whatever the greeting names, the library answers with `caching_sha2_password`.
    let secured = Secured::start(&[]).with_users();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let cases = [
        ("both:right:plain", "2061"),
        ("both:right:tls", "tls"),
        ("both:right:plain", "-"),
        ("native:right:plain", "2061"),
        ("native:right:tls", "tls"),
        ("native:wrong:tls", "1045"),
        ("both:wrong:plain", "2061"),
        ("sha2:right:tls", "tls"),
        ("sha2:wrong:tls", "1045"),
        ("nobody:right:tls", "1045"),
        ("root::tls", "tls"),
        ("root::plain", "-"),
    ];
    let lines = logins(&cases, |texts| {
        python("login_checks.py", &with(&["library-without-native", &port, &ca], texts))
    });
    check("MySQL's client library without mysql_native_password", &lines, &cases);
}

#[test]
fn connector_j_logs_in_with_either_plugin() {
    let secured = Secured::start(&[]).with_users();
    let refused = "Public Key Retrieval is not allowed";
    // To a server that calls itself older than 8.0.5 it hides the password with a padding that is open to attacks.
    let first = [
        ("sha2:right:plain", refused),
        ("sha2:right:key", "1045"),
        ("sha2:right:tls", "tls"),
        ("sha2:right:plain", "-"),
    ];
    let cases = [&first[..], &EVERYWHERE].concat();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let lines = logins(&cases, |texts| java("LoginChecks", &with(&[&port, &ca], texts)));
    check("Connector/J", &lines, &cases);
}

#[test]
fn mysql2_for_node_logs_in_with_either_plugin() {
    let secured = Secured::start(&[]).with_users();
    let cases = [&HIDDEN_BY_KEY[..], &EVERYWHERE].concat();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let lines = logins(&cases, |texts| node("login_checks.js", &with(&[&port, &ca], texts)));
    check("mysql2", &lines, &cases);
}

#[test]
fn go_sql_driver_logs_in_with_either_plugin() {
    let secured = Secured::start(&[]).with_users();
    let cases = [&HIDDEN_BY_KEY[..], &EVERYWHERE].concat();
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let lines =
        logins(&cases, |texts| run("logins", go("logins").args(with(&[&port, &ca], texts))).success());
    check("go-sql-driver", &lines, &cases);
}

#[test]
fn mariadbs_client_logs_in_with_either_plugin() {
    let secured = Secured::start(&[]).with_users();
    let server = &secured.server;
    let ca = format!("--ssl-ca={}", secured.authority.path("ca.pem"));
    let login = |user: &'static str, password: &'static str, tls: bool| {
        let client = MariaDb::new(server).user(user).option(password);
        let client =
            if tls { client.option("--ssl").option(&ca).option("--ssl-verify-server-cert") } else { client };
        client.run("SHOW STATUS LIKE 'Ssl_cipher'")
    };
    for user in ["native", "both", "sha2"] {
        let shown = login(user, "--password=right", true).success();
        assert!(shown.contains("_AES_"), "{user}: {shown}");
        let shown = login(user, "--password=right", false).success();
        assert!(!shown.contains("_AES_"), "{user}: {shown}");
        let refused = login(user, "--password=wrong", true).failure();
        assert!(refused.contains("1045"), "{user}: {refused}");
    }
}

#[test]
fn a_password_is_asked_for_again_after_a_restart_and_after_it_has_changed() {
    let mut secured = Secured::start(&[]).with_users();
    let plain = |secured: &Secured, password: &str| -> Vec<String> {
        let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
        let cases = ["plain", "tls", "plain"].map(|way| format!("sha2:{password}:{way}"));
        let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
        let lines = python("login_checks.py", &with(&["connector", &port, &ca], &cases));
        let short = |line: &str| if line.contains("_AES_") { "tls" } else { line }.to_owned();
        lines.lines().map(short).collect()
    };
    let seen_first: Vec<String> = ["1045", "tls", "-"].map(str::to_owned).to_vec();
    assert_eq!(plain(&secured, "right"), seen_first);
    secured.server.stop();
    secured.server.start_again();
    assert_eq!(plain(&secured, "right"), seen_first, "the memory ended with the server");
    secured.server.connect().ok("ALTER USER sha2 IDENTIFIED WITH caching_sha2_password BY 'new'");
    assert_eq!(plain(&secured, "new"), seen_first, "the memory ended with the password");
    assert_eq!(plain(&secured, "right"), ["1045", "1045", "1045"].map(str::to_owned).to_vec());
}

#[test]
fn a_server_that_requires_tls_refuses_clients_without_it() {
    let secured = Secured::start(&[("require_secure_transport", "true")]);
    let error = Client::try_connect(secured.server.mysql_port(), None).err().expect("it is refused");
    assert_eq!(error.number, 3159, "{error}");
    let (port, ca) = (secured.port(), secured.authority.path("ca.pem"));
    let lines = python("login_checks.py", &["pymysql", &port, &ca, "root::plain", "root::tls"]);
    check("PyMySQL", &lines, &[("plain", "3159"), ("tls", "tls")]);
}

#[test]
fn a_user_that_requires_tls_or_a_certificate_is_refused_without_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(dir.path());
    authority.issue("client");
    let ca = authority.path("ca.pem");
    let mut settings = authority.settings();
    settings.push(("tls_client_ca".to_owned(), ca.clone()));
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let server = Server::with_settings(&settings);
    let mut root = server.connect();
    root.ok("CREATE USER tls IDENTIFIED BY 'right' REQUIRE SSL");
    root.ok("CREATE USER certified IDENTIFIED BY 'right' REQUIRE X509");
    let (ca, certificate, key) = (
        format!("--ssl-ca={ca}"),
        format!("--ssl-cert={}", authority.path("client.pem")),
        format!("--ssl-key={}", authority.path("client.key")),
    );
    let login = |user: &'static str, options: &[&str]| {
        let client = MariaDb::new(&server).user(user).option("--password=right");
        let output = options.iter().fold(client, |client, option| client.option(option)).run("SELECT 1");
        output.is_success
    };
    assert!(!login("tls", &[]) && login("tls", &["--ssl", &ca]));
    assert!(!login("certified", &[]) && !login("certified", &["--ssl", &ca]));
    assert!(login("certified", &["--ssl", &ca, &certificate, &key]));
    root.ok("ALTER USER certified REQUIRE NONE");
    assert!(login("certified", &[]));
}

#[test]
fn loads_over_https_take_the_same_ports_and_https_can_be_required() {
    let secured = Secured::start(&[("require_secure_transport", "true"), ("redirect_loads", "true")]);
    let server = &secured.server;
    let ca = secured.authority.path("ca.pem");
    let (http, webserver) = (server.http_port(), server.webserver_port());
    let ca_option = format!("--ssl-ca={ca}");
    let root = || MariaDb::new(server).option("--ssl").option(&ca_option);
    root().shows(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1",
    );
    let load = |url: &str| {
        let path = "api/d/t/_stream_load";
        Curl::put(&format!("{url}/{path}")).argument("--cacert").argument(&ca).header("Expect: 100-continue")
    };
    let reply = load(&format!("https://localhost:{webserver}")).body("1\n2\n").load().success();
    assert_eq!(reply.rows(), [2, 2, 0, 0]);
    // By the other port, which sends the load on to `https://…` again.
    let reply = load(&format!("https://localhost:{http}")).argument("--location-trusted").body("3\n").load();
    assert_eq!(reply.success().rows(), [1, 1, 0, 0]);
    let (status, text) = load(&format!("http://localhost:{webserver}")).body("4\n").status_and_text();
    assert_eq!(status, 403, "{text}");
    assert!(text.contains("use https"), "{text}");
    for path in ["api/health", "metrics"] {
        let (status, _) = Curl::anonymous(&format!("http://localhost:{http}/{path}")).status_and_text();
        assert_eq!(status, 200, "{path} needs no login");
    }
    let shown = root().shows("SYNC; SELECT COUNT(*) AS loaded FROM d.t");
    assert!(shown.contains("|      3 |"), "{shown}");
}

#[test]
fn a_changed_certificate_is_shown_to_new_connections() {
    let secured = Secured::start(&[]);
    let server = &secured.server;
    let other = tempfile::tempdir().expect("a directory");
    let strangers = Authority::new(other.path());
    let trusts = |authority: &Authority| {
        let (port, ca) = (secured.port(), authority.path("ca.pem"));
        let line = python("login_checks.py", &["pymysql", &port, &ca, "root::tls"]);
        line.contains("_AES_")
    };
    assert!(trusts(&secured.authority) && !trusts(&strangers));
    // Another authority's certificate, and first without its key.
    let replace = |name: &str| {
        std::fs::copy(strangers.path(name), secured.authority.path(name)).expect("copied");
    };
    replace("server.pem");
    let error = server.connect().error("ALTER INSTANCE RELOAD TLS");
    assert!(
        error.message.contains("the certificate before stays") && error.message.contains("server.key"),
        "{error}"
    );
    assert!(trusts(&secured.authority), "the one before stays");
    replace("server.key");
    server.connect().ok("ALTER INSTANCE RELOAD TLS");
    assert!(trusts(&strangers) && !trusts(&secured.authority));
    secured.authority.issue("server");
    server.signal("HUP");
    wait_until("the signal has effect", || trusts(&secured.authority));
    server.connect().ok("CREATE USER nobody");
    let mut nobody = Client::connect_as("nobody", server.mysql_port()).expect("it has no password");
    nobody.refused("ALTER INSTANCE RELOAD TLS", 1227, "");
}

#[test]
fn failed_logins_delay_the_next_one_from_the_same_address_at_every_door() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE USER guessed IDENTIFIED BY 'right'");
    let url = format!("http://127.0.0.1:{}/api/backends", server.http_port());
    let http = |password: &str| Curl::as_user(&format!("guessed:{password}"), &url).text();
    assert!(http("right").contains("backends"));
    let refused = "too many failed logins from this address, try again in ";
    let guesses = (0..40).take_while(|_| !http("wrong").contains(refused)).count();
    assert!((6..40).contains(&guesses), "{guesses} guesses were checked");
    let output = MariaDb::new(&server).user("guessed").option("--password=right").run("SELECT 1").failure();
    assert!(output.contains(refused), "{output}");
    assert_eq!(server.connect().value("SELECT 1"), "1", "others are served");
}

#[test]
fn a_server_that_stores_no_native_hashes_takes_none() {
    let server = Server::with_settings(&[
        ("password_verifiers", "sha2"),
        ("default_authentication_plugin", "caching_sha2_password"),
    ]);
    let mut root = server.connect();
    assert_eq!(root.value("SELECT @@default_authentication_plugin"), "caching_sha2_password");
    root.ok("CREATE USER u IDENTIFIED BY 'right'");
    let error = root.error("ALTER USER u IDENTIFIED WITH mysql_native_password BY 'x'");
    assert!(error.message.contains("nothing for mysql_native_password"), "{error}");
    assert_eq!(
        python(
            "login_checks.py",
            &["pymysql", &server.mysql_port().to_string(), "-", "u:right:plain", "u:wrong:plain"]
        ),
        "-\n1045\n"
    );
}
