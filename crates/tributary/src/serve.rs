//! One run of a server: open, listen, say so, serve until a signal, stop in order.

use crate::config::Config;
use std::error::Error;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tributary_engine::{Engine, EngineOptions, HttpLoads, MysqlHooks, Ports};
use tributary_ingest::IngestOptions;
use tributary_ingest::wal_space::WalLimit;
use tributary_mysql::ServeOptions;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs a server until SIGTERM or SIGINT.
///
/// # Errors
/// What keeps the server from starting, with the remedy.
pub fn run(config: &Config) -> Outcome<()> {
    start_log(config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(tributary_engine::STACK_BYTES)
        .build()?;
    runtime.block_on(serve(config))
}

fn start_log(config: &Config) -> Outcome<()> {
    let level = config.text("log_level");
    let filter = tracing_subscriber::EnvFilter::try_new(level)
        .map_err(|error| format!("setting `log_level`: `{level}` is no tracing filter: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    if config.text("log_format") == "json" {
        log.json().init()
    } else {
        log.init()
    }
    Ok(())
}

async fn serve(config: &Config) -> Outcome<()> {
    let bind: IpAddr = config
        .text("bind")
        .parse()
        .map_err(|_| format!("setting `bind`: `{}` is no IP address, like 127.0.0.1", config.text("bind")))?;
    // The signals are taken before the ready line: who reads it may send one at once.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (engine, report) = Engine::open(engine_options(config, bind)?).await?;
    tracing::info!(?report, "recovered");
    refuse_open_door(&engine, bind).await?;
    let listeners = Listeners::bind(config, bind).await?;
    let ports = listeners.ports()?;
    engine.set_ports(ports);
    let shutdown = CancellationToken::new();
    let servers = listeners.serve(&engine, config, &shutdown);
    println!(
        "tributary ready: mysql={} http={} webserver={} data={}",
        SocketAddr::new(bind, ports.mysql),
        SocketAddr::new(bind, ports.http),
        SocketAddr::new(bind, ports.webserver),
        config.storage_root().display()
    );
    std::io::stdout().flush()?;
    let mut servers = std::pin::pin!(servers);
    let served = tokio::select! {
        outcome = &mut servers => outcome,
        _ = terminate.recv() => stop("SIGTERM", &shutdown, servers).await,
        _ = interrupt.recv() => stop("SIGINT", &shutdown, servers).await,
    };
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
    shutdown.cancel();
    servers.await
}

/// A server that others can reach must not have a user without a password.
async fn refuse_open_door(engine: &Arc<Engine>, bind: IpAddr) -> Outcome<()> {
    let open = engine.users_without_password();
    if bind.is_loopback() || open.is_empty() {
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

struct Listeners {
    mysql: TcpListener,
    http: TcpListener,
    webserver: TcpListener,
}

impl Listeners {
    async fn bind(config: &Config, bind: IpAddr) -> Outcome<Self> {
        let open = |name: &'static str| async move {
            let address = SocketAddr::new(bind, config.number(name) as u16);
            TcpListener::bind(address).await.map_err(|error| {
                format!("cannot listen on {address} (setting `{name}`): {error}; 0 picks a free port")
            })
        };
        Ok(Self {
            mysql: open("query_port").await?,
            http: open("http_port").await?,
            webserver: open("webserver_port").await?,
        })
    }

    fn ports(&self) -> Outcome<Ports> {
        Ok(Ports {
            mysql: self.mysql.local_addr()?.port(),
            http: self.http.local_addr()?.port(),
            webserver: self.webserver.local_addr()?.port(),
        })
    }

    /// Serves all ports until `shutdown`.
    async fn serve(self, engine: &Arc<Engine>, config: &Config, shutdown: &CancellationToken) -> Outcome<()> {
        let mysql = tributary_mysql::serve(
            self.mysql,
            Arc::new(MysqlHooks::new(Arc::clone(engine))),
            ServeOptions {
                max_connections: config.number("qe_max_connection") as usize,
                max_allowed_packet: config.number("max_allowed_packet") as usize,
                ..ServeOptions::default()
            },
            shutdown.clone(),
        );
        let http = tributary_http::serve(
            vec![self.http, self.webserver],
            Arc::new(HttpLoads(Arc::clone(engine))),
            tributary_http::HttpOptions {
                streaming_load_max_mb: config.number("streaming_load_max_mb"),
                ..tributary_http::HttpOptions::default()
            },
            shutdown.clone(),
        );
        let (mysql, http) = tokio::join!(mysql, http);
        mysql?;
        http?;
        Ok(())
    }
}

fn engine_options(config: &Config, bind: IpAddr) -> Outcome<EngineOptions> {
    let seconds = |name: &str| Duration::from_secs(config.number(name));
    let defaults = tributary_engine::StoreOptions::default();
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    Ok(EngineOptions {
        storage_root: config.storage_root(),
        host: if bind.is_unspecified() { "127.0.0.1".to_owned() } else { bind.to_string() },
        group_commit_interval_ms: config.number("group_commit_interval_ms_default_value"),
        group_commit_data_bytes: config.number("group_commit_data_bytes_default_value"),
        large_load_bytes: config.number("large_load_bytes"),
        error_log_keep: Duration::from_secs(3600 * config.number("load_error_log_reserve_hours")),
        ingest: IngestOptions {
            wal_dirs: config.wal_dirs(),
            retired_wal_dirs: Vec::new(),
            wal_limit: WalLimit::parse(config.text("group_commit_wal_max_disk_limit"))?,
            wal: tributary_engine::WalOptions {
                segment_bytes: config.number("wal_segment_bytes"),
                ..tributary_engine::WalOptions::default()
            },
            memory_limit_bytes: config.number("group_commit_queue_mem_limit"),
            label_keep: seconds("label_keep_max_second"),
            precommit_timeout: seconds("stream_load_default_precommit_timeout_second"),
        },
        store: tributary_engine::StoreOptions {
            flush_bytes: config.number("flush_bytes"),
            flush_age_ms: config.number("flush_age_ms"),
            target_file_bytes: config.number("target_file_bytes"),
            checkpoint_every: config.number("checkpoint_every"),
            ..defaults
        },
        query: tributary_engine::QueryOptions {
            memory_limit_bytes: config.number("exec_mem_limit") as usize,
            target_partitions: match config.number("query_parallelism") {
                0 => cores,
                threads => threads as usize,
            },
        },
    })
}
