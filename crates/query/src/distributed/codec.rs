//! The bytes of the only node of ours that travels.

use crate::scan::provider::VersionFiles;
use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::sync::Arc;

/// Writes and reads [`VersionFiles`], and refuses everything else.
#[derive(Debug)]
pub struct NodeCodec;

impl PhysicalExtensionCodec for NodeCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match inputs {
            [input] => Ok(Arc::new(VersionFiles::decode(bytes, Arc::clone(input))?)),
            _ => internal_err!("a scan of a version has one input, not {}", inputs.len()),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        into: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<VersionFiles>() {
            Some(files) => files.encode(into),
            None => not_impl_err!("{} does not travel", node.name()),
        }
    }
}
