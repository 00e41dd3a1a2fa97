//! SHOW FRONTENDS, SHOW BACKENDS and SHOW FRONTEND CONFIG: this server, in both of its roles.

use super::facts::size_text;
use crate::model::{Cell, Grid};
use crate::namespace::{LiveTable, Namespace};
use tributary_types::SqlError;

fn number(value: impl Into<u64>) -> Cell {
    Cell::Text(value.into().to_string())
}

/// -1 says that Arrow Flight SQL is off.
fn flight_port(port: Option<u16>) -> Cell {
    port.map_or_else(|| "-1".into(), number)
}

/// The rows of the table functions `backends()` and `frontends()`, by the planner's names of these; `None` for another function.
///
/// # Errors
/// The user may not see them.
pub fn called(function: &str, namespace: &dyn Namespace) -> Result<Option<Grid>, SqlError> {
    let rows = match function {
        "__backends" => backends,
        "__frontends" => frontends,
        _ => return Ok(None),
    };
    namespace.check_shows_server()?;
    Ok(Some(rows(namespace)))
}

/// The settings in Doris's columns. None can be changed while the server runs.
pub(super) fn config(namespace: &dyn Namespace) -> Grid {
    let mut grid = Grid::new(&["Key", "Value", "Type", "IsMutable", "MasterOnly", "Comment"]);
    for row in namespace.live(LiveTable::Settings) {
        let mut cells = row.into_iter();
        if let (Some(name), Some(value), Some(meaning)) = (cells.next(), cells.next(), cells.next_back()) {
            grid.push(vec![name, value, "string".into(), "false".into(), "false".into(), meaning]);
        }
    }
    grid
}

pub(super) fn frontends(namespace: &dyn Namespace) -> Grid {
    let facts = namespace.server_facts();
    let mut grid = Grid::new(&[
        "Name",
        "Host",
        "EditLogPort",
        "HttpPort",
        "QueryPort",
        "RpcPort",
        "ArrowFlightSqlPort",
        "Role",
        "IsMaster",
        "ClusterId",
        "Join",
        "Alive",
        "ReplayedJournalId",
        "LastStartTime",
        "LastHeartbeat",
        "IsHelper",
        "ErrMsg",
        "Version",
        "CurrentConnected",
    ]);
    grid.push(vec![
        facts.node_name.into(),
        facts.host.into(),
        "0".into(),
        number(facts.http_port),
        number(facts.query_port),
        "0".into(),
        flight_port(facts.flight_port),
        "FOLLOWER".into(),
        "true".into(),
        "0".into(),
        "true".into(),
        "true".into(),
        "0".into(),
        facts.start_time.into(),
        Cell::Null,
        "true".into(),
        "".into(),
        facts.version.into(),
        "Yes".into(),
    ]);
    grid
}

pub(super) fn backends(namespace: &dyn Namespace) -> Grid {
    let facts = namespace.server_facts();
    let tables: usize = namespace.databases().iter().map(|database| namespace.tables(database).len()).sum();
    let used = facts.disk_total_bytes.saturating_sub(facts.disk_available_bytes);
    let is_draining = facts.decommission.is_some();
    let percent = match facts.disk_total_bytes {
        0 => "0.00 %".to_owned(),
        total => format!("{:.2} %", used as f64 * 100.0 / total as f64),
    };
    let mut grid = Grid::new(&[
        "BackendId",
        "Host",
        "HeartbeatPort",
        "BePort",
        "HttpPort",
        "BrpcPort",
        "ArrowFlightSqlPort",
        "LastStartTime",
        "LastHeartbeat",
        "Alive",
        "SystemDecommissioned",
        "TabletNum",
        "DataUsedCapacity",
        "TrashUsedCapacity",
        "AvailCapacity",
        "TotalCapacity",
        "UsedPct",
        "MaxDiskUsedPct",
        "RemoteUsedCapacity",
        "Tag",
        "ErrMsg",
        "Version",
        "Status",
        "HeartbeatFailureCounter",
        "NodeRole",
        "CpuCores",
        "Memory",
    ]);
    grid.push(vec![
        "10001".into(),
        facts.host.into(),
        "0".into(),
        "0".into(),
        number(facts.webserver_port),
        "0".into(),
        flight_port(facts.flight_port),
        facts.start_time.into(),
        Cell::Null,
        "true".into(),
        if is_draining { "true" } else { "false" }.into(),
        number(tables as u64),
        size_text(facts.data_bytes).into(),
        size_text(0).into(),
        size_text(facts.disk_available_bytes).into(),
        size_text(facts.disk_total_bytes).into(),
        percent.as_str().into(),
        percent.as_str().into(),
        size_text(0).into(),
        r#"{"location" : "default"}"#.into(),
        facts.decommission.map(|state| state.to_string()).unwrap_or_default().into(),
        facts.version.into(),
        format!(
            r#"{{"lastSuccessReportTabletsTime":"N/A","lastStreamLoadTime":-1,"isQueryDisabled":false,"isLoadDisabled":{is_draining}}}"#
        )
        .into(),
        "0".into(),
        "mix".into(),
        number(facts.cpu_cores),
        size_text(facts.memory_bytes).into(),
    ]);
    grid
}
