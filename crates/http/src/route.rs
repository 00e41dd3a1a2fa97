//! Turns a method and a path into a request.

use hyper::Method;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The request by method and path. Names are decoded. `ConsolePage` lacks the final slash of the console; its page is the `Console` file
/// without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    StreamLoad { db: String, table: String },
    TwoPhase { db: String },
    HttpStream,
    ErrorLog,
    WalSize,
    Health,
    Ready,
    Bootstrap,
    Backends,
    Nodes(Nodes),
    Schema { db: String, table: String },
    LightSchemaChange { db: String, table: String },
    Count { db: String, table: String },
    NamedLoad { db: String, table: String },
    ReadPlan { db: String, table: String },
    LoadState { db: String },
    LoadInfo { db: String },
    Cancel { db: String },
    Query { db: Option<String> },
    ShowConfig,
    SetConfig,
    Metrics,
    Root,
    ConsolePage,
    Console(String),
}

/// The nodes that a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    Frontends,
    Backends,
}

/// Why a request has no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    UnknownPath,
    /// The path is served with this method only.
    WrongMethod(&'static str),
    /// A name in the path is not UTF-8 after decoding.
    GarbledPath,
}

impl Route {
    pub(crate) fn of(method: &Method, path: &str) -> Result<Self, NoRoute> {
        let route = Self::of_path(path)?;
        let allowed = route.method();
        let head_for_get = method == Method::HEAD && allowed == "GET";
        if method.as_str() == allowed || head_for_get {
            Ok(route)
        } else {
            Err(NoRoute::WrongMethod(allowed))
        }
    }

    fn of_path(path: &str) -> Result<Self, NoRoute> {
        let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        Ok(match segments[..] {
            [""] => Self::Root,
            ["ui"] => Self::ConsolePage,
            ["ui", file] => Self::Console(decoded(file)?),
            ["metrics"] => Self::Metrics,
            ["api", "_http_stream"] => Self::HttpStream,
            ["api", "_load_error_log"] => Self::ErrorLog,
            ["api", "get_wal_size"] => Self::WalSize,
            ["api", "health"] => Self::Health,
            ["api", "ready"] => Self::Ready,
            ["api", "bootstrap"] => Self::Bootstrap,
            ["api", "backends"] => Self::Backends,
            ["rest", "v2", "manager", "node", "frontends"] => Self::Nodes(Nodes::Frontends),
            ["rest", "v2", "manager", "node", "backends"] => Self::Nodes(Nodes::Backends),
            ["api", db, "_stream_load_2pc"] | ["api", db, _, "_stream_load_2pc"] => {
                Self::TwoPhase { db: database(db)? }
            }
            ["api", "enable_light_schema_change", db, table] => {
                Self::LightSchemaChange { db: database(db)?, table: decoded(table)? }
            }
            ["api", "show_config"] => Self::ShowConfig,
            ["api", "_set_config" | "update_config"] => Self::SetConfig,
            ["api", "query", "default_cluster" | "internal"] => Self::Query { db: None },
            ["api", "query", "default_cluster" | "internal", db] => Self::Query { db: Some(database(db)?) },
            ["api", db, "get_load_state"] => Self::LoadState { db: database(db)? },
            ["api", db, "_load_info"] => Self::LoadInfo { db: database(db)? },
            ["api", db, "_cancel"] => Self::Cancel { db: database(db)? },
            ["api", db, table, "_stream_load"] => {
                Self::StreamLoad { db: database(db)?, table: decoded(table)? }
            }
            ["api", "internal", db, table, "_schema"] | ["api", db, table, "_schema"] => {
                Self::Schema { db: database(db)?, table: decoded(table)? }
            }
            ["api", db, table, "_load_state"] => {
                Self::NamedLoad { db: database(db)?, table: decoded(table)? }
            }
            ["api", db, table, "_query_plan"] => Self::ReadPlan { db: database(db)?, table: decoded(table)? },
            ["api", db, table, "_count"] => Self::Count { db: database(db)?, table: decoded(table)? },
            _ => return Err(NoRoute::UnknownPath),
        })
    }

    const fn method(&self) -> &'static str {
        match self {
            Self::StreamLoad { .. } | Self::TwoPhase { .. } | Self::HttpStream => "PUT",
            Self::Cancel { .. } | Self::Query { .. } | Self::ReadPlan { .. } | Self::SetConfig => "POST",
            _ => "GET",
        }
    }

    /// Whether it needs no login.
    pub(crate) const fn is_public(&self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Bootstrap | Self::Metrics | Self::Root)
    }

    /// Whether an orchestrator or a monitoring system asks, which must be answered even if nothing else is.
    pub(crate) const fn is_probe(&self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Metrics)
    }

    /// Whether the answer is a load's JSON document.
    pub(crate) const fn is_load(&self) -> bool {
        matches!(self, Self::StreamLoad { .. } | Self::HttpStream)
    }
}

/// A database's name, without Doris's old prefix `default_cluster:`.
fn database(segment: &str) -> Result<String, NoRoute> {
    let name = decoded(segment)?;
    Ok(name.strip_prefix("default_cluster:").map(ToOwned::to_owned).unwrap_or(name))
}

fn decoded(segment: &str) -> Result<String, NoRoute> {
    percent_decoded(segment).ok_or(NoRoute::GarbledPath)
}

/// The value of a parameter of a query string; `None` if it is absent, empty or garbled.
pub(crate) fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    query?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| percent_decoded(&value.replace('+', " ")))
        .filter(|value| !value.is_empty())
}

/// All parameters of a query string. `None`: one is garbled.
pub(crate) fn parameters(query: Option<&str>) -> Option<Vec<(String, String)>> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let decoded = |text: &str| percent_decoded(&text.replace('+', " "));
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// The address that a client fetches `file` from.
#[must_use]
pub fn error_url(host: &str, http_port: u16, file: &str) -> String {
    // An address of IPv6.
    let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
    format!("http://{open}{host}{close}:{http_port}/api/_load_error_log?file={file}")
}

/// The `file` of such an address.
#[must_use]
pub fn file_of_error_url(url: &str) -> Option<String> {
    let (_, query) = url.split_once("/api/_load_error_log?")?;
    parameter(Some(query), "file")
}

/// Decodes `%xx`. `None` if the result is not UTF-8. A `%` without two hex digits stays as it is.
fn percent_decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_path_are_decoded_after_it_is_cut() {
        let route = Route::of(&Method::PUT, "/api/my%20db/a%2Fb%E8%A1%A8/_stream_load").unwrap();
        assert_eq!(route, Route::StreamLoad { db: "my db".into(), table: "a/b表".into() });
        let route = Route::of(&Method::PUT, "/api/default_cluster:d/t/_stream_load").unwrap();
        assert_eq!(route, Route::StreamLoad { db: "d".into(), table: "t".into() });
        assert_eq!(Route::of(&Method::PUT, "/api/d/%ff/_stream_load"), Err(NoRoute::GarbledPath));
    }

    #[test]
    fn both_paths_of_two_phase_commit_name_the_database() {
        for path in ["/api/d/_stream_load_2pc", "/api/d/t/_stream_load_2pc"] {
            assert_eq!(Route::of(&Method::PUT, path), Ok(Route::TwoPhase { db: "d".into() }), "{path}");
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_one_and_head_reads() {
        assert_eq!(Route::of(&Method::POST, "/api/d/t/_stream_load"), Err(NoRoute::WrongMethod("PUT")));
        assert_eq!(Route::of(&Method::PUT, "/metrics"), Err(NoRoute::WrongMethod("GET")));
        assert_eq!(Route::of(&Method::HEAD, "/api/health"), Ok(Route::Health));
        assert_eq!(Route::of(&Method::GET, "/api/d/t/_nothing"), Err(NoRoute::UnknownPath));
        assert_eq!(Route::of(&Method::GET, "/"), Ok(Route::Root));
        let nodes = Route::of(&Method::GET, "/rest/v2/manager/node/frontends");
        assert_eq!(nodes, Ok(Route::Nodes(Nodes::Frontends)));
        assert_eq!(Route::of(&Method::GET, "/rest/v2/manager/node"), Err(NoRoute::UnknownPath));
        let schema = Ok(Route::Schema { db: "d".into(), table: "t".into() });
        assert_eq!(Route::of(&Method::GET, "/api/internal/d/t/_schema"), schema);
        let plan = Ok(Route::ReadPlan { db: "d".into(), table: "t".into() });
        assert_eq!(Route::of(&Method::POST, "/api/d/t/_query_plan"), plan);
        assert_eq!(Route::of(&Method::GET, "/ui"), Ok(Route::ConsolePage));
        assert_eq!(Route::of(&Method::GET, "/ui/"), Ok(Route::Console(String::new())));
        assert_eq!(Route::of(&Method::GET, "/ui/a/b"), Err(NoRoute::UnknownPath));
        assert_eq!(Route::of(&Method::POST, "/ui/"), Err(NoRoute::WrongMethod("GET")));
        let query = Route::Query { db: Some("d".into()) };
        assert_eq!(Route::of(&Method::POST, "/api/query/default_cluster/d"), Ok(query));
        assert_eq!(Route::of(&Method::POST, "/api/query/internal"), Ok(Route::Query { db: None }));
        assert_eq!(Route::of(&Method::POST, "/api/query/hive/d"), Err(NoRoute::UnknownPath));
        // A page that a browser shows could have it fetched.
        assert_eq!(Route::of(&Method::GET, "/api/_set_config"), Err(NoRoute::WrongMethod("POST")));
        assert_eq!(Route::of(&Method::POST, "/api/update_config"), Ok(Route::SetConfig));
    }

    #[test]
    fn a_parameter_is_found_among_others_and_decoded() {
        let query = Some("a=1&file=__shard_0%2Fx+y%zz&b");
        assert_eq!(parameter(query, "file").as_deref(), Some("__shard_0/x y%zz"));
        assert_eq!(parameter(query, "b"), None);
        assert_eq!(parameter(Some("file="), "file"), None);
        assert_eq!(parameter(None, "file"), None);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = Some(vec![pair("a b", "1"), pair("c", ""), pair("d", "x=y")]);
        assert_eq!(parameters(Some("a+b=%31&&c&d=x=y")), all);
        assert_eq!((parameters(None), parameters(Some("a=%ff"))), (Some(Vec::new()), None));
    }
}
