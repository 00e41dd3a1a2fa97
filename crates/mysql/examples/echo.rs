//! A server without storage, to try clients on the protocol alone: `cargo run -p tributary-mysql
//! --example echo -- 127.0.0.1:9030`, users `root` (no password) and `alice` (password `secret`).
//!
//! `types` answers a row of every type and one of NULLs, `big N` answers N rows, `load` answers as a
//! load does, `panic` panics; a prepared statement answers its parameters as text; any other text is
//! answered with itself, one result for each part between `;`.

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tributary_mysql::{
    Account, ChangeUser, Column, ConnectionInfo, OkInfo, ParamValue, Params, PasswordHash, Prepared,
    ResultWriter, ServeOptions, ServerHooks, Session, SessionStatus, serve,
};
use tributary_types::{DataType, ErrorCode, SqlError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| String::from("127.0.0.1:9030"));
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    serve(listener, Arc::new(EchoServer::default()), ServeOptions::default(), shutdown).await?;
    Ok(())
}

#[derive(Default)]
struct EchoServer {
    last_id: AtomicU32,
}

#[async_trait]
impl ServerHooks for EchoServer {
    fn next_connection_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn find_account(&self, user: &str, _host: &str) -> Option<Account> {
        match user {
            "root" => Some(PasswordHash::of("").into()),
            "alice" => Some(PasswordHash::of("secret").into()),
            _ => None,
        }
    }

    async fn open_session(&self, _info: ConnectionInfo) -> Result<Box<dyn Session>, SqlError> {
        Ok(Box::new(Echo { autocommit: true }))
    }
}

struct Echo {
    autocommit: bool,
}

#[async_trait]
impl Session for Echo {
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let sql = String::from_utf8_lossy(sql);
        for statement in sql.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            self.run(statement, out).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, _id: u32, sql: &[u8]) -> Result<Prepared, SqlError> {
        let param_count = sql.iter().filter(|byte| **byte == b'?').count() as u16;
        let columns = match sql.trim_ascii() {
            b"types" => every_type()?.0,
            _ => (0..param_count).map(|index| text_column(&format!("p{index}"))).collect(),
        };
        Ok(Prepared { param_count, columns, warnings: 0 })
    }

    async fn execute(
        &mut self,
        _id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let values = params.iter().collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            let (columns, batch) = every_type()?;
            return out.result_set(&columns, &[batch]).await;
        }
        let columns: Vec<_> = (0..values.len()).map(|index| text_column(&format!("p{index}"))).collect();
        let row: Vec<_> = values.iter().map(shown).collect();
        out.result_set(&columns, &[text_row(&row)?]).await
    }

    async fn close_statement(&mut self, _id: u32) {}

    async fn init_db(&mut self, _db: &str) -> Result<(), SqlError> {
        Ok(())
    }

    async fn reset(&mut self) -> Result<(), SqlError> {
        self.autocommit = true;
        Ok(())
    }

    async fn change_user(&mut self, _user: ChangeUser) -> Result<(), SqlError> {
        Ok(())
    }

    async fn field_list(&mut self, _table: &str, _pattern: &str) -> Result<Vec<Column>, SqlError> {
        Ok(every_type()?.0)
    }

    fn status(&self) -> SessionStatus {
        SessionStatus { autocommit: self.autocommit, ..SessionStatus::default() }
    }
}

impl Echo {
    async fn run(&mut self, statement: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        match statement.split_once(' ').unwrap_or((statement, "")) {
            ("types", _) => {
                let (columns, batch) = every_type()?;
                out.result_set(&columns, &[batch]).await
            }
            ("load", _) => {
                let info = "{'label':'group_commit_0123456789abcdef_0123456789abcdef', 'status':'PREPARE', 'txnId':'7'}";
                out.ok(OkInfo { affected_rows: 1, info, ..OkInfo::default() }).await
            }
            ("big", count) => big(count.parse().unwrap_or(1), out).await,
            ("panic", _) => panic!("as asked"),
            ("error", text) => Err(SqlError::new(ErrorCode::Syntax, text)),
            ("set", assignment) => {
                if let Some(value) = assignment.to_ascii_lowercase().strip_prefix("autocommit") {
                    self.autocommit = value.contains('1');
                }
                out.ok(OkInfo::default()).await
            }
            ("SET" | "use", _) => out.ok(OkInfo::default()).await,
            _ => out.result_set(&[text_column("echo")], &[text_row(&[Some(statement.to_owned())])?]).await,
        }
    }
}

/// Writes that many rows, in batches of 8,192.
async fn big(count: i64, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
    out.start(&[Column::new("n", DataType::BigInt), text_column("s")]).await?;
    for begin in (0..count).step_by(8192) {
        let numbers: Vec<_> = (begin..count.min(begin + 8192)).collect();
        let texts: Vec<_> = numbers.iter().map(|number| format!("row {number}")).collect();
        let arrays: [ArrayRef; 2] = [Arc::new(Int64Array::from(numbers)), Arc::new(StringArray::from(texts))];
        out.batch(&RecordBatch::try_from_iter(["n", "s"].into_iter().zip(arrays)).map_err(internal)?).await?;
    }
    out.finish().await
}

fn every_type() -> Result<(Vec<Column>, RecordBatch), SqlError> {
    let decimal =
        Decimal128Array::from(vec![Some(-12345), None]).with_precision_and_scale(10, 2).map_err(internal)?;
    let large = Decimal128Array::from(vec![Some(i128::from(i64::MAX) * 1000), None])
        .with_precision_and_scale(38, 0)
        .map_err(internal)?;
    let at = Arc::new(TimestampMicrosecondArray::from(vec![Some(1_709_251_199_123_456), None]));
    let text = Arc::new(StringArray::from(vec![Some("Grüße, 世界"), None]));
    let declared: Vec<(&str, DataType, ArrayRef)> = vec![
        ("boolean", DataType::Boolean, Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("tinyint", DataType::TinyInt, Arc::new(Int8Array::from(vec![Some(-128), None]))),
        ("smallint", DataType::SmallInt, Arc::new(Int16Array::from(vec![Some(-32768), None]))),
        ("int", DataType::Int, Arc::new(Int32Array::from(vec![Some(i32::MIN), None]))),
        ("bigint", DataType::BigInt, Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
        ("largeint", DataType::LargeInt, Arc::new(large)),
        ("float", DataType::Float, Arc::new(Float32Array::from(vec![Some(1.5), None]))),
        ("double", DataType::Double, Arc::new(Float64Array::from(vec![Some(1e20), None]))),
        ("decimal", DataType::Decimal { precision: 10, scale: 2 }, Arc::new(decimal)),
        ("date", DataType::Date, Arc::new(Date32Array::from(vec![Some(19_782), None]))),
        ("datetime", DataType::DateTime { scale: 0 }, at.clone()),
        ("datetime6", DataType::DateTime { scale: 6 }, at),
        ("char", DataType::Char { bytes: 20 }, text.clone()),
        ("varchar", DataType::Varchar { bytes: 65533 }, text.clone()),
        ("string", DataType::String, text),
        ("json", DataType::Json, Arc::new(StringArray::from(vec![Some(r#"{"a": 1}"#), None]))),
    ];
    let derived: [(&str, ArrayRef); 2] = [
        ("unsigned", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
        ("binary", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\x00\xff"), None]))),
    ];
    let mut columns: Vec<_> =
        declared.iter().map(|(name, data_type, _)| Column::new(*name, *data_type)).collect();
    columns.extend(derived.iter().map(|(name, array)| Column::from_arrow(*name, array.data_type())));
    let arrays = declared.into_iter().map(|(name, _, array)| (name, array)).chain(derived);
    Ok((columns, RecordBatch::try_from_iter(arrays).map_err(internal)?))
}

fn text_column(name: &str) -> Column {
    Column::from_arrow(name, &ArrowType::Utf8)
}

fn text_row(values: &[Option<String>]) -> Result<RecordBatch, SqlError> {
    let fields: Vec<_> =
        (0..values.len()).map(|index| Field::new(format!("p{index}"), ArrowType::Utf8, true)).collect();
    let arrays =
        values.iter().map(|value| Arc::new(StringArray::from(vec![value.clone()])) as ArrayRef).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(internal)
}

fn shown(value: &ParamValue<'_>) -> Option<String> {
    match value {
        ParamValue::Null => None,
        ParamValue::Bytes(bytes) | ParamValue::Decimal(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        other => Some(format!("{other:?}")),
    }
}

fn internal(error: impl Error) -> SqlError {
    SqlError::new(ErrorCode::Unknown, error.to_string())
}
