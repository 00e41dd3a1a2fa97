//! SHOW statements of MySQL about parts that this server does not have: monitors send them to every server, and take no rows for no
//! such part.

use crate::model::Grid;
use tributary_sql::UnusedPart;
use tributary_types::{ErrorCode, SqlError};

const REPLICA_STATUS: &str = "Slave_IO_State Master_Host Master_User Master_Port# Connect_Retry# Master_Log_File Read_Master_Log_Pos# Relay_Log_File Relay_Log_Pos# Relay_Master_Log_File Slave_IO_Running Slave_SQL_Running Replicate_Do_DB Replicate_Ignore_DB Replicate_Do_Table Replicate_Ignore_Table Replicate_Wild_Do_Table Replicate_Wild_Ignore_Table Last_Errno# Last_Error Skip_Counter# Exec_Master_Log_Pos# Relay_Log_Space# Until_Condition Until_Log_File Until_Log_Pos# Master_SSL_Allowed Master_SSL_CA_File Master_SSL_CA_Path Master_SSL_Cert Master_SSL_Cipher Master_SSL_Key Seconds_Behind_Master# Master_SSL_Verify_Server_Cert Last_IO_Errno# Last_IO_Error Last_SQL_Errno# Last_SQL_Error Replicate_Ignore_Server_Ids Master_Server_Id# Master_UUID Master_Info_File SQL_Delay# SQL_Remaining_Delay# Slave_SQL_Running_State Master_Retry_Count# Master_Bind Last_IO_Error_Timestamp Last_SQL_Error_Timestamp Master_SSL_Crl Master_SSL_Crlpath Retrieved_Gtid_Set Executed_Gtid_Set Auto_Position# Replicate_Rewrite_DB Channel_Name Master_TLS_Version";

/// The answer: titles, and no rows but that of a storage engine without anything to say.
///
/// # Errors
/// [`ErrorCode::NoBinaryLog`] for the files of a binary log, as from a MySQL that writes none.
pub(super) fn grid(part: UnusedPart) -> Result<Grid, SqlError> {
    let renamed = REPLICA_STATUS
        .replace("Master_", "Source_")
        .replace("_Master", "_Source")
        .replace("Slave_", "Replica_");
    let titles: &str = match part {
        UnusedPart::SlaveStatus => REPLICA_STATUS,
        UnusedPart::ReplicaStatus => &renamed,
        UnusedPart::SlaveHosts => "Server_id# Host Port# Master_id# Slave_UUID",
        UnusedPart::Replicas => "Server_Id# Host Port# Source_Id# Replica_UUID",
        UnusedPart::BinaryLogStatus => "File Position# Binlog_Do_DB Binlog_Ignore_DB Executed_Gtid_Set",
        UnusedPart::BinaryLogs => {
            return Err(SqlError::new(ErrorCode::NoBinaryLog, "You are not using binary logging"));
        }
        UnusedPart::OpenTables => "Database Table In_use# Name_locked#",
        UnusedPart::Profiles => "Query_ID# Duration Query",
        UnusedPart::EngineStatus => "Type Name Status",
    };
    let mut grid = Grid::new(&titles.split(' ').collect::<Vec<_>>());
    if part == UnusedPart::EngineStatus {
        grid.push(vec!["InnoDB".into(), "".into(), "".into()]);
    }
    Ok(grid)
}
