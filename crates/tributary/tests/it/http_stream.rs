//! HTTP Stream: the statement in the header `sql` says where the rows of the body go.

use crate::support::{Curl, Database, Server};

fn http_stream(server: &Server, sql: &str) -> Curl {
    Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port()))
        .header(&format!("sql:{sql}"))
}

fn rows(db: &mut Database) -> Vec<String> {
    db.client.rows("SELECT * FROM dt ORDER BY id")
}

#[test]
fn columns_can_be_chosen_computed_and_filtered() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let sql = format!(
        "insert into {}.dt (id, name, score) select c1, upper(c2), c3 * 2 from http_stream(\"format\" = \"CSV\", \"column_separator\" = \",\") where c3 > 10",
        db.name
    );
    let reply = http_stream(&server, &sql).body("6,Amy,60\n7,Ross,8\n").load().success();
    assert_eq!(reply.get("NumberLoadedRows"), "1", "{}", reply.text);
    assert_eq!(rows(&mut db), ["6|AMY|120"]);
}

#[test]
fn a_column_list_maps_the_fields() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let sql = format!(
        "insert into {}.dt (name, id) select * from http_stream('format' = 'csv', 'column_separator' = '|')",
        db.name
    );
    let reply = http_stream(&server, &sql).body("Amy|6\n").load().success();
    assert_eq!(reply.rows(), [1, 1, 0, 0]);
    assert_eq!(rows(&mut db), ["6|Amy|NULL"]);
}

#[test]
fn a_label_in_the_statement_is_kept() {
    let server = Server::shared();
    let mut db = server.database().with_dt("");
    let sql = format!(
        "insert into {}.dt with label from_sql select * from http_stream('format' = 'csv', 'column_separator' = ',')",
        db.name
    );
    let reply = http_stream(&server, &sql).body("6,Amy,60\n").load().success();
    assert_eq!(reply.label(), "from_sql");
    assert_eq!(rows(&mut db), ["6|Amy|60"]);
}

#[test]
fn a_statement_that_reads_no_body_is_refused() {
    let server = Server::shared();
    let db = server.database().with_dt("");
    let refusal =
        http_stream(&server, &format!("insert into {}.dt values (1, 'a', 1)", db.name)).body("x\n").load();
    let message = refusal.failure();
    assert!(
        message.starts_with(
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = parse db and tb with wrong sql:insert into"
        ),
        "{message}"
    );
    let empty =
        Curl::put(&format!("http://127.0.0.1:{}/api/_http_stream", server.http_port())).body("x\n").load();
    assert!(empty.failure().starts_with("[INVALID_ARGUMENT]the header `sql` is empty"), "{}", empty.text);
}

#[test]
fn an_unknown_table_is_named() {
    let server = Server::shared();
    let db = server.database();
    let sql = format!("insert into {}.nowhere select * from http_stream('format' = 'csv')", db.name);
    let refusal = http_stream(&server, &sql).body("1\n").load();
    assert_eq!(
        refusal.failure(),
        format!(
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Table [nowhere] does not exist in database [{}].",
            db.name
        )
    );
}
