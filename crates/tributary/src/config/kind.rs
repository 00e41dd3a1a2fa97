//! The legal values of a setting, and the conversion of its text.
//!
//! Not its business: which settings there are.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tributary_catalog::PostgresUrl;
use tributary_engine::{StoreLocation, WhenFull};
use tributary_tls::MinimumVersion;
use tributary_types::{AuthPlugin, Egress, Portion, Secret, StoredVerifiers};
use url::Url;

/// The legal values of a setting that is on or off.
const FLAG: &str = "true or false";

/// The legal values of a setting, in a form that errors and the reference can print.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// A whole number within the bounds.
    Whole {
        min: u64,
        max: u64,
        #[cfg_attr(not(test), allow(dead_code, reason = "the reference of settings is written by a test"))]
        unit: &'static str,
    },
    /// Text of a form that these words describe.
    Text(&'static str),
    /// Text that nothing shows.
    Secret(&'static str),
    /// A URL, in which a password that somebody wrote there is not shown.
    Url(&'static str),
}

/// A rule, and the value of a text that follows it.
#[derive(Clone, Copy)]
pub(super) struct Accepts<T> {
    pub(super) rule: Rule,
    read: fn(&str) -> Option<T>,
}

impl<T> Accepts<T> {
    /// The value of `text`; `None` when the rule is broken.
    pub(super) fn value(&self, text: &str) -> Option<T> {
        match self.rule {
            Rule::Whole { min, max, .. } => {
                text.parse().ok().filter(|number| (min..=max).contains(number))?;
            }
            Rule::Text(_) | Rule::Secret(_) | Rule::Url(_) => {}
        }
        (self.read)(text)
    }
}

impl Rule {
    /// The text of a value as it may be shown.
    pub(super) fn shown(self, value: &str) -> String {
        match self {
            Self::Secret(_) if !value.is_empty() => "***".to_owned(),
            Self::Url(_) => without_password(value),
            _ => value.to_owned(),
        }
    }

    /// A value as configuration files have it.
    pub(super) fn toml(self, value: String) -> String {
        match self {
            // Without leading zeros, and in quotes where TOML's numbers end.
            Self::Whole { .. } => match value.parse::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => toml::Value::String(value).to_string(),
            },
            Self::Text(_) | Self::Secret(_) | Self::Url(_) => toml::Value::String(value).to_string(),
        }
    }

    /// The type, by Doris's name.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Whole { .. } => "long",
            Self::Text(FLAG) => "boolean",
            Self::Text(_) | Self::Secret(_) | Self::Url(_) => "string",
        }
    }

    /// The words after "is not" in an error.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Whole { min, max, unit: "" } => format!("a whole number from {min} to {max}"),
            Self::Whole { min, max, unit } => format!("a whole number from {min} to {max} ({unit})"),
            Self::Text(words) | Self::Secret(words) | Self::Url(words) => words.to_owned(),
        }
    }
}

/// The text without what is between the first colon of a user's part and the host.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let Some((user, host)) = rest.rsplit_once('@') else { return text.to_owned() };
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{host}"),
        None => text.to_owned(),
    }
}

const fn text<T>(words: &'static str, read: fn(&str) -> Option<T>) -> Accepts<T> {
    Accepts { rule: Rule::Text(words), read }
}

const fn whole<T>(min: u64, max: u64, unit: &'static str, read: fn(&str) -> Option<T>) -> Accepts<T> {
    Accepts { rule: Rule::Whole { min, max, unit }, read }
}

pub(super) const fn directory() -> Accepts<PathBuf> {
    text("a directory", |text| (!text.is_empty()).then(|| PathBuf::from(text)))
}

pub(super) const fn flag() -> Accepts<bool> {
    text(FLAG, |text| text.to_ascii_lowercase().parse().ok())
}

/// A port, or -1 for none.
pub(super) const fn optional_port() -> Accepts<Option<u16>> {
    text("-1, or a whole number from 0 to 65535", |text| match text {
        "-1" => Some(None),
        port => port.parse().ok().map(Some),
    })
}

/// An optional directory.
pub(super) const fn optional_directory() -> Accepts<Option<PathBuf>> {
    text("a directory", |text| Some((!text.is_empty()).then(|| PathBuf::from(text))))
}

/// The location of tables.
pub(super) const fn table_storage() -> Accepts<Option<StoreLocation>> {
    let words = "a URL like `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`, of lower-case bucket and plain names";
    text(words, |text| match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    })
}

/// The database of the catalog.
pub(super) const fn catalog_url() -> Accepts<Option<PostgresUrl>> {
    let words = "a URL like `postgres://user@host:5432/database`, without a password (that is catalog_password), with \
        `?sslmode=verify-full` or `disable` and `sslrootcert=FILE` if need be";
    Accepts {
        rule: Rule::Url(words),
        read: |text| match text {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        },
    }
}

/// An optional address of a server.
pub(super) const fn optional_endpoint() -> Accepts<Option<Url>> {
    text("a URL like `https://store.example.com:9000`, without a path", |text| {
        if text.is_empty() {
            return Some(None);
        }
        let url = Url::parse(text).ok()?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        is_plain.then_some(Some(url))
    })
}

/// An optional name of a region.
pub(super) const fn optional_region() -> Accepts<Option<String>> {
    text("a region like `eu-central-1`", |text| {
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_name.then(|| (!text.is_empty()).then(|| text.to_owned()))
    })
}

/// A key or a token; may be empty.
/// An optional address of an HTTP server, which may have a path.
pub(super) const fn optional_address() -> Accepts<Option<Url>> {
    text("a URL like `http://collector.example.com:4318`", |text| {
        if text.is_empty() {
            return Some(None);
        }
        let url = Url::parse(text).ok()?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        is_plain.then_some(Some(url))
    })
}

pub(super) const fn secret() -> Accepts<Secret> {
    Accepts { rule: Rule::Secret("a text, which is not shown"), read: |text| Some(Secret::new(text)) }
}

/// An optional file.
pub(super) const fn optional_file() -> Accepts<Option<PathBuf>> {
    text("a file", |text| Some((!text.is_empty()).then(|| PathBuf::from(text))))
}

pub(super) const fn tls_version() -> Accepts<MinimumVersion> {
    text("1.2 or 1.3", MinimumVersion::named)
}

pub(super) const fn auth_plugin() -> Accepts<AuthPlugin> {
    text("mysql_native_password or caching_sha2_password", AuthPlugin::named)
}

/// `5.7.99`, or `8.0.36-log`: a version of MySQL from 5.5 on.
pub(super) const fn server_version() -> Accepts<String> {
    text("a version of MySQL from 5.5.0 to 9.99.99, such as 8.0.36", |text| {
        let (numbers, _suffix) = text.split_once('-').unwrap_or((text, ""));
        let parts = numbers.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>()?;
        let is_known = matches!(parts.as_slice(), [5, 5..=99, 0..=99] | [6..=9, 0..=99, 0..=99]);
        let is_plain = text.len() <= 60 && text.bytes().all(|byte| byte.is_ascii_graphic());
        (is_known && is_plain).then(|| text.to_owned())
    })
}

pub(super) const fn mysql_ddl() -> Accepts<String> {
    text("doris or compat", |text| matches!(text, "doris" | "compat").then(|| text.to_owned()))
}

pub(super) const fn stored_verifiers() -> Accepts<StoredVerifiers> {
    text("native, sha2 or both", StoredVerifiers::named)
}

/// Directories separated by `;`; may be empty.
pub(super) const fn directories() -> Accepts<Vec<PathBuf>> {
    text("directories separated by `;`", |text| {
        let names = text.split(';').map(str::trim).filter(|name| !name.is_empty());
        Some(names.map(PathBuf::from).collect())
    })
}

pub(super) const fn host_names() -> Accepts<Vec<String>> {
    text("host names separated by `;`", |text| {
        let names = text.split(';').map(str::trim).filter(|name| !name.is_empty());
        let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let names: Vec<&str> = names.collect();
        names.iter().all(is_name).then(|| names.into_iter().map(str::to_owned).collect())
    })
}

/// An optional name or address of a host.
pub(super) const fn optional_host() -> Accepts<Option<String>> {
    text("a host name or an IP address", |text| {
        let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let is_host = is_name || text.parse::<IpAddr>().is_ok();
        is_host.then(|| (!text.is_empty()).then(|| text.to_owned()))
    })
}

/// Bits that files and directories do not get. The owner's stay.
pub(super) const fn umask() -> Accepts<u32> {
    text("an octal number of the rights that group and others do not get, like `077` or `027`", |text| {
        let is_octal =
            (1..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let bits = u32::from_str_radix(text, 8).ok().filter(|_| is_octal)?;
        (bits & !0o077 == 0).then_some(bits)
    })
}

pub(super) const fn address() -> Accepts<IpAddr> {
    text("an IP address like `127.0.0.1`", |text| text.parse().ok())
}

/// Networks separated by `;`.
pub(super) const fn egress() -> Accepts<Egress> {
    text("networks like `127.0.0.0/8` separated by `;`, with `!` before forbidden ones", Egress::parse)
}

pub(super) const fn portion() -> Accepts<Portion> {
    text("a percentage like `10%` (1 to 100) or a number of bytes", Portion::parse)
}

pub(super) const fn optional_portion() -> Accepts<Option<Portion>> {
    text("a percentage like `10%` (1 to 100), a number of bytes, or `0` for none", |text| match text.trim() {
        "0" => Some(None),
        text => Portion::parse(text).map(Some),
    })
}

pub(super) const fn log_filter() -> Accepts<String> {
    text("a tracing filter like `info` or `tributary_ingest=debug,info`", |text| {
        EnvFilter::try_new(text).ok().map(|_| text.to_owned())
    })
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

pub(super) const fn log_format() -> Accepts<LogFormat> {
    text("one of text, json", |text| match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    })
}

pub(super) const fn when_full() -> Accepts<WhenFull> {
    text("one of drop, refuse", |text| match text {
        "drop" => Some(WhenFull::Drop),
        "refuse" => Some(WhenFull::Refuse),
        _ => None,
    })
}

pub(super) const fn port() -> Accepts<u16> {
    whole(0, u16::MAX as u64, "", |text| text.parse().ok())
}

/// A count.
pub(super) const fn count(min: u64, max: u64) -> Accepts<u64> {
    whole(min, max, "", |text| text.parse().ok())
}

pub(super) const fn bytes(min: u64, max: u64) -> Accepts<u64> {
    whole(min, max, "bytes", |text| text.parse().ok())
}

pub(super) const fn megabytes(min: u64, max: u64) -> Accepts<u64> {
    whole(min, max, "MB", |text| text.parse().ok())
}

pub(super) const fn milliseconds(min: u64, max: u64) -> Accepts<u64> {
    whole(min, max, "ms", |text| text.parse().ok())
}

pub(super) const fn seconds(min: u64, max: u64) -> Accepts<Duration> {
    whole(min, max, "s", |text| text.parse().ok().map(Duration::from_secs))
}

pub(super) const fn hours(min: u64, max: u64) -> Accepts<Duration> {
    whole(min, max, "h", |text| text.parse::<u64>().ok().map(|hours| Duration::from_secs(3600 * hours)))
}
