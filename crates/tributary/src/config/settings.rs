//! The settings: each is declared once, and its field, its default, its legal values, its errors and its row of the reference are
//! derived from that declaration.
//!
//! Settings that Doris has are named as in Doris. Not its business: the origin of values.

use super::kind::*;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tributary_catalog::{PostgresOptions, PostgresUrl};
use tributary_engine::{RemoteOptions, StoreLocation, WhenFull};
use tributary_tls::MinimumVersion;
use tributary_types::{AuthPlugin, Egress, Live, Portion, Secret, StoredVerifiers};
use url::Url;

/// A setting, without its value.
pub(super) struct Declared {
    pub(super) name: &'static str,
    pub(super) default: &'static str,
    pub(super) rule: Rule,
    /// One sentence, with a leading space.
    meaning: &'static str,
    pub(super) is_legal: fn(&str) -> bool,
    /// Gives a setting that may change while the server runs the value of a legal text. `None`: it needs a restart.
    pub(super) change: Option<fn(&Settings, &str)>,
}

impl Declared {
    pub(super) fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }
}

/// The type of a setting's field.
macro_rules! field {
    ($type:ty) => { $type };
    ($type:ty, live) => { Live<$type> };
}

/// The value of a setting's field.
macro_rules! held {
    ($value:expr) => {
        $value
    };
    ($value:expr, live) => {
        Live::new($value)
    };
}

/// The way to change a setting while the server runs.
macro_rules! change {
    ($name:ident, $type:ty, $accepts:expr) => {
        None
    };
    ($name:ident, $type:ty, $accepts:expr, live) => {
        Some(|settings: &Settings, text: &str| {
            const ACCEPTS: Accepts<$type> = $accepts;
            settings.$name.set(ACCEPTS.value(text).expect("a text is checked when it is set"));
        })
    };
}

/// Declares settings: `/// Meaning.`, then `name: type = "default", legal values;`. With `, live` before the end, it may change while
/// the server runs, and the parts that obey it read it each time.
macro_rules! settings {
    ($(
        $(#[doc = $meaning:literal])+ $(#[$attribute:meta])*
        $name:ident: $type:ty = $default:literal, $accepts:expr $(, $live:ident)?;
    )+) => {
        /// The value of each setting.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $meaning])+ $(#[$attribute])* pub $name: field!($type $(, $live)?),)+
        }

        pub(super) const DECLARED: &[Declared] = &[$({
            const ACCEPTS: Accepts<$type> = $accepts;
            Declared {
                name: stringify!($name),
                default: $default,
                rule: ACCEPTS.rule,
                meaning: concat!($($meaning),+),
                is_legal: |text| ACCEPTS.value(text).is_some(),
                change: change!($name, $type, $accepts $(, $live)?),
            }
        }),+];

        impl Settings {
            /// Reads the values from these texts, each of which is legal.
            pub(super) fn read<'a>(text_of: impl Fn(&'static str) -> &'a str) -> Self {
                Self {
                    $($name: {
                        const ACCEPTS: Accepts<$type> = $accepts;
                        let value = ACCEPTS.value(text_of(stringify!($name)));
                        held!(value.expect("a text is checked when it is set") $(, $live)?)
                    },)+
                }
            }
        }
    };
}

const DAY_MS: u64 = 86_400_000;
const COUNT_MAX: u64 = u32::MAX as u64;

settings! {
    /// Directory of all data: the write-ahead log and, without `catalog_url`, the catalog and, without `table_storage`, the Delta tables.
    storage_root_path: PathBuf = "./tributary-data", directory();

    /// Database of the catalog in PostgreSQL 13 or newer; one server owns it. None: the file `catalog.db` in `storage_root_path`. `tributary catalog move` moves a catalog.
    catalog_url: Option<PostgresUrl> = "", catalog_url();

    /// Password of the user of `catalog_url`, if PostgreSQL asks for one.
    catalog_password: Secret = "", secret();

    /// Bucket and prefix of the Delta tables in S3 (`s3://`), Azure's blob storage (`az://`), Google's cloud storage (`gs://`) or a store that speaks one of their protocols, with conditional puts. None: `tables` in `storage_root_path`. A server's tables stay where they were made.
    table_storage: Option<StoreLocation> = "", table_storage();

    /// Address of the store of `table_storage`. None: that of the cloud, or `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ENDPOINT` or `GOOGLE_BASE_URL` of the environment.
    table_storage_endpoint: Option<Url> = "", optional_endpoint();

    /// Region of the store. None: `us-east-1`, or `AWS_REGION` of the environment if the keys are from there, too.
    table_storage_region: Option<String> = "", optional_region();

    /// Access key of the store; of Azure the name of the account; of Google none. None: the credentials of the environment (`AWS_…`, `AZURE_…`, `GOOGLE_…`), of the container or of the machine.
    table_storage_access_key: Secret = "", secret();

    /// Secret key of the store; of Azure the key of the account; of Google the JSON of a service account's key.
    table_storage_secret_key: Secret = "", secret();

    /// Session token of the store, for keys that need one.
    table_storage_session_token: Secret = "", secret();

    /// Whether requests to `table_storage_endpoint` have the bucket in their path (`false`: in the host).
    table_storage_path_style: bool = "true", flag();

    /// Whether an endpoint without TLS may be on another machine.
    table_storage_allow_http: bool = "false", flag();

    /// Disk in `storage_root_path` that the cache of data files of `table_storage` may take: a percentage of what is free for it at the start, or bytes. 0: no cache.
    table_cache_limit: Option<Portion> = "10%", optional_portion();

    /// Whether this node only reads the tables of another server: those of `table_storage`, with the names and users in `catalog_url`. `tributary serve --read-only` sets it.
    read_only: bool = "false", flag();

    /// With `read_only`: age of rows above which queries are refused, with an error that clients retry. Rows reach this node when the server that writes has moved them to files, after `flush_age_ms` at the latest. 0: any age.
    max_staleness_second: Duration = "300", seconds(0, COUNT_MAX), live;

    /// Rights that created files and directories do not give to group and others, as in a shell. `027` lets a group read the Delta tables; the logs, the catalog, keys and error logs stay private.
    umask: u32 = "077", umask();

    /// Address that the ports listen on. Anything but loopback requires that every user has a password.
    bind: IpAddr = "127.0.0.1", address();

    /// Host that `ErrorURL`, `/api/backends` and SHOW BACKENDS name. None: the address of `bind`; if that is all addresses, over HTTP the host by which the client has reached the server, and in SQL the address of the default route.
    advertised_host: Option<String> = "", optional_host();

    /// Port of the MySQL protocol; 0 picks a free one.
    query_port: u16 = "9030", port();

    /// Port of HTTP loads and APIs (Doris's FE port); 0 picks a free one.
    http_port: u16 = "8030", port();

    /// Second port of the same HTTP service (Doris's BE port); 0 picks a free one.
    webserver_port: u16 = "8040", port();

    /// Port of Arrow Flight SQL; 0 picks a free one. -1: it is off.
    arrow_flight_sql_port: Option<u16> = "-1", optional_port();

    /// Limit on simultaneous sessions of Arrow Flight SQL, and on the connections on which one was used.
    arrow_flight_max_connections: u64 = "4096", count(1, COUNT_MAX);

    /// Whether loads that arrive at `http_port` are redirected (307) to `webserver_port`, as by Doris's FE.
    redirect_loads: bool = "false", flag();

    /// Directories of the write-ahead logs. None: `wal` in `storage_root_path`.
    group_commit_wal_path: Vec<PathBuf> = "", directories();

    /// Space that the write-ahead log may take in each directory: a percentage of the disk's available bytes, or bytes.
    group_commit_wal_max_disk_limit: Portion = "10%", portion(), live;

    /// `group_commit_interval_ms` of tables created without it. 0: a group closes as soon as the log is free.
    group_commit_interval_ms_default_value: u64 = "10000", milliseconds(0, 1000 * DAY_MS), live;

    /// `group_commit_data_bytes` of tables created without it.
    group_commit_data_bytes_default_value: u64 = "67108864", bytes(1, u64::MAX), live;

    /// Accepted for compatibility; `max_filter_ratio` always applies to all rows of a load.
    #[expect(dead_code, reason = "accepted for compatibility")]
    group_commit_memory_rows_for_max_filter_ratio: u64 = "10000", count(1, COUNT_MAX);

    /// Memory of rows in groups and memtables above which loads wait for a flush.
    group_commit_queue_mem_limit: u64 = "201326592", bytes(1, u64::MAX), live;

    /// Decoded size above which a load is written to data files while it arrives, instead of being held in memory.
    large_load_bytes: u64 = "67108864", bytes(1, u64::MAX), live;

    /// Size of a segment file of the write-ahead log.
    wal_segment_bytes: u64 = "67108864", bytes(1 << 20, 1 << 32);

    /// Size at which a table's memtable is flushed to data files.
    flush_bytes: u64 = "67108864", bytes(1, u64::MAX), live;

    /// Age of the oldest rows at which a table's memtable is flushed to data files.
    flush_age_ms: u64 = "60000", milliseconds(0, 1000 * DAY_MS), live;

    /// Target size of data files, for flushes and compactions.
    target_file_bytes: u64 = "134217728", bytes(1, u64::MAX), live;

    /// How long replaced data files are retained, for running queries and readers of older Delta versions.
    deleted_file_retention_second: Duration = "86400", seconds(60, COUNT_MAX), live;

    /// How long entries of tables' Delta logs are retained that a checkpoint contains, for readers that follow the log.
    delta_log_retention_second: Duration = "604800", seconds(60, COUNT_MAX), live;

    /// How long one call to the store of the data files may take: a request, a part of an upload, a piece of a body.
    store_timeout_ms: u64 = "120000", milliseconds(1000, DAY_MS);

    /// Number of Delta entries of a table between two checkpoints. After a checkpoint with more actions than a hundred times this number, a hundredth of them, at most 100: retained files that were replaced are among them.
    checkpoint_every: u64 = "10", count(1, COUNT_MAX), live;

    /// How long the label of a finished load stays in use, for at most 100,000 labels of a database, and how long an idempotency key is remembered.
    label_keep_max_second: Duration = "259200", seconds(1, COUNT_MAX), live;

    /// Number of idempotency keys at which loads with new ones are refused. A key takes 85 bytes on the disk and 2 bytes of memory.
    load_keys_max: u64 = "100000000", count(1, COUNT_MAX), live;

    /// How long rejected rows of stored loads are found in `information_schema.rejected_rows`.
    rejected_rows_keep_seconds: Duration = "604800", seconds(1, COUNT_MAX), live;

    /// Bytes of the files of rejected rows; when they take more, the oldest are deleted before their time.
    rejected_rows_max_bytes: u64 = "67108864", bytes(1048576, u64::MAX), live;

    /// Number of loads at a time, of all users and by whatever way, at which further ones are refused; jobs wait.
    max_concurrent_loads: u64 = "4096", count(1, COUNT_MAX), live;

    /// Timeout of a Stream Load without the header.
    stream_load_default_timeout_second: Duration = "600", seconds(1, 259_200), live;

    /// Age at which a pre-committed load is aborted.
    stream_load_default_precommit_timeout_second: Duration = "3600", seconds(1, COUNT_MAX), live;

    /// Largest body of a load.
    streaming_load_max_mb: u64 = "10240", megabytes(1, COUNT_MAX), live;

    /// Limit on simultaneous HTTP connections. When all are in use, one without a request is closed for another; further requests wait up to 30 s for a place, except `/api/health`, `/api/ready` and `/metrics`.
    http_max_connections: u64 = "4096", count(1, COUNT_MAX), live;

    /// Limit on simultaneous HTTP connections of one address, or of one IPv6 network (/64).
    http_max_connections_per_address: u64 = "3072", count(1, COUNT_MAX), live;

    /// How long an HTTP client may take to send the head of a request.
    http_head_timeout_second: Duration = "10", seconds(1, 3600), live;

    /// Disk that Parquet and ORC bodies may take together while they wait to be read; queries may spill as much again. 0: a tenth of what is free at the start.
    spool_limit_bytes: u64 = "0", bytes(0, u64::MAX);

    /// Names, besides `localhost`, by which HTTP clients may address a server that listens on loopback: a page that a browser shows could otherwise reach it by a name of its own.
    http_host_names: Vec<String> = "", host_names();

    /// Directory of local files that LOAD DATA without LOCAL, `LOCAL()`, INTO OUTFILE and EXPORT may access. It has none of the server's own files. None: they may not access any.
    mysql_load_server_secure_path: Option<PathBuf> = "", optional_directory();

    /// Directory of backups, which BACKUP SERVER makes if need be. It should be on another disk than the server's own files. None: BACKUP SERVER names a store.
    backup_path: Option<PathBuf> = "", optional_directory();

    /// Bytes per second that a backup writes. 0: no limit.
    backup_max_bytes_per_second: u64 = "0", bytes(0, u64::MAX), live;

    /// PEM file of the server's certificate, followed by those between it and an authority that clients know. None: no TLS.
    tls_certificate: Option<PathBuf> = "", optional_file();

    /// PEM file of the private key of `tls_certificate`.
    tls_private_key: Option<PathBuf> = "", optional_file();

    /// PEM file of the authorities whose clients' certificates are accepted, for users that `REQUIRE X509`. None: clients are not asked for one.
    tls_client_ca: Option<PathBuf> = "", optional_file();

    /// Oldest version of TLS that is spoken.
    tls_minimum_version: MinimumVersion = "1.2", tls_version();

    /// Whether clients without TLS are refused, except for what needs no login.
    require_secure_transport: bool = "false", flag();

    /// Plugin that the greeting of the MySQL protocol names; clients with the other one are asked again. With `caching_sha2_password`, some clients of Doris need a setting of their own.
    default_authentication_plugin: AuthPlugin = "mysql_native_password", auth_plugin();

    /// Version that the server reports to clients of the MySQL protocol. Drivers choose their statements by it; some, such as Django 5, need `8.0.36`.
    server_version: String = "5.7.99", server_version();

    /// `compat`: the global variable `mysql_ddl`, unless it was set: CREATE TABLE and ALTER TABLE map what only MySQL has.
    mysql_ddl: String = "doris", mysql_ddl();

    /// Whether the global variable `like_ignores_case` is on, unless it was set: `LIKE` and `REGEXP` match in any case, as in MySQL's default collation.
    like_ignores_case: bool = "false", flag();

    /// Whether the global variable `refuse_existing_keys` is on, unless it was set: an INSERT of a key that exists fails with MySQL's error 1062 instead of replacing its row.
    refuse_existing_keys: bool = "false", flag();

    /// Stored forms of new passwords: `native` for `mysql_native_password`, `sha2` for `caching_sha2_password`, from which a stolen catalog gives no passwords away quickly, or `both`.
    password_verifiers: StoredVerifiers = "both", stored_verifiers();

    /// Networks that `HTTP()`, `S3()`, EXPORT, INTO OUTFILE and Kafka may reach although they are loopback, link-local or a cloud's metadata service. `!` before a network forbids it; the first one that contains an address decides.
    egress: Egress = "", egress();

    /// How often dynamic partitions are created and dropped.
    dynamic_partition_check_interval_seconds: Duration = "600", seconds(1, COUNT_MAX), live;

    /// How often the server compares what its logs have with what queries see and with the Delta tables, like VERIFY. 0: only when asked.
    verify_interval_seconds: Duration = "86400", seconds(0, COUNT_MAX), live;

    /// How long a database, table or partition that was dropped without FORCE can be recovered. 0: not at all.
    catalog_trash_expire_second: Duration = "86400", seconds(0, COUNT_MAX), live;

    /// Whether `/api/_load_error_log`, which serves the reasons for rejected rows, requires a login. Without it, everybody who knows the address may read them, as in Doris.
    load_error_log_needs_login: bool = "false", flag(), live;

    /// How long the reasons for rejected rows are retained.
    load_error_log_reserve_hours: Duration = "48", hours(1, COUNT_MAX), live;

    /// Limit on simultaneous MySQL sessions; `root` or `admin` may open one more.
    qe_max_connection: u64 = "4096", count(1, COUNT_MAX), live;

    /// Memory of the prepared statements and user variables of all sessions. One session may have an eighth.
    session_mem_limit: u64 = "536870912", bytes(1 << 20, u64::MAX), live;

    /// Largest MySQL packet.
    max_allowed_packet: u64 = "67108864", bytes(1024, 1 << 30);

    /// Memory that the process may have, as a percentage of the machine's, or of its control group's if that is less. At the limit queries spill to disk or fail, and bodies of loads wait unread.
    mem_limit: Portion = "90%", portion(), live;

    /// Memory limit of all queries together.
    exec_mem_limit: u64 = "2147483648", bytes(1, u64::MAX);

    /// Memory of pages of data files that are kept decompressed because queries have read them twice: a percentage of `mem_limit` at the start, or bytes. It is given up when the process needs it. 0: none.
    storage_page_cache_limit: Option<Portion> = "20%", optional_portion();

    /// Threads that one query may use. 0: one per core.
    query_parallelism: u64 = "0", count(0, 1024);

    /// Bytes of data files from which on a query is divided among the nodes that share the catalog, whose ports of Arrow Flight SQL must be open; the node computes parts of the others' queries, too. 0: neither.
    distributed_query_bytes: u64 = "0", bytes(0, u64::MAX);

    /// Directory of the audit log's file: a line of JSON for each statement, load, job and login. None: no file.
    audit_log_dir: Option<PathBuf> = "", optional_directory();

    /// Size at which the audit log's file is renamed and another one begun.
    audit_log_roll_bytes: u64 = "67108864", bytes(1, u64::MAX);

    /// Number of the audit log's files, with the one that is written.
    audit_log_roll_num: u64 = "10", count(1, 1000);

    /// Whether the audit log is also written to the table `__internal_schema.audit_log`; the initial value of the global variable.
    enable_audit_plugin: bool = "false", flag();

    /// Days whose records `__internal_schema.audit_log` retains, besides the current one.
    audit_log_table_days: u64 = "30", count(1, 1000);

    /// Records that may wait to be written to the audit log.
    audit_queue_records: u64 = "16384", count(1, 1_000_000);

    /// Effect on a request whose record finds no place in the audit log's queue: `drop` runs it and counts the missing record, `refuse` does not run it.
    audit_when_full: WhenFull = "drop", when_full();

    /// Address of the OpenTelemetry collector that gets traces of requests by OTLP over HTTP. Without a path, `/v1/traces` of it. None: nothing is traced.
    otlp_endpoint: Option<Url> = "", optional_address();

    /// Headers of requests to `otlp_endpoint`, as `name=value,name=value`.
    otlp_headers: Secret = "", secret();

    /// One of this many requests is traced that bring no trace along. A request with `traceparent` is traced if its client records it.
    trace_one_in: u64 = "1", count(1, 1_000_000), live;

    /// Tracing filter of the log, like `info` or `tributary_ingest=debug,info`.
    log_level: String = "info,buoyant_kernel=warn,deltalake_core=warn", log_filter(), live;

    /// Format of the log.
    log_format: LogFormat = "text", log_format();

    /// Directory of the log's files `tributary.log`, `tributary.log.1` and so on. None: the log is written to standard error.
    log_dir: Option<PathBuf> = "", optional_directory();

    /// Size at which the log's file is renamed and another one begun.
    log_roll_bytes: u64 = "104857600", bytes(1, u64::MAX);

    /// Number of the log's files, with the one that is written.
    log_roll_num: u64 = "10", count(1, 1000);
}

impl Settings {
    /// The store of the tables, if they are in one.
    #[must_use]
    pub fn remote(&self) -> Option<RemoteOptions> {
        Some(RemoteOptions {
            location: self.table_storage.clone()?,
            endpoint: self.table_storage_endpoint.clone(),
            region: self.table_storage_region.clone(),
            access_key: self.table_storage_access_key.clone(),
            secret_key: self.table_storage_secret_key.clone(),
            session_token: self.table_storage_session_token.clone(),
            path_style: self.table_storage_path_style,
            allow_http: self.table_storage_allow_http,
        })
    }

    /// The database of the catalog, if it is not a file.
    #[must_use]
    pub fn catalog_database(&self) -> Option<PostgresOptions> {
        Some(PostgresOptions { url: self.catalog_url.clone()?, password: self.catalog_password.clone() })
    }

    /// The directories of the write-ahead logs.
    #[must_use]
    pub fn wal_dirs(&self) -> Vec<PathBuf> {
        match &self.group_commit_wal_path[..] {
            [] => vec![self.storage_root_path.join("wal")],
            dirs => dirs.to_vec(),
        }
    }
}
