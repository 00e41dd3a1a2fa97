//! The small endpoints: the read-only ones, and cancelling.

use super::Handler;
use crate::peer::Peer;
use crate::reached;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use crate::route::{Route, parameter};
use crate::service::{AskedName, Health, WalCount};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tributary_types::{ColumnDef, DataType, ErrorCode, LoadKey, Principal, SqlError, TableDef};

type Reply = Response<ReplyBody>;

impl Handler {
    pub(super) async fn inspect(&self, route: Route, head: &Parts, peer: &Peer) -> Reply {
        let query = head.uri.query();
        match route {
            Route::Health => return self.health(),
            Route::Ready => return self.ready(),
            Route::Bootstrap => return self.bootstrap(),
            Route::Metrics => return reply::metrics(self.services.inspect.metrics()),
            Route::ErrorLog if !self.options.error_log_needs_login.get() => {
                return self.error_log(query).await;
            }
            Route::Root => return reply::text(StatusCode::OK, ROOT_TEXT),
            _ => {}
        }
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => return reply::unauthorized(reply::envelope(EnvelopeCode::Unauthorized, text)),
        };
        let reached_as = self.reached_as(head, peer);
        let reached_as = reached_as.as_deref();
        match route {
            Route::ErrorLog => self.error_log(query).await,
            Route::WalSize => self.wal_size(&user, query, reached_as),
            Route::Backends => self.backends(&user, query, reached_as),
            Route::Nodes(which) => self.nodes(&user, peer, which).await,
            Route::Schema { db, table } => self.schema(&user, &db, &table).await,
            Route::LightSchemaChange { db, table } => self.light_schema_change(&user, &db, &table).await,
            Route::Count { db, table } => self.count(&user, &db, &table).await,
            Route::NamedLoad { db, table } => self.named_load(&user, &db, &table, query).await,
            Route::LoadState { db } => self.load_state(&user, &db, query).await,
            Route::LoadInfo { db } => self.load_info(&user, &db, query, reached_as).await,
            Route::Cancel { db } => self.cancel(&user, &db, query).await,
            other => {
                tracing::error!(?other, "a route without handler");
                reply::envelope(EnvelopeCode::Internal, "this path has no handler")
            }
        }
    }

    /// Whether the server is alive: an orchestrator restarts it if it isn't.
    fn health(&self) -> Reply {
        let health = self.services.inspect.health();
        let mut data = json!({ "total_backend_num": health.nodes, "online_backend_num": health.alive });
        let reasons = [&health.failures[..], &health.obstacles[..]].concat();
        // Doris's answer has no such key, and clients may compare it as a whole.
        if !reasons.is_empty() {
            data["reasons"] = json!(reasons);
        }
        answered(health.failures.is_empty(), data)
    }

    /// Whether loads are acknowledged: an orchestrator sends none while they aren't.
    fn ready(&self) -> Reply {
        let Health { failures, obstacles, warnings, .. } = self.services.inspect.health();
        let reasons = [failures, obstacles].concat();
        let is_ready = reasons.is_empty();
        answered(is_ready, json!({ "ready": is_ready, "reasons": reasons, "warnings": warnings }))
    }

    /// Ports and version are reserved for nodes with the cluster's token, and none exist.
    fn bootstrap(&self) -> Reply {
        if !self.services.inspect.health().failures.is_empty() {
            return reply::envelope(EnvelopeCode::Error, "not ready");
        }
        let unknown = json!({
            "replayedJournalId": 0, "queryPort": 0, "rpcPort": 0, "arrowFlightSqlPort": 0, "version": "",
        });
        reply::envelope(EnvelopeCode::Success, unknown)
    }

    fn backends(&self, user: &Principal, query: Option<&str>, reached_as: Option<&str>) -> Reply {
        let backends = match self.services.inspect.backends(user, reached_as) {
            Ok(backends) => backends,
            Err(error) => return reply::envelope(EnvelopeCode::Error, error.detail_text()),
        };
        let asked = parameter(query, "is_alive").map(|text| text.eq_ignore_ascii_case("true"));
        let backends: Vec<Value> = backends
            .into_iter()
            .filter(|backend| asked != Some(true) || backend.is_alive)
            .map(|backend| {
                json!({ "ip": backend.ip, "http_port": backend.http_port, "is_alive": backend.is_alive })
            })
            .collect();
        reply::envelope(EnvelopeCode::Success, json!({ "backends": backends }))
    }

    fn wal_size(&self, user: &Principal, query: Option<&str>, reached_as: Option<&str>) -> Reply {
        let counts = match self.services.inspect.wal_counts(user, reached_as) {
            Ok(counts) => counts,
            Err(error) => return reply::envelope(EnvelopeCode::Error, error.detail_text()),
        };
        let shown = match parameter(query, "host_ports") {
            None => Ok(counts),
            Some(asked) => of_nodes(&counts, &asked),
        };
        match shown {
            Err(text) => reply::envelope(EnvelopeCode::BadRequest, text),
            Ok(counts) => {
                let lines: Vec<String> =
                    counts.iter().map(|wal| format!("{}:{}", wal.host_port, wal.count)).collect();
                reply::envelope(EnvelopeCode::Success, lines)
            }
        }
    }

    async fn error_log(&self, query: Option<&str>) -> Reply {
        let Some(file) = parameter(query, "file") else {
            return reply::text(
                StatusCode::BAD_REQUEST,
                "the parameter `file` is missing: take the whole address from ErrorURL\n",
            );
        };
        match self.services.inspect.error_log(&file).await {
            Ok(Some(reader)) => reply::stream(reader),
            Ok(None) => reply::text(
                StatusCode::NOT_FOUND,
                format!("no error log {file}: it never was, or it is older than 48 hours\n"),
            ),
            Err(error) => {
                tracing::warn!(file, %error, "cannot read an error log");
                reply::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("cannot read the error log {file}: {error}\n"),
                )
            }
        }
    }

    async fn schema(&self, user: &Principal, db: &str, table: &str) -> Reply {
        let data = match self.services.inspect.table(user, db, table).await {
            Ok(table) => schema_document(&table),
            Err(error) => exception(&error),
        };
        reply::envelope(EnvelopeCode::Success, data)
    }

    /// Whether columns of the table can be added and dropped without rewriting it, which a connector asks before it does: always.
    async fn light_schema_change(&self, user: &Principal, db: &str, table: &str) -> Reply {
        match self.services.inspect.table(user, db, table).await {
            Ok(_) => reply::envelope(EnvelopeCode::Success, Value::Null),
            Err(error) => reply::envelope(EnvelopeCode::Error, error.detail_text()),
        }
    }

    async fn count(&self, user: &Principal, db: &str, table: &str) -> Reply {
        let data = match self.services.inspect.row_count(user, db, table).await {
            Ok(rows) => json!({ "status": 200, "size": rows }),
            Err(error) => exception(&error),
        };
        reply::envelope(EnvelopeCode::Success, data)
    }

    async fn named_load(&self, user: &Principal, db: &str, table: &str, query: Option<&str>) -> Reply {
        let asked = match (parameter(query, "idempotency_key"), parameter(query, "channel")) {
            (Some(key), None) => LoadKey::new(&key).map(AskedName::Key),
            (None, Some(channel)) => LoadKey::new(&channel).map(AskedName::Channel),
            _ => {
                return reply::envelope(
                    EnvelopeCode::BadRequest,
                    "give one of the parameters idempotency_key and channel",
                );
            }
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(error) => return reply::envelope(EnvelopeCode::BadRequest, error.detail_text()),
        };
        let state = match self.services.inspect.named_load(user, db, table, &asked).await {
            Ok(state) => state,
            Err(error) => return reply::envelope(EnvelopeCode::Error, error.detail_text()),
        };
        let mut data = json!({ "state": state.state });
        if let AskedName::Channel(_) = asked {
            data["next_offset"] = json!(state.next_offset);
        }
        if let Some(load) = state.load {
            data["txn_id"] = json!(load.txn_id.0);
            data["label"] = json!(load.label);
            data["loaded_rows"] = json!(load.loaded_rows);
            data["filtered_rows"] = json!(load.filtered_rows);
            data["unselected_rows"] = json!(load.unselected_rows);
            data["delta_version"] = json!(state.delta_version);
        }
        reply::envelope(EnvelopeCode::Success, data)
    }

    async fn load_state(&self, user: &Principal, db: &str, query: Option<&str>) -> Reply {
        let Some(label) = parameter(query, "label") else {
            return reply::envelope(EnvelopeCode::BadRequest, "No label selected");
        };
        match self.services.inspect.label_info(user, db, &label).await {
            Ok(info) => reply::envelope(EnvelopeCode::Success, info.map_or("UNKNOWN", |info| info.status)),
            Err(error) => reply::envelope(EnvelopeCode::Error, error.detail_text()),
        }
    }

    async fn cancel(&self, user: &Principal, db: &str, query: Option<&str>) -> Reply {
        let Some(label) = parameter(query, "label") else {
            return reply::envelope(EnvelopeCode::BadRequest, "No label specified");
        };
        match self.services.inspect.cancel(user, db, &label).await {
            Ok(()) => reply::envelope(EnvelopeCode::Success, Value::Null),
            Err(error) => reply::envelope(EnvelopeCode::Error, error.detail_text()),
        }
    }

    async fn load_info(
        &self,
        user: &Principal,
        db: &str,
        query: Option<&str>,
        reached_as: Option<&str>,
    ) -> Reply {
        let Some(label) = parameter(query, "label") else {
            return reply::status_and_message("FAILED", "No label selected");
        };
        match self.services.inspect.label_info(user, db, &label).await {
            Err(error) => reply::status_and_message("FAILED", error.detail_text()),
            Ok(None) => reply::status_and_message(
                "FAILED",
                &format!("label [{label}] does not exist in database {db}"),
            ),
            Ok(Some(info)) => reply::document(&json!({
                "status": "OK",
                "msg": "Success",
                "jobInfo": {
                    "dbName": db,
                    "tblNames": info.tables,
                    "label": label,
                    "clusterName": "default_cluster",
                    "state": info.status,
                    "failMsg": info.reason,
                    "trackingUrl": reached_as.map_or(info.error_url.clone(), |host| reached::on_host(&info.error_url, host)),
                },
            })),
        }
    }
}

const ROOT_TEXT: &str = "Tributary: loads at PUT /api/{db}/{table}/_stream_load, SQL over the MySQL protocol, \
                         metrics at /metrics\n";

/// HTTP 200 or 503.
fn answered(is_well: bool, data: Value) -> Reply {
    match is_well {
        true => reply::envelope(EnvelopeCode::Success, data),
        false => {
            reply::envelope_with_status(StatusCode::SERVICE_UNAVAILABLE, EnvelopeCode::Unavailable, data)
        }
    }
}

/// Counts of the nodes in `asked`: `host:port,host:port`.
fn of_nodes(counts: &[WalCount], asked: &str) -> Result<Vec<WalCount>, String> {
    let nodes: Vec<&str> = asked.split(',').map(str::trim).filter(|node| !node.is_empty()).collect();
    if nodes.is_empty() {
        return Err("No host:port specified".to_owned());
    }
    nodes
        .into_iter()
        .map(|node| {
            let known = counts.iter().find(|wal| wal.host_port == node).cloned();
            known.ok_or_else(|| format!("Backend does not exist[{node}]"))
        })
        .collect()
}

/// Doris's `data` for a table that cannot be read.
pub(super) fn exception(error: &SqlError) -> Value {
    let status = match error.code {
        ErrorCode::UnknownDatabase | ErrorCode::UnknownTable | ErrorCode::NoSuchTable => 404,
        ErrorCode::AccessDenied
        | ErrorCode::DbAccessDenied
        | ErrorCode::TableAccessDenied
        | ErrorCode::PrivilegeDenied => 401,
        _ => 500,
    };
    json!({ "status": status, "exception": error.detail_text() })
}

fn schema_document(table: &TableDef) -> Value {
    let columns: Vec<Value> = table.schema.visible().map(column_document).collect();
    json!({ "status": 200, "tableType": "OLAP", "keysType": table.keys.name(), "properties": columns })
}

fn column_document(column: &ColumnDef) -> Value {
    let mut document = json!({
        "name": column.name,
        "type": primitive_name(column.data_type),
        "comment": column.comment,
        "aggregation_type": if column.is_key { "" } else { "NONE" },
    });
    if let DataType::Decimal { precision, scale } = column.data_type {
        document["precision"] = json!(precision.to_string());
        document["scale"] = json!(scale.to_string());
    }
    document
}

/// The names by which connectors know types.
const fn primitive_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Decimal { precision: 0..=9, .. } => "DECIMAL32",
        DataType::Decimal { precision: 10..=18, .. } => "DECIMAL64",
        DataType::Decimal { .. } => "DECIMAL128",
        DataType::Date => "DATEV2",
        DataType::DateTime { .. } => "DATETIMEV2",
        DataType::Json => "JSONB",
        DataType::Varbinary { .. } => "BINARY",
        other => other.base_name(),
    }
}
