//! The web console as a browser fetches it. Its own tests drive a browser: crates/console/web.

use crate::support::{Curl, Server};

/// The page needs no login, runs nothing that is not the server's, and is asked for again only when it has changed.
#[test]
fn the_console_is_served_under_a_strict_policy() {
    let server = Server::start();
    let url = |file: &str| format!("http://127.0.0.1:{}/ui{file}", server.http_port());
    let get = |file: &str, headers: &[&str]| {
        Curl::anonymous(&url(file)).argument("--include").headers(headers).status_and_text()
    };
    let (status, page) = get("/", &[]);
    assert_eq!(status, 200, "{page}");
    let lower = page.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self';",
        "x-content-type-options: nosniff",
        "cache-control: no-cache",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(lower.contains(header), "{header}: {page}");
    }
    let etag = lower.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an etag").trim().to_owned();
    assert_eq!(get("/", &[&format!("if-none-match: {etag}")]).0, 304);
    assert_eq!(get("/app.js", &[]).0, 200);
    assert_eq!(get("/nothing.js", &[]).0, 404);
    let (status, moved) = get("", &[]);
    assert!(status == 308 && moved.to_lowercase().contains("location: ui/"), "{status}: {moved}");
    let rebound = Curl::anonymous(&url("/")).headers(&["host: attacker.example"]).status_and_text();
    assert_eq!(rebound.0, 403, "{}", rebound.1);
}
