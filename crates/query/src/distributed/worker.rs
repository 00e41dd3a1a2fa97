//! The sessions in which parts of other nodes' plans run: with this node's memory, pages in memory, store and options, and the functions
//! that a plan names.

use super::channels::Channels;
use super::codec::NodeCodec;
use super::functions::{Names, Stock};
use super::nodes::Peers;
use crate::functions::dates::zone::SessionZone;
use crate::scan::page_cache::PageCache;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion_distributed::{DistributedConfig, DistributedExt, Worker, WorkerQueryContext};
use std::sync::Arc;
use tonic::codegen::http::HeaderValue;

/// The header that names the functions of a plan.
pub const FUNCTIONS: &str = "x-tributary-functions";

/// A worker with the memory and the options of `state`.
pub fn worker(state: &SessionState, peers: &Arc<Peers>) -> Worker {
    let node = Arc::new(Node {
        state: state.clone(),
        stock: Stock::of(state),
        channels: Channels(Arc::clone(peers)),
    });
    let runtime = Arc::clone(state.runtime_env());
    let sessions = move |query: WorkerQueryContext| {
        let node = Arc::clone(&node);
        async move { node.session(query) }
    };
    Worker::from_session_builder(sessions).with_runtime_env(runtime)
}

struct Node {
    state: SessionState,
    stock: Stock,
    channels: Channels,
}

impl Node {
    fn session(&self, query: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext { mut builder, headers } = query;
        let config = builder.config().get_or_insert_default();
        let asked = DistributedConfig::from_session_config(config)?.clone();
        let mut options = self.state.config_options().as_ref().clone();
        options.extensions.insert(asked);
        *config.options_mut() = options;
        config.set_extension(PageCache::of(self.state.config()));
        let names = headers.get(FUNCTIONS).map(HeaderValue::to_str).transpose();
        let names = names.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let builder = Names::of(names.unwrap_or_default()).known_by(builder, &self.stock)?;
        let builder = builder
            .with_distributed_option_extension_from_headers::<SessionZone>(&headers)?
            .with_distributed_user_codec(NodeCodec)
            .with_distributed_channel_resolver(self.channels.clone());
        Ok(builder.build())
    }
}
