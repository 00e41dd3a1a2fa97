//! The errors with which parts of a query end on other nodes: on which node that was, and the words that clients see.
//!
//! An error travels as text from node to node. So the node is named in texts that survive that: the root of an error is never hidden.

use crate::error::stream_error;
use datafusion::common::DataFusionError;
use std::error::Error;
use tributary_types::{ErrorCode, SqlError};

/// The beginning of the context of an error on another node; its address follows.
const ON_NODE: &str = "on the node ";
/// The text of an error about a node that is not there has its address between these.
const THE_NODE: &str = "the node ";
const SILENT: &str = " does not answer: ";

/// The error of a node that is not there.
pub(super) fn silent(node: &str, reason: &str) -> DataFusionError {
    DataFusionError::Execution(format!("{THE_NODE}{node}{SILENT}{reason}"))
}

/// An error of a call of a node, with the node.
pub(super) fn named(node: &str, error: DataFusionError) -> DataFusionError {
    if let DataFusionError::External(inner) = error.find_root()
        && let Some(status) = inner.downcast_ref::<tonic::Status>()
    {
        return silent(node, &format!("{} {}", status.code(), status.message()));
    }
    DataFusionError::Context(format!("{ON_NODE}{node}"), Box::new(error))
}

/// The node that is not there, if that is the error.
pub(crate) fn lost_node(error: &DataFusionError) -> Option<String> {
    let DataFusionError::Execution(text) = error.find_root() else { return None };
    let (node, _) = text.strip_prefix(THE_NODE)?.split_once(SILENT)?;
    Some(node.to_owned())
}

/// The node on which an error happened: the last one of its way. `None`: it was this one.
fn failed_node(error: &DataFusionError) -> Option<String> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    let mut found = None;
    while let Some(error) = next {
        if let Some(DataFusionError::Context(text, _)) = error.downcast_ref::<DataFusionError>()
            && let Some(node) = text.strip_prefix(ON_NODE)
        {
            found = Some(node.to_owned());
        }
        next = error.source();
    }
    found
}

/// An error in our words that came from another node as text, without what it begins with there.
fn arrived(error: SqlError) -> SqlError {
    let own = error.detail_text().strip_prefix("ERROR ").and_then(|text| text.split_once("): "));
    let Some((number, text)) = own else { return error };
    let is_busy = number.starts_with(&ErrorCode::Busy.number().to_string());
    let code = if is_busy { ErrorCode::Busy } else { ErrorCode::Unknown };
    SqlError::detail(code, SqlError::new(code, text).detail_text())
}

/// The error of a query of which rows are out already, as a client sees it. Before that, the query is run again instead.
#[must_use]
pub(crate) fn after_rows(error: &DataFusionError) -> SqlError {
    if let Some(node) = lost_node(error) {
        let text = format!(
            "the node {node}, which computed a part of the query, does not answer any more, and rows were sent already. Run the query \
             again: it is then computed without this node"
        );
        return SqlError::detail(ErrorCode::Busy, text);
    }
    let own = arrived(stream_error(error));
    match failed_node(error) {
        Some(node) => SqlError::detail(
            own.code,
            format!(
                "a part of the query failed on the node {node}, and rows were sent already: {}. If this stays when the query is run \
                 again, run it on a node whose distributed_query_bytes is 0, which computes it alone",
                own.detail_text().trim_end_matches('.')
            ),
        ),
        None => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::error::ArrowError;
    use std::sync::Arc;

    fn status(message: &str) -> DataFusionError {
        DataFusionError::External(Box::new(tonic::Status::unavailable(message.to_owned())))
    }

    #[test]
    fn a_node_that_is_gone_is_named_and_clients_may_try_again() {
        // As a node between tells it.
        let relayed =
            named("b:2", DataFusionError::Shared(Arc::new(named("a:1", status("h2 protocol error")))));
        assert_eq!(lost_node(&relayed).as_deref(), Some("a:1"));
        let told = after_rows(&relayed);
        assert_eq!(told.code, ErrorCode::Busy);
        let text = told.detail_text();
        assert!(text.contains("a:1, which") && text.contains("Run the query again"), "{text}");
        assert!(!text.contains("h2") && !text.contains("b:2"), "{text}");
    }

    #[test]
    fn an_error_on_a_node_has_the_words_of_one_node_and_says_where() {
        let full = DataFusionError::ResourcesExhausted("Failed to allocate 7 B".to_owned());
        let told = after_rows(&named("b:2", named("a:1", full)));
        let text = told.detail_text();
        assert!(text.contains("failed on the node a:1") && text.contains("Raise exec_mem_limit"), "{text}");
        assert!(text.contains("distributed_query_bytes"), "{text}");
        let hidden = DataFusionError::ArrowError(
            Box::new(ArrowError::ExternalError(Box::new(named(
                "c:3",
                DataFusionError::NotImplemented("x".to_owned()),
            )))),
            None,
        );
        let told = after_rows(&hidden);
        assert_eq!(told.code, ErrorCode::NotSupported);
        assert!(told.detail_text().contains("failed on the node c:3"), "{}", told.detail_text());
    }

    #[test]
    fn an_error_in_our_words_keeps_them_on_its_way() {
        let own = SqlError::detail(ErrorCode::Busy, "the memory is full");
        let travelled = DataFusionError::External(own.to_string().into());
        let told = after_rows(&named("a:1", travelled));
        assert_eq!(told.code, ErrorCode::Busy);
        let text = told.detail_text();
        assert!(
            text.starts_with(
                "a part of the query failed on the node a:1, and rows were sent already: the memory is full."
            ),
            "{text}"
        );
    }

    #[test]
    fn an_error_of_this_node_is_that_of_a_query_that_is_not_divided() {
        let error = DataFusionError::Execution("too large".to_owned());
        assert_eq!(after_rows(&error), stream_error(&error));
        assert_eq!(lost_node(&error), None);
    }
}
