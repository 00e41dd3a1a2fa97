//! The small endpoints.

use crate::client::Client;
use crate::fake::start;
use tributary_http::Health;

#[tokio::test]
async fn each_endpoint_answers_in_doris_s_shape() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (path, body) in [
        (
            "/api/health",
            r#"{"msg":"success","code":0,"data":{"total_backend_num":2,"online_backend_num":1},"count":0}"#,
        ),
        (
            "/api/ready",
            r#"{"msg":"success","code":0,"data":{"ready":true,"reasons":[],"warnings":[]},"count":0}"#,
        ),
        (
            "/api/bootstrap",
            r#"{"msg":"success","code":0,"data":{"replayedJournalId":0,"queryPort":0,"rpcPort":0,"arrowFlightSqlPort":0,"version":""},"count":0}"#,
        ),
        (
            "/api/backends?is_alive=true",
            r#"{"msg":"success","code":0,"data":{"backends":[{"ip":"127.0.0.1","http_port":8040,"is_alive":true}]},"count":0}"#,
        ),
        (
            "/rest/v2/manager/node/frontends",
            r#"{"msg":"success","code":0,"data":{"column_names":["id"],"columnNames":["id"],"rows":[[1,"a"],[2,""]]},"count":0}"#,
        ),
        (
            "/rest/v2/manager/node/backends",
            r#"{"msg":"Error","code":1,"data":"no such statement","count":0}"#,
        ),
        (
            "/api/get_wal_size",
            r#"{"msg":"success","code":0,"data":["127.0.0.1:9050:3","127.0.0.2:9050:0"],"count":0}"#,
        ),
        (
            "/api/get_wal_size?host_ports=127.0.0.2%3A9050",
            r#"{"msg":"success","code":0,"data":["127.0.0.2:9050:0"],"count":0}"#,
        ),
        (
            "/api/get_wal_size?host_ports=h:1",
            r#"{"msg":"Bad Request","code":403,"data":"Backend does not exist[h:1]","count":0}"#,
        ),
        (
            "/api/db/dt/_schema",
            r#"{"msg":"success","code":0,"data":{"status":200,"tableType":"OLAP","keysType":"DUP_KEYS","properties":[{"name":"id","type":"INT","comment":"","aggregation_type":""},{"name":"name","type":"VARCHAR","comment":"","aggregation_type":"NONE"},{"name":"price","type":"DECIMAL64","comment":"","aggregation_type":"NONE","precision":"18","scale":"2"}]},"count":0}"#,
        ),
        (
            "/api/db/other/_schema",
            r#"{"msg":"success","code":0,"data":{"status":404,"exception":"Unknown table 'other'"},"count":0}"#,
        ),
        ("/api/db/dt/_count", r#"{"msg":"success","code":0,"data":{"status":200,"size":42},"count":0}"#),
        ("/api/db/get_load_state?label=used", r#"{"msg":"success","code":0,"data":"VISIBLE","count":0}"#),
        ("/api/db/get_load_state?label=free", r#"{"msg":"success","code":0,"data":"UNKNOWN","count":0}"#),
        (
            "/api/db/get_load_state",
            r#"{"msg":"Bad Request","code":403,"data":"No label selected","count":0}"#,
        ),
        (
            "/api/other/get_load_state?label=used",
            r#"{"msg":"Error","code":1,"data":"Unknown database 'other'","count":0}"#,
        ),
        ("/metrics", "# TYPE doris_be_load counter\ndoris_be_load 1\n"),
    ] {
        let answer = client.ask(&format!("GET {path}")).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, body), "{path}");
    }
}

#[tokio::test]
async fn load_info_names_the_job_of_a_label() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let json = client.ask("GET /api/db/_load_info?label=used").await.json();
    assert_eq!((json["status"].as_str(), json["msg"].as_str()), (Some("OK"), Some("Success")));
    assert_eq!(
        (&json["jobInfo"]["state"], &json["jobInfo"]["tblNames"][0]),
        (&"VISIBLE".into(), &"dt".into())
    );
    let json = client.ask("GET /api/db/_load_info?label=free").await.json();
    assert_eq!(json["status"], "FAILED");
}

#[tokio::test]
async fn a_load_is_cancelled_by_its_label() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (path, body) in [
        ("/api/db/_cancel?label=running", r#"{"msg":"success","code":0,"data":null,"count":0}"#),
        (
            "/api/db/_cancel?label=other",
            r#"{"msg":"Error","code":1,"data":"label other of db can't be cancelled","count":0}"#,
        ),
        ("/api/db/_cancel", r#"{"msg":"Bad Request","code":403,"data":"No label specified","count":0}"#),
    ] {
        let answer = client.ask(&format!("POST {path}")).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, body), "{path}");
    }
    assert_eq!(client.ask("GET /api/db/_cancel?label=running").await.status, 405);
}

#[tokio::test]
async fn an_unknown_path_is_404_and_a_wrong_method_405_with_what_to_use() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let answer = client.ask("GET /api/nothing").await;
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.body,
        r#"{"msg":"Not Found","code":404,"data":"no such path: /api/nothing; a load goes to /api/{db}/{table}/_stream_load","count":0}"#
    );
    client.head("POST /api/db/t/_stream_load", &["Content-Length: 2"]).await;
    client.send("1\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("PUT")));
    assert_eq!(
        answer.json()["data"],
        "/api/db/t/_stream_load takes no POST; use PUT (curl -T FILE sends PUT)"
    );
    let answer = client.ask("GET /").await;
    assert!(answer.status == 200 && answer.body.starts_with("Tributary: "), "{answer:?}");
}

#[tokio::test]
async fn an_error_log_is_streamed_to_anyone_and_no_other_file_is() {
    let running = start().await;
    let rows = (0..5_000).map(|row| format!("Reason: row {row} is bad. src line [a,b]; \n"));
    let file = "__shard_7/error_log_insert_stmt_0-7_0_7";
    running.fake.logs.lock().unwrap().insert(file.to_owned(), rows.collect());
    let mut client = Client::connect(running.address).await;
    client.head(&format!("GET /api/_load_error_log?file={file}"), &[]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.lines().count()), (200, 5_000));
    assert!(answer.body.starts_with("Reason: row 0 is bad. src line [a,b]; \n"));
    for path in ["?file=../../etc/passwd", "?file=__shard_0/nothing"] {
        let answer = client.ask(&format!("GET /api/_load_error_log{path}")).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    assert_eq!(client.ask("GET /api/_load_error_log").await.status, 400);
}

#[tokio::test]
async fn a_page_in_a_browser_reaches_no_load_of_a_server_on_its_machine() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let basic = "Authorization: Basic cm9vdDo=";
    for (line, headers, status) in [
        (
            "PUT /api/db/dt/_stream_load",
            &[basic, "Content-Length: 4", "Origin: http://evil.example"][..],
            403,
        ),
        ("PUT /api/db/dt/_stream_load", &[basic, "Content-Length: 4", "Sec-Fetch-Site: cross-site"], 403),
        ("PUT /api/db/dt/_stream_load", &[basic, "Content-Length: 4", "Origin: http://localhost"], 200),
        ("POST /api/db/_cancel?label=running", &[basic, "Content-Length: 4", "Origin: null"], 403),
        ("PUT http://evil.example/api/db/dt/_stream_load", &[basic, "Content-Length: 4"], 403),
    ] {
        client.head(line, headers).await;
        client.send("1,x\n").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, status, "{line} {headers:?}: {answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(running.fake.loads.lock().unwrap().len(), 1);
    let mut other = Client::connect(running.address).await;
    other.send("GET /api/health HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    let answer = other.answer().await;
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("this server is not called 'evil.example'"), "{answer:?}");
}

#[tokio::test]
async fn a_server_that_cannot_load_is_alive_and_one_that_needs_a_restart_is_not() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let full = Health {
        nodes: 1,
        alive: 0,
        obstacles: vec!["the disk is full".to_owned()],
        warnings: vec!["2 tables".to_owned()],
        ..Health::default()
    };
    let dead = Health { failures: vec!["work has ended".to_owned()], ..full.clone() };
    for (health, path, status, body) in [
        (
            &full,
            "/api/health",
            200,
            r#"{"msg":"success","code":0,"data":{"total_backend_num":1,"online_backend_num":0,"reasons":["the disk is full"]},"count":0}"#,
        ),
        (
            &full,
            "/api/ready",
            503,
            r#"{"msg":"Service Unavailable","code":503,"data":{"ready":false,"reasons":["the disk is full"],"warnings":["2 tables"]},"count":0}"#,
        ),
        (
            &dead,
            "/api/health",
            503,
            r#"{"msg":"Service Unavailable","code":503,"data":{"total_backend_num":1,"online_backend_num":0,"reasons":["work has ended","the disk is full"]},"count":0}"#,
        ),
        (&dead, "/api/bootstrap", 200, r#"{"msg":"Error","code":1,"data":"not ready","count":0}"#),
    ] {
        *running.fake.health.lock().unwrap() = health.clone();
        // Without a login.
        client.head(&format!("GET {path}"), &[]).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{path}");
    }
}
