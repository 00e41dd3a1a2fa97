//! Connections to other nodes, and the calls on them.
//!
//! Each call has a connection of its own. A query of seconds makes a dozen of them, so they cost nothing that counts; and no
//! query waits for another one's rows, for a limit of calls on a shared connection, or for a connection to a node that is gone.
//!
//! Invariant: a call ends in time. A connection takes at most [`CONNECT_MAX`], and a node that does not run any more is noticed
//! after twice [`KEEPALIVE`]. Errors say on which node they happened.

use super::failures::{named, silent};
use super::nodes::{Peer, Peers};
use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::common::{Result, exec_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Uri};
use tonic::transport::Endpoint;
use tower::{ServiceExt, service_fn};
use tributary_tls::connect_known;
use url::Url;

/// How long a connection to a node may take.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How often a silent node is asked whether it is there, and how long it may take to say so.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Bytes of rows that may be on their way on a connection.
const WINDOW_BYTES: u32 = 4 << 20;

/// A connection to a node.
pub type NodeChannel = BoxCloneSyncChannel;

/// Connections to the nodes.
#[derive(Clone)]
pub(crate) struct Channels(pub Arc<Peers>);

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let Some(peer) = self.0.heard(url).await else {
            return exec_err!("the node {url} is not known here, or not any more");
        };
        let calls = create_worker_client(connect(&peer).await?);
        Ok(Box::new(Named { node: address(&peer), calls }))
    }
}

/// Asks a node whether it is there.
///
/// # Errors
/// It does not say so.
pub(super) async fn is_there(peer: &Peer) -> Result<()> {
    let mut client = create_worker_client(connect(peer).await?);
    client.get_worker_info(GetWorkerInfoRequest {}).await.map(drop)
}

fn address(peer: &Peer) -> String {
    format!("{}:{}", peer.host, peer.port)
}

/// Calls of a node whose errors name it.
struct Named {
    node: String,
    calls: Box<dyn WorkerChannel>,
}

#[async_trait]
impl WorkerChannel for Named {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        plan: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let answered = self.calls.coordinator_channel(headers, plan, messages, metrics, context).await;
        let node = self.node.clone();
        match answered {
            Ok(messages) => Ok(messages.map_err(move |error| named(&node, error)).boxed()),
            Err(error) => Err(named(&node, error)),
        }
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let answered = self.calls.execute_task(headers, request, metrics, context).await;
        let parts = answered.map_err(|error| named(&self.node, error))?;
        let of_node = |rows: BoxStream<'static, Result<RecordBatch>>| {
            let node = self.node.clone();
            rows.map_err(move |error| named(&node, error)).boxed()
        };
        Ok(parts.into_iter().map(of_node).collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.calls.get_worker_info(request).await.map_err(|error| named(&self.node, error))
    }
}

/// The bytes of a connection.
trait Link: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Link for S {}

async fn link(peer: Peer) -> io::Result<TokioIo<Box<dyn Link>>> {
    let stream = TcpStream::connect((peer.host.as_str(), peer.port)).await?;
    stream.set_nodelay(true)?;
    let link: Box<dyn Link> = match &peer.certificate {
        Some(digest) => Box::new(connect_known(stream, digest).await?),
        None => Box::new(stream),
    };
    Ok(TokioIo::new(link))
}

/// A connection to a node, on which calls show it its token.
///
/// # Errors
/// There is none in time.
pub async fn connect(peer: &Peer) -> Result<NodeChannel> {
    let failed = |reason: String| silent(&address(peer), &reason);
    let url = peer.url().ok_or_else(|| failed("its address is not one".to_owned()))?;
    let endpoint = Endpoint::from_shared(url.to_string())
        .map_err(|error| failed(error.to_string()))?
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(Some(WINDOW_BYTES))
        .initial_connection_window_size(Some(WINDOW_BYTES));
    let of_peer = peer.clone();
    let connector = service_fn(move |_: Uri| link(of_peer.clone()));
    let channel = timeout(CONNECT_MAX, endpoint.connect_with_connector(connector)).await;
    let channel = channel
        .map_err(|_| failed(format!("no connection in {} s", CONNECT_MAX.as_secs())))?
        .map_err(|error| failed(format!("{error:?}")))?;
    let mut token = HeaderValue::try_from(format!("Node {}", peer.token))
        .map_err(|_| failed("its token is not one".to_owned()))?;
    token.set_sensitive(true);
    Ok(BoxCloneSyncChannel::new(channel.map_request(move |mut call: Request<Body>| {
        call.headers_mut().insert(AUTHORIZATION, token.clone());
        call
    })))
}
