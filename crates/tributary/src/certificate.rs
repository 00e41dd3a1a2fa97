//! The server's certificate: opened at the start, and read again when its files have changed.
//!
//! Not here: handshakes.

use crate::config::Settings;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tributary_tls::{Tls, TlsFiles};

/// How often the files are compared with those in use: platforms replace them without a word.
const LOOK: Duration = Duration::from_secs(60);

/// Reads the certificate of the settings; `None` if they name none.
///
/// # Errors
/// The settings do not fit together, or a file can't be used.
pub fn open(settings: &Settings) -> Result<Option<Arc<Tls>>, Box<dyn Error + Send + Sync>> {
    let (certificate, private_key) = match (&settings.tls_certificate, &settings.tls_private_key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        (Some(_), None) => {
            return Err("tls_certificate is set and tls_private_key is not: TLS needs both".into());
        }
        (None, Some(_)) => {
            return Err("tls_private_key is set and tls_certificate is not: TLS needs both".into());
        }
        (None, None) if settings.require_secure_transport => {
            return Err("require_secure_transport is on, and without tls_certificate and tls_private_key no client could \
                        connect: set both, or turn it off"
                .into());
        }
        (None, None) => return Ok(None),
    };
    let files = TlsFiles {
        certificate,
        private_key,
        client_ca: settings.tls_client_ca.clone(),
        minimum: settings.tls_minimum_version,
    };
    Ok(Some(Arc::new(Tls::open(files)?)))
}

/// Reads the certificate again when its files have changed, and at SIGHUP, for as long as the server runs.
///
/// # Errors
/// The signal can't be taken.
pub async fn watch(tls: Arc<Tls>) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut said = None;
    loop {
        let asked = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(LOOK) => false,
        };
        // Small files of a local disk, once a minute.
        match tls.reload() {
            Ok(true) => {
                tracing::info!("the certificate has changed: new connections get the new one");
                said = None;
            }
            Ok(false) => said = None,
            Err(error) => {
                let error = error.to_string();
                // The same error is said once, unless somebody asked again.
                if asked || said.as_ref() != Some(&error) {
                    tracing::error!(%error, "the changed certificate can't be used: the one before stays");
                }
                said = Some(error);
            }
        }
    }
}
