//! Traces of requests at an OpenTelemetry collector.

use crate::support::{Curl, Server, wait_until};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector that keeps all spans.
struct Collector {
    url: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let spans = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&spans);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                // A server that leaves is not an error.
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { url, spans }
    }

    fn spans(&self) -> Vec<Span> {
        self.spans.lock().expect("no test panicked with it").clone()
    }

    /// Waits for a span whose attribute has this value.
    fn wait(&self, name: &str, value: &str) -> Span {
        let find = || self.spans().into_iter().find(|span| attribute(span, name).as_deref() == Some(value));
        wait_until(&format!("a span with {name} = {value}"), || find().is_some());
        find().expect("it was there")
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<Span>>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece)?;
            if count == 0 {
                return Ok(());
            }
            bytes.extend_from_slice(&piece[..count]);
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = bytes.split_off(end + 4);
        let missing = length.parse::<usize>().expect("a number").saturating_sub(body.len());
        Read::by_ref(&mut stream).take(missing as u64).read_to_end(&mut body)?;
        bytes.clear();
        let request = ExportTraceServiceRequest::decode(&body[..]).expect("it is OTLP");
        let scopes = request.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        kept.lock().expect("no test panicked with it").extend(scopes.flat_map(|spans| spans.spans));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

fn trace_of(span: &Span) -> String {
    span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names of the spans below one.
fn below(collector: &Collector, parent: &Span) -> Vec<String> {
    let spans = collector.spans();
    let children = spans.iter().filter(|span| span.parent_span_id == parent.span_id);
    children.map(|span| span.name.clone()).collect()
}

#[test]
fn a_redirect_of_the_collector_is_not_followed() {
    let (other, collector) = (Collector::start(), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let url = format!("http://{}", collector.local_addr().expect("an address"));
    let elsewhere = format!("{}/v1/traces", other.url);
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in collector.incoming().map_while(Result::ok) {
            let answer = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"
            );
            let mut piece = [0; 4096];
            // The answer need not wait for the whole request.
            if stream.read(&mut piece).is_ok_and(|count| count > 0)
                && stream.write_all(answer.as_bytes()).is_ok()
            {
                *counted.lock().expect("no test panicked with it") += 1;
                drop(stream.read_to_end(&mut Vec::new()));
            }
        }
    });
    let server = Server::with_settings(&[("otlp_endpoint", &url), ("otlp_headers", "api-key=secret")]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    let codes = "SELECT COUNT(*) FROM information_schema.problems WHERE CODE = 'COLLECTOR_FAILS'";
    wait_until("the collector is said to fail", || client.value(codes) == "1");
    assert!(*asked.lock().expect("no test panicked with it") > 0);
    assert!(other.spans().is_empty(), "the headers went to another host");
}

#[test]
fn loads_and_statements_of_each_door_are_spans_with_their_stages() {
    let collector = Collector::start();
    let server = Server::with_settings(&[("otlp_endpoint", &collector.url)]);
    let mut client = server.connect();
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (id INT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1");
    let file = server.scratch().join("body.csv");
    std::fs::write(&file, "1\n2\n").expect("written");
    let traceparent = format!("traceparent: {PARENT}");
    let headers = ["label: traced", "group_commit: off_mode", &traceparent];
    Curl::stream_load(&server, "d", "t").headers(&headers).file(&file).load().success();
    let load = collector.wait("tributary.label", "traced");
    assert_eq!((load.name.as_str(), trace_of(&load).as_str()), ("LOAD d.t", TRACE));
    assert_eq!(load.parent_span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
    assert_eq!(attribute(&load, "tributary.door").as_deref(), Some("stream_load"));
    assert_eq!(attribute(&load, "tributary.affected_rows").as_deref(), Some("2"));
    assert_eq!(attribute(&load, "user.name").as_deref(), Some("root"));
    let stages = below(&collector, &load);
    for stage in ["plan", "read", "log"] {
        assert!(stages.iter().any(|name| name == stage), "{stage}: {stages:?}");
    }
    // A comment of a commenter; the statement's text goes nowhere.
    client.ok("SET group_commit = sync_mode");
    client.ok(&format!("INSERT INTO t VALUES (4711) /*traceparent='{PARENT}'*/"));
    let insert = collector.wait("db.operation.name", "INSERT");
    assert_eq!((insert.name.as_str(), trace_of(&insert).as_str()), ("INSERT d.t", TRACE));
    let stages = below(&collector, &insert);
    assert!(
        stages.iter().any(|name| name == "wait") && stages.iter().any(|name| name == "log"),
        "{stages:?}"
    );
    assert!(collector.spans().iter().all(|span| !format!("{span:?}").contains("4711")));
    // Failures have their numbers and texts.
    client.error("SELECT nothing FROM t");
    let failed = collector.wait("error.type", "1054");
    let status = failed.status.as_ref().expect("a status");
    assert!(status.message.contains("nothing"), "{status:?}");
    Curl::stream_load(&server, "d", "missing").file(&file).load().failure();
    let refused = collector.wait("db.collection.name", "missing");
    assert!(refused.status.as_ref().is_some_and(|status| status.message.contains("missing")), "{refused:?}");
}

#[test]
fn few_are_traced_by_chance_and_a_collector_that_is_away_is_a_problem() {
    let away = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", away.local_addr().expect("an address"));
    drop(away);
    let server = Server::with_settings(&[("otlp_endpoint", &url), ("trace_one_in", "1000000")]);
    let mut client = server.connect();
    assert_eq!(client.value("SELECT 1"), "1");
    let problems = "SELECT COUNT(*) FROM information_schema.problems WHERE CODE = 'COLLECTOR_FAILS'";
    assert_eq!(client.value(problems), "0", "nothing was traced");
    client.ok("ADMIN SET FRONTEND CONFIG (\"trace_one_in\" = \"1\")");
    wait_until("the problem", || client.value(problems) == "1");
    assert!(server.metric("tributary_traces_dropped_total{at=\"collector\"}") > 0.0);
}

#[test]
fn settings_that_no_collector_can_have_are_refused_at_the_start() {
    let data = tempfile::tempdir().expect("a directory");
    let refusal = |settings: &[(&str, &str)]| {
        let owned = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Server::refusal(data.path(), &owned.collect::<Vec<_>>())
    };
    let error = refusal(&[("otlp_endpoint", "http://127.0.0.1:4318"), ("otlp_headers", "hush")]);
    assert!(error.contains("part 1 of it has no name") && !error.contains("hush"), "{error}");
    let error = refusal(&[("otlp_endpoint", "grpc://127.0.0.1:4317")]);
    assert!(error.contains("grpc://127.0.0.1:4317") && error.contains("collector.example.com"), "{error}");
}
