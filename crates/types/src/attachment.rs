//! Bytes that a load attaches to its transaction.

use std::fmt;
use std::sync::Arc;

/// Limit on the bytes of an attachment: it is part of the transaction's entry in the log and stays in memory with it.
pub const ATTACHMENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes that become durable together with a load's rows and that only the load's originator interprets: its position in a
/// source, for example, to resume from. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment(Arc<[u8]>);

/// An attachment that is too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an attachment of {bytes} bytes is too large for a transaction, which keeps at most {ATTACHMENT_BYTES_MAX}"
)]
pub struct AttachmentTooLarge {
    pub bytes: usize,
}

impl Attachment {
    /// An attachment of these bytes.
    ///
    /// # Errors
    /// [`AttachmentTooLarge`] above [`ATTACHMENT_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Self, AttachmentTooLarge> {
        if bytes.len() > ATTACHMENT_BYTES_MAX {
            return Err(AttachmentTooLarge { bytes: bytes.len() });
        }
        Ok(Self(bytes.into()))
    }

    /// Restores a persisted attachment, whatever the limit was when it was written.
    #[must_use]
    pub fn from_storage(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attachment({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_above_the_limit_is_refused_with_both_numbers() {
        let most = vec![7; ATTACHMENT_BYTES_MAX];
        assert_eq!(Attachment::new(&most).map(|kept| kept.bytes().to_vec()), Ok(most));
        let error = Attachment::new(&vec![7; ATTACHMENT_BYTES_MAX + 1]).unwrap_err().to_string();
        assert!(error.contains("65537 bytes") && error.contains("at most 65536"), "{error}");
    }
}
