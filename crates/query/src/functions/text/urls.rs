//! Parts of URLs: `PARSE_URL`, `DOMAIN`, `EXTRACT_URL_PARAMETER` and so on, and their encoding.
//!
//! A text without `://` is no URL; its parts are empty, and NULL in `PARSE_URL`.

use crate::functions::cells::value;
use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;
use url::form_urlencoded;

/// Second levels under which the names of countries are given, as in `example.co.uk`.
const SHARED_LEVELS: [&str; 16] = [
    "ac", "biz", "co", "com", "edu", "gob", "gov", "gv", "id", "info", "mil", "ne", "net", "nom", "or", "org",
];

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Text;
    let text = crate::functions::utf8;
    vec![
        MySqlFunction::new("parse_url", &[Text, Text, Text], text, parse_url).optional(1),
        MySqlFunction::new("extract_url_parameter", &[Text, Text], text, |args| {
            Ok(pairs(args, |url, name| {
                Url::parse(url)
                    .and_then(|url| url.query)
                    .and_then(|query| parameter(query, name))
                    .unwrap_or("")
            }))
        }),
        MySqlFunction::new("protocol", &[Text], text, |args| {
            Ok(each(&args[0], |url| Url::parse(url).map_or("", |url| url.protocol)))
        }),
        MySqlFunction::new("domain", &[Text], text, |args| Ok(each(&args[0], host))),
        MySqlFunction::new("domain_without_www", &[Text], text, |args| {
            Ok(each(&args[0], |url| host(url).strip_prefix("www.").unwrap_or(host(url))))
        }),
        MySqlFunction::new("top_level_domain", &[Text], text, |args| {
            Ok(each(&args[0], |url| levels(url, 1)))
        }),
        MySqlFunction::new("cut_to_first_significant_subdomain", &[Text], text, |args| {
            Ok(each(&args[0], significant))
        }),
        MySqlFunction::new("first_significant_subdomain", &[Text], text, |args| {
            Ok(each(&args[0], |url| significant(url).split('.').next().unwrap_or("")))
        }),
        MySqlFunction::new("url_encode", &[Text], text, |args| {
            growth::texts("url_encode", args, |row| {
                let encode =
                    |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                Ok(value(&args[0], row).map(encode))
            })
        }),
        MySqlFunction::new("url_decode", &[Text], text, url_decode),
    ]
}

fn each<'a>(array: &'a ArrayRef, of: impl Fn(&'a str) -> &'a str) -> ArrayRef {
    Arc::new(array.as_string::<i32>().iter().map(|text| text.map(&of)).collect::<StringArray>())
}

fn pairs<'a>(args: &'a [ArrayRef], of: impl Fn(&'a str, &'a str) -> &'a str) -> ArrayRef {
    let pairs = args[0].as_string::<i32>().iter().zip(args[1].as_string::<i32>());
    Arc::new(pairs.map(|(a, b)| Some(of(a?, b?))).collect::<StringArray>())
}

/// The parts of a URL as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Url<'a> {
    protocol: &'a str,
    authority: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    port: Option<&'a str>,
    path: &'a str,
    /// The path with the query.
    file: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (protocol, rest) = text.split_once("://")?;
        let is_of_protocol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if protocol.is_empty() || !protocol.bytes().all(is_of_protocol) {
            return None;
        }
        let (before, fragment) = rest.split_once('#').map_or((rest, None), |(rest, part)| (rest, Some(part)));
        let (authority, file) = before.split_at(before.find(['/', '?']).unwrap_or(before.len()));
        let (path, query) = file.split_once('?').map_or((file, None), |(path, query)| (path, Some(query)));
        let (user, address) =
            authority.rsplit_once('@').map_or((None, authority), |(user, address)| (Some(user), address));
        // An address of IPv6 is in brackets.
        let end = address.find(']').map_or(0, |end| end + 1);
        let (host, port) = match address[end..].split_once(':') {
            Some((name, port)) => (&address[..end + name.len()], Some(port)),
            None => (address, None),
        };
        Some(Self { protocol, authority, user, host, port, path, file, query, fragment })
    }
}

/// The value of the first parameter of that name.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

fn parse_url(args: &[ArrayRef]) -> Result<ArrayRef> {
    let part = |row: usize| -> Result<Option<&str>> {
        let (Some(url), Some(part)) = (value(&args[0], row), value(&args[1], row)) else { return Ok(None) };
        let url = Url::parse(url);
        let key = match args.get(2) {
            Some(keys) => match value(keys, row) {
                Some(key) if part.eq_ignore_ascii_case("QUERY") => {
                    return Ok(url.and_then(|url| parameter(url.query?, key)));
                }
                other => Some(other),
            },
            None => None,
        };
        let found = match part.to_ascii_uppercase().as_str() {
            "PROTOCOL" => url.map(|url| url.protocol),
            "HOST" => url.map(|url| url.host),
            "PATH" => url.map(|url| url.path),
            "REF" => url.and_then(|url| url.fragment),
            "AUTHORITY" => url.map(|url| url.authority),
            "FILE" => url.map(|url| url.file),
            "QUERY" => url.and_then(|url| url.query),
            "PORT" => url.and_then(|url| url.port),
            "USERINFO" => url.and_then(|url| url.user),
            _ => {
                return exec_err!(
                    "PARSE_URL does not know the part '{part}'; it has PROTOCOL, HOST, PATH, REF, AUTHORITY, FILE, QUERY, \
                     PORT and USERINFO"
                );
            }
        };
        // Only a query has keys.
        Ok(if key.is_some() { None } else { found })
    };
    let found = (0..args[0].len()).map(part).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StringArray::from(found)))
}

/// The host without user and port.
fn host(url: &str) -> &str {
    Url::parse(url).map_or("", |url| url.host)
}

/// The last levels of a host's name; empty for an address and for a name with fewer levels.
fn levels(url: &str, count: usize) -> &str {
    let host = host(url);
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
    if is_address || !host.contains('.') {
        return "";
    }
    host.rmatch_indices('.').nth(count - 1).map_or(host, |(at, _)| &host[at + 1..])
}

/// The part of a host's name that somebody has registered, as far as a list of shared second levels tells.
fn significant(url: &str) -> &str {
    let two = levels(url, 2);
    let is_shared = |two: &str| {
        two.split_once('.').is_some_and(|(second, first)| {
            first.len() == 2 && SHARED_LEVELS.contains(&second.to_ascii_lowercase().as_str())
        })
    };
    if is_shared(two) { levels(url, 3) } else { two }
}

/// Escapes that are none stay as they are; bytes that are no UTF-8 are an error.
fn url_decode(args: &[ArrayRef]) -> Result<ArrayRef> {
    growth::texts("url_decode", args, |row| {
        let Some(text) = value(&args[0], row) else { return Ok(None) };
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            let digit = |at: usize| after.get(at).and_then(|byte| (*byte as char).to_digit(16));
            match (first, digit(0), digit(1)) {
                (b'%', Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    rest = &after[2..];
                }
                (b'+', ..) => {
                    bytes.push(b' ');
                    rest = after;
                }
                (byte, ..) => {
                    bytes.push(*byte);
                    rest = after;
                }
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => exec_err!("URL_DECODE: the bytes that '{text}' encodes are not UTF-8"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_cut_at_its_signs() {
        let url = Url::parse("https://user:pw@www.example.co.uk:8080/a/b.html?x=1&y=2#top").unwrap();
        assert_eq!((url.protocol, url.authority), ("https", "user:pw@www.example.co.uk:8080"));
        assert_eq!((url.user, url.host, url.port), (Some("user:pw"), "www.example.co.uk", Some("8080")));
        assert_eq!((url.path, url.file), ("/a/b.html", "/a/b.html?x=1&y=2"));
        assert_eq!((url.query, url.fragment), (Some("x=1&y=2"), Some("top")));
        let url = Url::parse("ftp://[::1]:21?q").unwrap();
        assert_eq!((url.host, url.port, url.path, url.query), ("[::1]", Some("21"), "", Some("q")));
        for text in ["", "example.com/a", "://x", "a b://x"] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_registered_name_has_a_level_more_below_a_shared_one() {
        for (host, expected) in [
            ("www.example.com", "example.com"),
            ("news.example.com.tr", "example.com.tr"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("co.uk", "co.uk"),
            ("com.example", "com.example"),
            ("localhost", ""),
            ("10.0.0.1", ""),
        ] {
            assert_eq!(significant(&format!("http://{host}/")), expected, "{host}");
        }
    }
}
