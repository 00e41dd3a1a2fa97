//! Rules for passwords: strength, age, history, and locks after failed logins.

use crate::support::{Client, Curl, MariaDb, Server, wait_until};

fn login(server: &Server, user: &str, password: &str) -> String {
    let password = format!("--password={password}");
    let client = MariaDb::new(server).user(user).option(&password);
    let output = client.run("SELECT 'in'");
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn a_locked_user_is_refused_at_every_door_until_it_is_unlocked_or_the_time_has_passed() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE USER locked IDENTIFIED BY 'right' FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME UNBOUNDED");
    root.ok("CREATE USER free IDENTIFIED BY 'right'");
    root.ok("CREATE DATABASE d");
    let url = format!("http://127.0.0.1:{}/api/d/_load_info?label=x", server.http_port());
    let http = |password: &str| Curl::as_user(&format!("locked:{password}"), &url).text();
    for _ in 0..2 {
        assert!(
            login(&server, "locked", "wrong").contains("Access denied for user 'locked'@'127.0.0.1' (using")
        );
    }
    assert!(http("wrong").contains("Access denied for user"), "it counts at this door, too");
    let refusal = "Account is blocked until ALTER USER … ACCOUNT_UNLOCK due to 3 consecutive failed logins.";
    assert!(login(&server, "locked", "right").contains(refusal));
    let answer = http("right");
    assert!(answer.contains(refusal), "{answer}");
    assert!(login(&server, "free", "right").contains("in"));
    root.ok("ALTER USER locked ACCOUNT_UNLOCK");
    assert!(login(&server, "locked", "right").contains("in"));
    root.ok("ALTER USER locked FAILED_LOGIN_ATTEMPTS 1 PASSWORD_LOCK_TIME 1 SECOND");
    assert!(login(&server, "locked", "wrong").contains("Access denied"));
    wait_until("the second has passed", || login(&server, "locked", "right").contains("in"));
}

#[test]
fn an_expired_password_is_refused_until_it_is_replaced() {
    let server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE USER old IDENTIFIED BY 'right' PASSWORD_EXPIRE INTERVAL 1 SECOND");
    wait_until("it is old", || login(&server, "old", "right").contains("Your password has expired"));
    let url = format!("http://127.0.0.1:{}/api/backends", server.http_port());
    let answer = Curl::as_user("old:right", &url).text();
    assert!(answer.contains("Your password has expired"), "{answer}");
    assert!(login(&server, "old", "wrong").contains("Access denied"), "a stranger does not learn it");
    root.ok("ALTER USER old IDENTIFIED BY 'new' PASSWORD_EXPIRE NEVER");
    assert!(login(&server, "old", "new").contains("in"));
}

#[test]
fn passwords_of_the_history_are_refused_also_after_a_restart() {
    let mut server = Server::start();
    let mut root = server.connect();
    root.ok("CREATE USER both IDENTIFIED BY 'one' PASSWORD_HISTORY 2");
    root.ok("CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY 'one' PASSWORD_HISTORY 2");
    let reused = |client: &mut Client, user: &str, password: &str| {
        let error = client.error(&format!("ALTER USER {user} IDENTIFIED BY '{password}'"));
        assert_eq!(error.number, 3638, "{error}");
        assert!(error.message.contains("contradict the password history policy"), "{error}");
    };
    for user in ["both", "sha2"] {
        reused(&mut root, user, "one");
        root.ok(&format!("ALTER USER {user} IDENTIFIED BY 'two'"));
        reused(&mut root, user, "two");
        reused(&mut root, user, "one");
    }
    server.kill();
    server.start_again();
    let mut root = server.connect();
    for user in ["both", "sha2"] {
        reused(&mut root, user, "one");
        root.ok(&format!("ALTER USER {user} IDENTIFIED BY 'three'"));
        root.ok(&format!("ALTER USER {user} IDENTIFIED BY 'one'"));
    }
}

#[test]
fn rules_of_the_server_outlive_it() {
    let mut server = Server::start();
    let mut root = server.connect();
    root.ok("SET GLOBAL validate_password_policy = STRONG");
    root.ok("SET GLOBAL password_history = 1");
    let weak = |client: &mut Client| {
        let error = client.error("CREATE USER weak IDENTIFIED BY 'weak'");
        assert_eq!(error.number, 1819, "{error}");
        assert_eq!(
            error.message,
            "Violate password validation policy: STRONG. The password must be at least 8 characters"
        );
    };
    weak(&mut root);
    server.kill();
    server.start_again();
    let mut root = server.connect();
    weak(&mut root);
    assert_eq!(root.error("CREATE USER open").number, 1819);
    root.ok("CREATE USER strong IDENTIFIED BY 'Str0ng, isn''t it?'");
    assert_eq!(root.error("SET PASSWORD FOR strong = PASSWORD('Str0ng, isn''t it?')").number, 3638);
    root.ok("SET GLOBAL validate_password_policy = DEFAULT");
    root.ok("CREATE USER weak IDENTIFIED BY 'weak'");
    server.kill();
    server.start_again();
    server.connect().ok("CREATE USER weaker IDENTIFIED BY 'weak'");
}

#[test]
fn options_that_are_out_of_range_or_unknown_are_refused() {
    let server = Server::shared();
    let mut client = server.connect();
    for (options, text) in [
        ("PASSWORD_HISTORY 25", "PASSWORD_HISTORY 25 is out of range: at most 24"),
        ("PASSWORD_EXPIRE INTERVAL 0 DAY", "PASSWORD_EXPIRE needs an interval above 0, or NEVER"),
        ("PASSWORD_EXPIRE", "DEFAULT, NEVER or INTERVAL"),
        ("PASSWORD_LOCK_TIME 5", "DAY, HOUR or SECOND"),
        ("ACCOUNT_UNLOCK", "ACCOUNT_UNLOCK"),
    ] {
        let error = client.error(&format!("CREATE USER nobody IDENTIFIED BY 'x' {options}"));
        assert!(error.message.contains(text), "{options}: {error}");
    }
}
