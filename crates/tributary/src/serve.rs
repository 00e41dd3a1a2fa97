//! One run of a server: open, listen, say so, serve until a signal, stop in order.

use crate::config::{Config, RunningConfig, Settings};
use crate::listen::{listen, own_address};
use crate::log::Filter;
use crate::{modes, notices};
use std::error::Error;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tributary_engine::{
    AuditOptions, Engine, EngineOptions, FlightHooks, FlightLoads, HttpLoads, MysqlHooks, Ports, StorageRoot,
    TraceOptions,
};
use tributary_flight::FlightOptions;
use tributary_ingest::IngestOptions;
use tributary_mysql::ServeOptions;
use tributary_tls::Tls;
use tributary_types::Portion;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs a server until SIGTERM or SIGINT.
///
/// # Errors
/// The reason why the server can't start, with the remedy.
pub fn run(config: &Config) -> Outcome<()> {
    let settings = &config.settings;
    modes::set_umask(settings.umask);
    let (_log, filter) = crate::log::start(settings)?;
    let wal_dirs = settings.wal_dirs();
    let directories = std::iter::once(&settings.storage_root_path).chain(&wal_dirs);
    let directories: Vec<&Path> = directories.map(PathBuf::as_path).collect();
    modes::Open::of(&directories, settings.umask).iter().for_each(modes::Open::warn);
    if !config.ignored.is_empty() {
        let names = config.ignored.join(", ");
        tracing::info!("environment variables that a container platform sets are no settings: {names}");
    }
    tributary_types::memory::set_limit(memory_limit(settings.mem_limit.get()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(tributary_engine::STACK_BYTES)
        .build()?;
    runtime.block_on(serve(config, filter))
}

async fn serve(config: &Config, filter: Filter) -> Outcome<()> {
    let settings = &config.settings;
    let bind = settings.bind;
    // The signals are taken before the ready line: who reads it may send one at once.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    refuse_own_files(settings)?;
    refuse_backups_within(settings)?;
    refuse_lonely_reader(settings)?;
    let tls = crate::certificate::open(settings)?;
    let (engine, report) = tributary_engine::open(engine_options(settings)?).await?;
    tracing::info!(?report, "recovered");
    refuse_open_door(&engine, bind).await?;
    if tls.is_none() && !bind.is_loopback() {
        tracing::warn!(
            "listening on {bind} without TLS: passwords and rows can be read on the way (tls_certificate)"
        );
    }
    let listeners = Listeners::bind(settings)?;
    let ports = listeners.ports()?;
    engine.set_ports(ports);
    engine.set_settings(Arc::new(running_config(config, &engine, filter)));
    engine.announce("max_allowed_packet", settings.max_allowed_packet);
    engine.announce("max_connections", settings.qe_max_connection.get());
    engine.announce("default_authentication_plugin", settings.default_authentication_plugin.name());
    engine.announce("version", &settings.server_version);
    engine.announce("datadir", std::path::absolute(&settings.storage_root_path)?.join("").display());
    if settings.mysql_ddl != "doris" {
        engine.announce("mysql_ddl", &settings.mysql_ddl);
    }
    if settings.like_ignores_case {
        engine.announce("like_ignores_case", "ON");
    }
    if settings.refuse_existing_keys {
        engine.announce("refuse_existing_keys", "ON");
    }
    engine.announce("require_secure_transport", if settings.require_secure_transport { "ON" } else { "OFF" });
    if let Some(tls) = &tls {
        engine.set_tls(Arc::clone(tls));
        engine.announce("have_ssl", "YES");
        engine.announce("have_openssl", "YES");
    }
    let shutdown = CancellationToken::new();
    let servers = listeners.serve(&engine, settings, tls.as_ref(), &shutdown);
    let flight = ports.flight.map(|port| format!(" flight={}", SocketAddr::new(bind, port)));
    let ready = format!(
        "tributary ready: mysql={} http={} webserver={}{} data={}\n",
        SocketAddr::new(bind, ports.mysql),
        SocketAddr::new(bind, ports.http),
        SocketAddr::new(bind, ports.webserver),
        flight.unwrap_or_default(),
        settings.storage_root_path.display()
    );
    // A server whose standard output is closed serves as well.
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(ready.as_bytes()).and_then(|()| stdout.flush());
    notices::ready();
    let mut servers = std::pin::pin!(servers);
    let watched = async {
        match &tls {
            Some(tls) => crate::certificate::watch(Arc::clone(tls)).await,
            None => std::future::pending().await,
        }
    };
    let served = tokio::select! {
        outcome = &mut servers => outcome,
        Err(error) = watched => Err(error.into()),
        _ = terminate.recv() => stop("SIGTERM", &shutdown, servers).await,
        _ = interrupt.recv() => stop("SIGINT", &shutdown, servers).await,
    };
    notices::stopping();
    engine.shutdown().await;
    tracing::info!("stopped");
    served
}

async fn stop(
    signal: &str,
    shutdown: &CancellationToken,
    servers: impl Future<Output = Outcome<()>>,
) -> Outcome<()> {
    tracing::info!(signal, "stopping: no new requests, open groups are committed and flushed");
    notices::stopping();
    shutdown.cancel();
    servers.await
}

/// The settings as statements show and change them.
fn running_config(config: &Config, engine: &Arc<Engine>, filter: Filter) -> RunningConfig {
    let engine = Arc::downgrade(engine);
    RunningConfig::new(config, move |settings| {
        tributary_types::memory::set_limit(memory_limit(settings.mem_limit.get()));
        filter.set(settings.log_level.get());
        if let Some(engine) = engine.upgrade() {
            engine.announce("max_connections", settings.qe_max_connection.get());
        }
    })
}

/// The most memory that the process may have, in bytes; no limit where the machine's memory is unknown.
fn memory_limit(setting: Portion) -> u64 {
    match (setting, crate::machine::memory_bytes()) {
        (setting, Some(all)) => setting.of(all),
        (Portion::Bytes(bytes), None) => bytes,
        (Portion::Percent(_), None) => u64::MAX,
    }
}

/// Memory of decompressed pages, in bytes. A percentage of memory that is unknown is none.
fn page_cache(settings: &Settings) -> u64 {
    let all = memory_limit(settings.mem_limit.get());
    match settings.storage_page_cache_limit {
        Some(Portion::Percent(_)) if all == u64::MAX => 0,
        Some(portion) => portion.of(all),
        None => 0,
    }
}

/// A server that others can reach must not have a user without a password.
async fn refuse_open_door(engine: &Arc<Engine>, bind: IpAddr) -> Outcome<()> {
    let open = engine.users_without_password();
    if bind.is_loopback() {
        return Ok(());
    }
    engine.require_passwords();
    if open.is_empty() {
        return Ok(());
    }
    engine.shutdown().await;
    let statements: Vec<String> =
        open.iter().map(|user| format!("SET PASSWORD FOR '{user}' = PASSWORD('…');")).collect();
    Err(format!(
        "refusing to listen on {bind}: {} without a password could be used by anyone who reaches it. \
         Start with --bind 127.0.0.1, run {} and start again",
        open.iter().map(|user| format!("user '{user}'")).collect::<Vec<_>>().join(" and "),
        statements.join(" ")
    )
    .into())
}

/// The directory whose files statements may read and write must have nothing of the server's own: rows of all tables, keys in the
/// catalog, and the log could be read and overwritten by every user.
fn refuse_own_files(settings: &Settings) -> Outcome<()> {
    let Some(open) = &settings.mysql_load_server_secure_path else { return Ok(()) };
    let real = real_path(open);
    let own = settings.wal_dirs().into_iter().map(|path| ("group_commit_wal_path", path));
    let own = own.chain(settings.audit_log_dir.iter().map(|path| ("audit_log_dir", path.clone())));
    let own = own.chain(settings.backup_path.iter().map(|path| ("backup_path", path.clone())));
    for (name, own) in std::iter::once(("storage_root_path", settings.storage_root_path.clone())).chain(own) {
        let real_own = real_path(&own);
        if real.starts_with(&real_own) || real_own.starts_with(&real) {
            return Err(format!(
                "mysql_load_server_secure_path is {}, and the server's own files are in {} ({name}): every user could read and \
                 overwrite them. Choose a directory that neither contains that one nor lies in it",
                open.display(),
                own.display()
            )
            .into());
        }
    }
    Ok(())
}

/// Backups are no part of what is backed up.
fn refuse_backups_within(settings: &Settings) -> Outcome<()> {
    let Some(backups) = &settings.backup_path else { return Ok(()) };
    let (real, root) = (real_path(backups), real_path(&settings.storage_root_path));
    if real.starts_with(&root) || root.starts_with(&real) {
        return Err(format!(
            "backup_path is {}, and the server's own files are in {}: choose a directory outside, on another disk if there is one",
            backups.display(),
            settings.storage_root_path.display()
        )
        .into());
    }
    Ok(())
}

/// A node that only reads has neither tables nor a catalog of its own, and writes to none.
fn refuse_lonely_reader(settings: &Settings) -> Outcome<()> {
    if !settings.read_only {
        return Ok(());
    }
    let missing = [
        ("table_storage", settings.table_storage.is_none()),
        ("catalog_url", settings.catalog_url.is_none()),
    ];
    if let Some((name, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
        return Err(format!(
            "read_only is true, and {name} is not set: a node that only reads needs the table_storage and the catalog_url of the server \
             whose tables it reads. Tables in a directory of that server can be read by that server only"
        )
        .into());
    }
    if settings.enable_audit_plugin {
        return Err(
            "read_only and enable_audit_plugin are both true: a node that only reads has no table to write its audit log to. Use \
             audit_log_dir for a file"
                .into(),
        );
    }
    Ok(())
}

/// A path without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = absolute.ancestors().find_map(|parent| Some((parent, parent.canonicalize().ok()?)));
    match known {
        Some((parent, real)) => real.join(absolute.strip_prefix(parent).unwrap_or(Path::new(""))),
        None => absolute,
    }
}

struct Listeners {
    mysql: TcpListener,
    http: TcpListener,
    webserver: TcpListener,
    /// `None`: Arrow Flight SQL is off.
    flight: Option<TcpListener>,
}

impl Listeners {
    fn bind(settings: &Settings) -> Outcome<Self> {
        let open = |name: &'static str, port: u16| {
            let address = SocketAddr::new(settings.bind, port);
            listen(address).map_err(|error| {
                format!("cannot listen on {address} (setting `{name}`): {error}; 0 picks a free port")
            })
        };
        Ok(Self {
            mysql: open("query_port", settings.query_port)?,
            http: open("http_port", settings.http_port)?,
            webserver: open("webserver_port", settings.webserver_port)?,
            flight: match settings.arrow_flight_sql_port {
                Some(port) => Some(open("arrow_flight_sql_port", port)?),
                None => None,
            },
        })
    }

    fn ports(&self) -> Outcome<Ports> {
        Ok(Ports {
            mysql: self.mysql.local_addr()?.port(),
            http: self.http.local_addr()?.port(),
            webserver: self.webserver.local_addr()?.port(),
            flight: match &self.flight {
                Some(listener) => Some(listener.local_addr()?.port()),
                None => None,
            },
        })
    }

    /// Serves all ports until `shutdown`.
    async fn serve(
        self,
        engine: &Arc<Engine>,
        settings: &Settings,
        tls: Option<&Arc<Tls>>,
        shutdown: &CancellationToken,
    ) -> Outcome<()> {
        let ports = self.ports()?;
        let flight = serve_flight(self.flight, engine, settings, tls, shutdown);
        let redirect = tributary_http::Redirect { from_port: ports.http, to_port: ports.webserver };
        let mysql = tributary_mysql::serve(
            self.mysql,
            Arc::new(MysqlHooks::new(Arc::clone(engine))),
            ServeOptions {
                tls: tls.cloned(),
                requires_tls: settings.require_secure_transport,
                auth_plugin: settings.default_authentication_plugin,
                max_connections: settings.qe_max_connection.clone(),
                max_allowed_packet: settings.max_allowed_packet as usize,
                // The variable `max_prepared_stmt_count` counts.
                max_prepared_statements: tributary_engine::MAX_PREPARED_STATEMENTS as usize,
                ..ServeOptions::default()
            },
            shutdown.clone(),
        );
        let http = tributary_http::serve(
            vec![self.http, self.webserver],
            tributary_http::Services::of(&Arc::new(HttpLoads(Arc::clone(engine)))),
            tributary_http::HttpOptions {
                tls: tls.cloned(),
                requires_tls: settings.require_secure_transport,
                streaming_load_max_mb: settings.streaming_load_max_mb.clone(),
                load_timeout: settings.stream_load_default_timeout_second.clone(),
                redirect: settings.redirect_loads.then_some(redirect),
                max_connections: settings.http_max_connections.clone(),
                max_connections_of_address: settings.http_max_connections_per_address.clone(),
                answers_as_reached: settings.bind.is_unspecified() && settings.advertised_host.is_none(),
                head_timeout: settings.http_head_timeout_second.clone(),
                host_names: settings.http_host_names.clone(),
                error_log_needs_login: settings.load_error_log_needs_login.clone(),
                ..tributary_http::HttpOptions::default()
            },
            shutdown.clone(),
        );
        let (mysql, http, flight) = tokio::join!(mysql, http, flight);
        mysql?;
        http?;
        flight?;
        Ok(())
    }
}

/// Serves Arrow Flight SQL until `shutdown`, if it is on.
async fn serve_flight(
    listener: Option<TcpListener>,
    engine: &Arc<Engine>,
    settings: &Settings,
    tls: Option<&Arc<Tls>>,
    shutdown: &CancellationToken,
) -> std::io::Result<()> {
    let Some(listener) = listener else { return Ok(()) };
    let loads = FlightLoads {
        max_mb: settings.streaming_load_max_mb.clone(),
        timeout: settings.stream_load_default_timeout_second.clone(),
    };
    let options = FlightOptions {
        tls: tls.cloned(),
        requires_tls: settings.require_secure_transport,
        max_connections: settings.arrow_flight_max_connections as usize,
        max_message_bytes: settings.max_allowed_packet as usize,
        ..FlightOptions::default()
    };
    let hooks = Arc::new(FlightHooks::new(Arc::clone(engine), loads));
    tributary_flight::serve(listener, hooks, options, shutdown.clone()).await
}

/// The root of this server's data, which is a directory of this machine.
fn storage_root(settings: &Settings) -> Outcome<StorageRoot> {
    let directory = &settings.storage_root_path;
    let Some(text) = directory.to_str() else { return Ok(StorageRoot::from(directory.clone())) };
    let root = StorageRoot::parse(text)?;
    if root.directory() != directory {
        let path = root.directory().display();
        return Err(format!("storage_root_path is '{text}': write the directory as a path, {path}").into());
    }
    Ok(root)
}

fn engine_options(settings: &Settings) -> Outcome<EngineOptions> {
    let defaults = tributary_engine::StoreOptions::default();
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    Ok(EngineOptions {
        state_dir: settings.storage_root_path.clone(),
        tables: storage_root(settings)?,
        table_storage: settings.remote(),
        table_cache: settings.table_cache_limit,
        catalog_database: settings.catalog_database(),
        host: match &settings.advertised_host {
            Some(host) => host.clone(),
            None => own_address(settings.bind).to_string(),
        },
        group_commit_interval_ms: settings.group_commit_interval_ms_default_value.clone(),
        group_commit_data_bytes: settings.group_commit_data_bytes_default_value.clone(),
        large_load_bytes: settings.large_load_bytes.clone(),
        secure_load_dir: settings.mysql_load_server_secure_path.clone(),
        backup_dir: settings.backup_path.clone(),
        backup_bytes_per_second: settings.backup_max_bytes_per_second.clone(),
        password_verifiers: settings.password_verifiers,
        server_version: settings.server_version.clone(),
        spool_limit_bytes: settings.spool_limit_bytes,
        session_memory_bytes: settings.session_mem_limit.clone(),
        max_concurrent_loads: settings.max_concurrent_loads.clone(),
        error_log_keep: settings.load_error_log_reserve_hours.clone(),
        dynamic_partition_interval: settings.dynamic_partition_check_interval_seconds.clone(),
        verify_interval: settings.verify_interval_seconds.clone(),
        trash_expire: settings.catalog_trash_expire_second.clone(),
        audit: AuditOptions {
            directory: settings.audit_log_dir.clone(),
            file_bytes: settings.audit_log_roll_bytes,
            files: settings.audit_log_roll_num,
            queue_records: settings.audit_queue_records as usize,
            when_full: settings.audit_when_full,
            has_table: settings.enable_audit_plugin,
            table_days: settings.audit_log_table_days,
        },
        traces: settings.otlp_endpoint.clone().map(|endpoint| TraceOptions {
            endpoint,
            headers: settings.otlp_headers.clone(),
            one_in: settings.trace_one_in.clone(),
            instance: String::new(),
            version: env!("CARGO_PKG_VERSION"),
        }),
        ingest: IngestOptions {
            wal_dirs: settings.wal_dirs(),
            retired_wal_dirs: Vec::new(),
            wal_limit: settings.group_commit_wal_max_disk_limit.clone(),
            wal: tributary_engine::WalOptions {
                segment_bytes: settings.wal_segment_bytes,
                ..tributary_engine::WalOptions::default()
            },
            memory_limit_bytes: settings.group_commit_queue_mem_limit.clone(),
            keys_dir: settings.storage_root_path.join("load_keys"),
            load_keys_max: settings.load_keys_max.clone(),
            rejected_dir: settings.storage_root_path.join("rejected_rows"),
            rejected_keep: settings.rejected_rows_keep_seconds.clone(),
            rejected_bytes_max: settings.rejected_rows_max_bytes.clone(),
            label_keep: settings.label_keep_max_second.clone(),
            precommit_timeout: settings.stream_load_default_precommit_timeout_second.clone(),
            ownership: tributary_ingest::Ownership::default(),
            sweep_interval: settings.deleted_file_retention_second.clone(),
        },
        egress: Arc::new(settings.egress.clone()),
        store: tributary_engine::StoreOptions {
            flush_bytes: settings.flush_bytes.clone(),
            flush_age_ms: settings.flush_age_ms.clone(),
            target_file_bytes: settings.target_file_bytes.clone(),
            checkpoint_every: settings.checkpoint_every.clone(),
            call_timeout: Duration::from_millis(settings.store_timeout_ms),
            keep_removed_files_ms: settings.deleted_file_retention_second.in_ms(),
            keep_log_ms: settings.delta_log_retention_second.in_ms(),
            max_staleness: settings.read_only.then(|| settings.max_staleness_second.clone()),
            ..defaults
        },
        query: tributary_engine::QueryOptions {
            memory_limit_bytes: settings.exec_mem_limit as usize,
            target_partitions: match settings.query_parallelism {
                0 => cores,
                threads => threads as usize,
            },
            spill: None,
            distributed_bytes_min: settings.distributed_query_bytes,
            page_cache_bytes: page_cache(settings),
        },
    })
}
