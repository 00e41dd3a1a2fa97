use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::time::SystemTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const STAGE: Duration = Duration::from_millis(3);

fn options(endpoint: &str, headers: &str) -> TraceOptions {
    TraceOptions {
        endpoint: Url::parse(endpoint).unwrap(),
        headers: Secret::new(headers),
        one_in: Live::new(1),
        instance: "node".to_owned(),
        version: "1",
    }
}

fn traces(endpoint: &str) -> (Traces, Registry) {
    let registry = Registry::new();
    (Traces::new(Some(options(endpoint, "api-key=a%2Cb")), &registry).unwrap(), registry)
}

fn request(traced: Traced, failure: Option<&str>) -> TracedRequest {
    TracedRequest {
        traced,
        name: "LOAD d.t".to_owned(),
        ended: SystemTime::now(),
        took: Duration::from_millis(10),
        stages: vec![("read", STAGE), ("wait", Duration::ZERO), ("log", STAGE)],
        attributes: vec![
            ("tributary.txn_id", Attribute::Count(7)),
            ("db.namespace", Attribute::Text("d".into())),
        ],
        failure: failure.map(str::to_owned),
    }
}

/// Answers one request with this line, and returns its head and body.
async fn collect(listener: &TcpListener, answer: &str) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..at].to_vec()).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let length: usize = length.parse().unwrap();
            if bytes.len() >= at + 4 + length {
                let text = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(text.as_bytes()).await.unwrap();
                return (head, bytes[at + 4..].to_vec());
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request has an end");
    }
}

fn spans(body: &[u8]) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    request
        .resource_spans
        .into_iter()
        .flat_map(|of_resource| of_resource.scope_spans)
        .flat_map(|of_scope| of_scope.spans)
        .collect()
}

fn value(registry: &Registry, name: &str) -> f64 {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == name).unwrap();
    family.get_metric().iter().map(|metric| metric.get_counter().get_value()).sum()
}

#[tokio::test]
async fn a_request_becomes_a_span_of_its_clients_trace_with_stages_below_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (traces, registry) = traces(&format!("http://{}", listener.local_addr().unwrap()));
    let parent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    traces.push(request(traces.decide(|| parent).unwrap(), None));
    traces.push(request(traces.decide(|| None).unwrap(), Some("no")));
    let (pause, (head, body)) = tokio::join!(traces.send(), collect(&listener, "200 OK"));
    assert_eq!(pause, Duration::ZERO);
    assert!(head.starts_with("post /v1/traces "), "{head}");
    assert!(head.contains("api-key: a,b"), "{head}");
    let spans = spans(&body);
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["LOAD d.t", "read", "log", "LOAD d.t", "read", "log"], "a stage without time is none");
    let (first, read, log, second) = (&spans[0], &spans[1], &spans[2], &spans[3]);
    assert_eq!(first.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert!(second.parent_span_id.is_empty() && second.trace_id != first.trace_id);
    for stage in [read, log] {
        assert_eq!((&stage.trace_id, &stage.parent_span_id), (&first.trace_id, &first.span_id));
    }
    assert_eq!(read.start_time_unix_nano, first.start_time_unix_nano);
    assert_eq!(log.start_time_unix_nano, read.end_time_unix_nano, "they follow one another");
    assert_eq!(log.end_time_unix_nano - log.start_time_unix_nano, STAGE.as_nanos() as u64);
    assert_eq!(first.end_time_unix_nano - first.start_time_unix_nano, 10_000_000);
    assert_eq!(second.status.as_ref().unwrap().message, "no");
    assert_eq!(value(&registry, "tributary_traces_sent_total"), 2.0);
}

#[tokio::test]
async fn a_client_that_does_not_record_its_trace_is_not_traced_and_others_are_by_chance() {
    let (traces, _) = traces("http://127.0.0.1:1");
    let parent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
    assert_eq!(traces.decide(|| parent), None);
    assert!(traces.decide(|| None).is_some());
    let off = Traces::new(None, &Registry::new()).unwrap();
    assert_eq!(
        off.decide(|| TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
        None
    );
    let on = traces.on.as_ref().unwrap();
    on.one_in.set(10);
    let traced = (0..10_000).filter(|_| traces.decide(|| None).is_some()).count();
    assert!((700..1300).contains(&traced), "{traced} of 10,000");
}

#[tokio::test]
async fn a_collector_that_fails_costs_traces_that_are_counted_and_delays_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (traces, registry) = traces(&format!("http://{}/custom", listener.local_addr().unwrap()));
    let traced = traces.decide(|| None).unwrap();
    traces.push(request(traced, None));
    let (pause, (head, _)) = tokio::join!(traces.send(), collect(&listener, "400 Bad Request"));
    assert!(head.starts_with("post /custom "), "{head}");
    assert!(pause > Duration::ZERO);
    let trouble = traces.trouble().expect("it failed");
    assert!(trouble.text.contains("400"), "{}", trouble.text);
    assert_eq!(value(&registry, "tributary_traces_dropped_total"), 1.0);
    for _ in 0..QUEUE + 5 {
        traces.push(request(traced, None));
    }
    assert_eq!(value(&registry, "tributary_traces_dropped_total"), 6.0, "the queue is bounded");
    traces.push(request(traced, None));
    let (_, _) = tokio::join!(traces.send(), collect(&listener, "200 OK"));
    assert_eq!(traces.trouble(), None, "it works again");
}

#[tokio::test]
async fn the_last_requests_are_sent_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (traces, registry) = traces(&format!("http://{}", listener.local_addr().unwrap()));
    traces.push(request(traces.decide(|| None).unwrap(), None));
    let ((), (_, body)) = tokio::join!(traces.close(), collect(&listener, "200 OK"));
    assert_eq!(spans(&body).len(), 3);
    traces.push(request(traces.decide(|| None).unwrap(), None));
    assert_eq!(value(&registry, "tributary_traces_dropped_total"), 1.0, "it comes too late");
}

#[test]
fn headers_are_read_or_refused_without_being_shown() {
    let read = |text: &str| named(text).map(|headers| headers.into_iter().collect::<Vec<_>>());
    assert_eq!(read("").unwrap(), []);
    assert_eq!(
        read("authorization=Basic%20a%2Bb==").unwrap(),
        [("authorization".into(), "Basic a+b==".into())]
    );
    assert_eq!(read(" x = 1+1 ,").unwrap(), [("x".to_owned(), "1+1".to_owned())]);
    for (bad, part) in [("hush", 1), ("a=b,=hush", 2), ("a b=hush", 1), ("a=hu%0Ash", 1)] {
        let error = named(bad).unwrap_err().to_string();
        assert!(error.contains(&format!("part {part} ")) && !error.contains("hush"), "{error}");
    }
    let refused = Traces::new(Some(options("http://127.0.0.1:1", "hush")), &Registry::new());
    assert!(matches!(refused, Err(TraceError::Headers { part: 1 })));
}
