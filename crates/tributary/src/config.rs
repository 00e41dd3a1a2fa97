//! Configuration: defaults, one TOML file, `TRIBUTARY_*` variables, command line; the later wins.
//!
//! Every setting is one row of [`SETTINGS`]: its name (Doris's where Doris has one), its default,
//! what it accepts and what it means. An unknown name or a bad value is an error that names it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// A whole number within the bounds.
    Number {
        min: u64,
        max: u64,
    },
    OneOf(&'static [&'static str]),
    WalLimit,
}

/// One setting.
struct Setting {
    name: &'static str,
    default: &'static str,
    kind: Kind,
    meaning: &'static str,
}

const PORT: Kind = Kind::Number { min: 0, max: 65_535 };
const BYTES: Kind = Kind::Number { min: 1, max: u64::MAX };
const COUNT: Kind = Kind::Number { min: 1, max: u32::MAX as u64 };
const MILLISECONDS: Kind = Kind::Number { min: 0, max: 86_400_000_000 };

const fn setting(name: &'static str, default: &'static str, kind: Kind, meaning: &'static str) -> Setting {
    Setting { name, default, kind, meaning }
}

const SETTINGS: &[Setting] = &[
    setting(
        "storage_root_path",
        "./tributary-data",
        Kind::Text,
        "directory of all data: catalog, write-ahead log, Delta tables",
    ),
    setting(
        "bind",
        "127.0.0.1",
        Kind::Text,
        "address that the ports listen on; anything but loopback needs a password for root",
    ),
    setting("query_port", "9030", PORT, "MySQL protocol; 0 picks a free port"),
    setting("http_port", "8030", PORT, "HTTP loads and APIs (Doris's FE port); 0 picks a free port"),
    setting("webserver_port", "8040", PORT, "the same HTTP service on Doris's BE port; 0 picks a free port"),
    setting(
        "group_commit_wal_path",
        "",
        Kind::Text,
        "directories of the write-ahead logs, separated by `;`; empty: <storage_root_path>/wal",
    ),
    setting(
        "group_commit_wal_max_disk_limit",
        "10%",
        Kind::WalLimit,
        "what the write-ahead log may take in each directory: a percentage of the disk's available bytes, or bytes",
    ),
    setting(
        "group_commit_interval_ms_default_value",
        "10000",
        MILLISECONDS,
        "group_commit_interval_ms of tables created without it, in ms; 0: a group closes as soon as the log is free",
    ),
    setting(
        "group_commit_data_bytes_default_value",
        "67108864",
        BYTES,
        "group_commit_data_bytes of tables created without it, in bytes",
    ),
    setting(
        "group_commit_memory_rows_for_max_filter_ratio",
        "10000",
        COUNT,
        "accepted for compatibility: max_filter_ratio is checked over all rows of a load, whatever their number",
    ),
    setting(
        "group_commit_queue_mem_limit",
        "201326592",
        BYTES,
        "bytes of rows in groups and memtables at which loads wait for a flush",
    ),
    setting(
        "large_load_bytes",
        "67108864",
        BYTES,
        "a load with more decoded bytes is written to data files while it arrives and never held in memory",
    ),
    setting(
        "wal_segment_bytes",
        "67108864",
        Kind::Number { min: 1 << 20, max: 1 << 32 },
        "size of a segment file of the write-ahead log, in bytes",
    ),
    setting(
        "flush_bytes",
        "67108864",
        BYTES,
        "a table's memtable is written to data files at this size, in bytes",
    ),
    setting(
        "flush_age_ms",
        "60000",
        MILLISECONDS,
        "a table's memtable is written to data files when its oldest rows are this old, in ms",
    ),
    setting(
        "target_file_bytes",
        "134217728",
        BYTES,
        "size of data files that flush and compaction aim at, in bytes",
    ),
    setting(
        "checkpoint_every",
        "10",
        COUNT,
        "a Delta checkpoint is written after so many commits of a table",
    ),
    setting(
        "label_keep_max_second",
        "259200",
        COUNT,
        "a finished load's label stays used for so many seconds",
    ),
    setting(
        "stream_load_default_timeout_second",
        "600",
        Kind::Number { min: 1, max: 259_200 },
        "timeout of a Stream Load without the header, in seconds",
    ),
    setting(
        "stream_load_default_precommit_timeout_second",
        "3600",
        COUNT,
        "a pre-committed load that nobody finishes is aborted after so many seconds",
    ),
    setting("streaming_load_max_mb", "10240", COUNT, "largest body of a load, in MB"),
    setting("load_error_log_reserve_hours", "48", COUNT, "rejected rows' reasons are kept for so many hours"),
    setting("qe_max_connection", "4096", COUNT, "MySQL connections served at once"),
    setting(
        "max_allowed_packet",
        "67108864",
        Kind::Number { min: 1024, max: 1 << 30 },
        "largest MySQL packet, in bytes",
    ),
    setting("exec_mem_limit", "2147483648", BYTES, "memory of all queries together, in bytes"),
    setting(
        "query_parallelism",
        "0",
        Kind::Number { min: 0, max: 1024 },
        "threads that one query may use; 0: as many as the machine has cores",
    ),
    setting(
        "log_level",
        "info,buoyant_kernel=warn,deltalake_core=warn",
        Kind::Text,
        "tracing filter, like `info` or `tributary_ingest=debug,info`",
    ),
    setting("log_format", "text", Kind::OneOf(&["text", "json"]), "form of the log on standard error"),
];

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// A configuration that can't be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    #[error("configuration file {path}: {reason}")]
    File { path: String, reason: String },
    #[error("unknown setting `{name}` ({origin}){hint}; `tributary config` lists all settings")]
    Unknown { name: String, origin: String, hint: String },
    #[error("setting `{name}` ({origin}): `{value}` is not {expected}")]
    Bad { name: String, origin: String, value: String, expected: String },
}

/// All settings with their values and origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    values: BTreeMap<&'static str, (String, Origin)>,
}

impl Config {
    /// Reads all sources. `environment` and `command_line` are pairs of name and value; the
    /// environment's names have the prefix `TRIBUTARY_`.
    ///
    /// # Errors
    /// The first unknown name or bad value, with its origin and what would be right.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        command_line: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self {
            values: SETTINGS
                .iter()
                .map(|setting| (setting.name, (setting.default.to_owned(), Origin::Default)))
                .collect(),
        };
        if let Some(path) = file {
            config.read_file(path)?;
        }
        for (name, value) in environment {
            if let Some(key) = name.strip_prefix("TRIBUTARY_") {
                config.set(&key.to_ascii_lowercase(), value, Origin::Environment(name.clone()))?;
            }
        }
        for (name, value) in command_line {
            config.set(name, value, Origin::CommandLine)?;
        }
        Ok(config)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let failed = |reason: String| ConfigError::File { path: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| failed(error.to_string()))?;
        for (name, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                other => {
                    return Err(failed(format!(
                        "`{name}` is a {}; settings are strings, whole numbers or booleans",
                        other.type_str()
                    )));
                }
            };
            self.set(&name, text, Origin::File(path.to_owned()))?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: String, origin: Origin) -> Result<(), ConfigError> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            return Err(ConfigError::Unknown {
                name: name.to_owned(),
                origin: origin.to_string(),
                hint: nearest(name).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default(),
            });
        };
        check(setting.kind, &value).map_err(|expected| ConfigError::Bad {
            name: name.to_owned(),
            origin: origin.to_string(),
            value: value.clone(),
            expected,
        })?;
        self.values.insert(setting.name, (value, origin));
        Ok(())
    }

    /// A setting's text.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        &self.values.get(name).expect("callers name settings of SETTINGS").0
    }

    /// A setting that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().expect("numbers were checked when they were set")
    }

    /// The storage root.
    #[must_use]
    pub fn storage_root(&self) -> PathBuf {
        PathBuf::from(self.text("storage_root_path"))
    }

    /// The directories of the write-ahead logs.
    #[must_use]
    pub fn wal_dirs(&self) -> Vec<PathBuf> {
        let dirs: Vec<PathBuf> = self
            .text("group_commit_wal_path")
            .split(';')
            .map(str::trim)
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from)
            .collect();
        if dirs.is_empty() { vec![self.storage_root().join("wal")] } else { dirs }
    }

    /// Every setting with its value, origin and meaning, as `tributary config` prints it: a TOML
    /// file that sets the same values.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for setting in SETTINGS {
            let (value, origin) = &self.values[setting.name];
            let shown = match setting.kind {
                Kind::Number { .. } => value.clone(),
                _ => toml::Value::String(value.clone()).to_string(),
            };
            out.push_str(&format!("# {} [{origin}]\n{} = {shown}\n\n", setting.meaning, setting.name));
        }
        out
    }
}

fn check(kind: Kind, value: &str) -> Result<(), String> {
    match kind {
        Kind::Text => Ok(()),
        Kind::Number { min, max } => match value.parse::<u64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(()),
            _ => Err(format!("a whole number from {min} to {max}")),
        },
        Kind::OneOf(words) if words.contains(&value) => Ok(()),
        Kind::OneOf(words) => Err(format!("one of {}", words.join(", "))),
        Kind::WalLimit => tributary_ingest::wal_space::WalLimit::parse(value)
            .map(|_| ())
            .map_err(|_| "a percentage like `10%` (1 to 100) or a number of bytes".to_owned()),
    }
}

/// The setting whose name shares the most three-letter pieces with `name`, if it shares many.
fn nearest(name: &str) -> Option<&'static str> {
    let pieces = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.windows(3).map(|window| window.iter().collect()).collect()
    };
    let of_name = pieces(name);
    let score = |setting: &Setting| {
        let of_setting = pieces(setting.name);
        let shared = of_setting.iter().filter(|piece| of_name.contains(piece)).count();
        shared * 100 / of_setting.len().max(of_name.len()).max(1)
    };
    SETTINGS
        .iter()
        .max_by_key(|setting| score(setting))
        .filter(|setting| score(setting) >= 40)
        .map(|setting| setting.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_default_is_a_legal_value() {
        for setting in SETTINGS {
            assert_eq!(check(setting.kind, setting.default), Ok(()), "{}", setting.name);
        }
    }

    #[test]
    fn the_command_line_beats_the_environment_which_beats_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("tributary.toml");
        std::fs::write(&path, "query_port = 1\nhttp_port = 2\nwebserver_port = 3\n").expect("written");
        let environment =
            [pair("TRIBUTARY_HTTP_PORT", "20"), pair("TRIBUTARY_WEBSERVER_PORT", "30"), pair("HOME", "/")];
        let config =
            Config::load(Some(&path), environment, [("webserver_port", "300".to_owned())]).expect("legal");
        assert_eq!(config.number("query_port"), 1);
        assert_eq!(config.number("http_port"), 20);
        assert_eq!(config.number("webserver_port"), 300);
        let described = config.describe();
        assert!(described.contains("[environment TRIBUTARY_HTTP_PORT]\nhttp_port = 20\n"), "{described}");
        assert!(described.contains("[command line]\nwebserver_port = 300\n"), "{described}");
        std::fs::write(&path, &described).expect("written");
        Config::load(Some(&path), [], []).expect("what `config` prints is a configuration file");
    }

    #[test]
    fn an_unknown_setting_is_named_with_its_origin_and_a_near_name() {
        let error = Config::load(None, [pair("TRIBUTARY_STORAGE_ROOT", "x")], []).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("unknown setting `storage_root` (environment TRIBUTARY_STORAGE_ROOT)"),
            "{text}"
        );
        assert!(text.contains("did you mean `storage_root_path`?"), "{text}");
    }

    #[test]
    fn a_bad_value_is_named_with_what_would_be_right() {
        let error = Config::load(None, [], [("query_port", "high".to_owned())]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "setting `query_port` (command line): `high` is not a whole number from 0 to 65535"
        );
    }

    #[test]
    fn wal_directories_are_separated_by_semicolons() {
        let config =
            Config::load(None, [], [("group_commit_wal_path", "/a/wal; /b/wal;".to_owned())]).expect("legal");
        assert_eq!(config.wal_dirs(), [PathBuf::from("/a/wal"), PathBuf::from("/b/wal")]);
        let default = Config::load(None, [], [("storage_root_path", "/data".to_owned())]).expect("legal");
        assert_eq!(default.wal_dirs(), [PathBuf::from("/data/wal")]);
    }
}
